#!/usr/bin/env python3
"""A long run with many registered clients: rounds a second, memory and disk against visits.

    bench/many_clients.py PROGRAM RECIPE [--rounds 1500] [--lines 15] [--out FOLDER] [-- MORE OPTIONS OF fedep run]

    bench/many_clients.py build/bin/fedep recipe/scale/fed_ep_l.toml --out /tmp/scale
    bench/many_clients.py build/bin/fedep recipe/scale/fed_sep_l.toml --rounds 200 --out /tmp/scale_sep

Prints a line after every so many rounds: visits so far, seconds a round since the last line (those of the log: with scores, without checkpoints), CPU seconds of the process in all, resident memory now and at most, factors' files and their size, and the last scores. One thread.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time


SCORES = ("micro_f1", "macro_f1", "nll")


def rounds_of(log):
    if not log.is_file():
        return []
    lines = [line for line in log.read_text().split("\n")[:-1]]
    return [record for record in map(json.loads, lines) if record.get("kind") == "round"]


def memory(pid):
    """Resident MB now and at most; nothing once the process is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if "VmRSS" not in fields:
        return None
    return tuple(int(fields[name].split()[0]) / 1000 for name in ("VmRSS", "VmHWM"))


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files(folder):
    sizes = [entry.stat().st_size for entry in os.scandir(folder)] if folder.is_dir() else []
    return len(sizes), sum(sizes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recipe")
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--lines", type=int, default=15)
    parser.add_argument("--out", default="/tmp/many_clients")
    parser.add_argument("more", nargs="*")
    options = parser.parse_intermixed_args()  # so that options may stand before more
    out = pathlib.Path(options.out)
    command = [options.program, "run", options.recipe, "--out", str(out), "--threads", "1", "--set", f"phase.0.rounds={options.rounds}", *options.more]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(" ".join(command))
    print(f"{'rounds':>6} {'visits':>7} {'s/round':>8} {'CPU s':>7} {'MB now':>7} {'at most':>8} {'files':>6} {'GB':>7}  scores", flush=True)
    step = max(1, options.rounds // options.lines)
    shown, last = 0, (float("nan"), float("nan"))
    running = True
    while running or shown < len(rounds_of(out / "log.jsonl")) // step * step:
        running = process.poll() is None
        now = memory(process.pid)
        last = now or last
        used = cpu_seconds(process.pid)
        records = rounds_of(out / "log.jsonl")
        if len(records) // step > shown // step:
            count = len(records) // step * step
            part = records[shown:count]
            seconds = sum(record["seconds"] for record in part) / len(part)
            number, size = files(out / "sites")
            scored = [record for record in records[:count] if "micro_f1" in record]
            scores = " ".join(f"{name} {scored[-1][name]:.4f}" for name in SCORES) if scored else ""
            visits = sum(record["clients"] - record["dropped"] - record["outside_grid"] - record["skipped"] for record in records[:count])
            print(f"{count:>6} {visits:>7} {seconds:>8.3f} {used:>7.0f} {last[0]:>7.0f} {last[1]:>8.0f} {number:>6} {size / 1e9:>7.2f}  {scores}", flush=True)
            shown = count
        time.sleep(2)
    print(f"exit code {process.wait()}")


main()
