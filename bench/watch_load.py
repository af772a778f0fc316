#!/usr/bin/env python3
"""What people who watch cost a run: rounds with pollers and stalled connections on its page against rounds without, in turns,
within one run that has a long log already.

    watch_load.py build/bin/fedep --before 100000 --pollers 200 --stalled 500

Pollers ask for data.json once a second each and time the answer; stalled connections begin a request and say no more, and are
opened again when the server closes them. A line of JSON says how many milliseconds a round took with and without them (the
median over turns; of the run's own thread also the processor time), what the server's threads used of a core, and how long
answers took.

--worst P and --slowest S make it a test: exit code 1 where rounds are more than P per cent slower, or an answer takes longer
than S seconds.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RECIPE = """
seed = 1
[data]
name = "synthetic"
clients = 30
dimension = 20
examples = 60
[client]
epochs = 1
batch = 10
optimizer = { name = "sgd", lr = 0.05 }
[server]
clients_per_round = 5
[[phase]]
algorithm = "fed_avg"
rounds = 100000000
[checkpoint]
every = 100000000
"""
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Load:
    """Everybody who connects, in a thread of its own."""

    def __init__(self, host, port, path, pollers, stalled):
        self.host, self.port, self.path = host, port, path
        self.pollers, self.stalled = pollers, stalled
        self.on, self.times, self.sizes, self.faults, self.reopened = False, [], [], [], 0
        threading.Thread(target=lambda: asyncio.run(self.all()), daemon=True).start()

    async def all(self):
        await asyncio.gather(*(self.poll(i / max(1, self.pollers)) for i in range(self.pollers)),
                             *(self.stall(i) for i in range(self.stalled)))  # fmt: skip

    async def poll(self, offset):
        request = f"GET {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode()
        await asyncio.sleep(offset)
        while True:
            began = time.monotonic()
            if self.on:
                try:
                    reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
                    writer.write(request)
                    answer = await reader.read(-1)
                    writer.close()
                    if not answer.startswith(b"HTTP/1.1 200 "):
                        raise OSError(f"answered {answer[:40]}")
                    self.times.append(time.monotonic() - began)
                    self.sizes.append(len(answer))
                except OSError as error:
                    self.faults.append(str(error))
            await asyncio.sleep(max(0, began + 1 - time.monotonic()))

    async def stall(self, number):
        await asyncio.sleep(number * 0.002)
        while True:
            if not self.on:
                await asyncio.sleep(0.1)
                continue
            try:
                reader, writer = await asyncio.open_connection(self.host, self.port)
                writer.write(b"GET / HT" if number % 2 else b"")
                await reader.read(-1)  # until it is closed
                writer.close()
            except OSError:
                pass
            self.reopened += 1
            await asyncio.sleep(1)


def thread_seconds(pid):
    """Processor time of the process's first thread, and of all its others."""
    own = others = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        seconds = (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
        if task.name == str(pid):
            own = seconds
        else:
            others += seconds
    return own, others


def count_lines(log, state):
    """Lines of the log so far; `state` remembers where the last count ended."""
    with open(log, "rb") as file:
        file.seek(state["at"])
        while piece := file.read(1 << 20):
            state["lines"] += piece.count(b"\n")
            state["at"] += len(piece)
    return state["lines"]


def turn(pid, log, state, seconds):
    lines, began, (own, others) = count_lines(log, state), time.monotonic(), thread_seconds(pid)
    time.sleep(seconds)
    rounds, wall, (own_after, others_after) = count_lines(log, state) - lines, time.monotonic() - began, thread_seconds(pid)
    rounds = max(rounds, 1)
    return {"wall": 1e3 * wall / rounds, "own": 1e3 * (own_after - own) / rounds, "server": (others_after - others) / wall}


def measure(options, folder):
    recipe, out = folder / "recipe.toml", folder / "run"
    recipe.write_text(RECIPE)
    command = [options.program, "run", recipe, "--out", out]
    subprocess.run([*command, "--rounds", str(options.before)], check=True, capture_output=True)
    pin = ["taskset", "-c", str(options.core)] if options.core is not None else []
    run = subprocess.Popen([*pin, *command, "--resume", "--watch", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        host, port, path = re.search(r"http://([\d.]+):(\d+)(/\S*)", run.stderr.readline()).groups()
        rest = threading.Thread(target=run.stderr.read, daemon=True)  # or it would wait for somebody to read
        rest.start()
        load = Load(host, int(port), path + "data.json", options.pollers, options.stalled)
        state = {"at": 0, "lines": 0}
        while count_lines(out / "log.jsonl", state) < options.before + 10:  # it has come back
            time.sleep(0.1)
        turns = {False: [], True: []}
        for number in range(2 * options.turns):
            load.on = (number % 4) in (1, 2)  # without, with, with, without
            time.sleep(1.5)
            turns[load.on].append(turn(run.pid, out / "log.jsonl", state, options.seconds))
        faults = list(load.faults)  # those who ask once the run is killed get no answer, and should not
    finally:
        run.kill()
        run.wait()
    median = lambda on, key: statistics.median(t[key] for t in turns[on])
    times = sorted(load.times)
    return {
        "rounds_before": options.before,
        "turns": options.turns,
        "round_ms_alone": median(False, "wall"),
        "round_ms_watched": median(True, "wall"),
        "slower_percent": 100 * (median(True, "wall") / median(False, "wall") - 1),
        "own_cpu_ms_alone": median(False, "own"),
        "own_cpu_ms_watched": median(True, "own"),
        "own_cpu_more_percent": 100 * (median(True, "own") / median(False, "own") - 1),
        "server_cores": median(True, "server"),
        "answers": len(times),
        "answer_bytes": statistics.median(load.sizes) if load.sizes else None,
        "answer_s_median": statistics.median(times) if times else None,
        "answer_s_99": times[int(0.99 * (len(times) - 1))] if times else None,
        "answer_s_slowest": times[-1] if times else None,
        "faults": faults[:3] + [f"{len(faults)} in all"] if faults else [],
        "stalled_closed": load.reopened,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--before", type=int, default=100000, help="rounds that the log has when the page is opened")
    parser.add_argument("--pollers", type=int, default=200)
    parser.add_argument("--stalled", type=int, default=500)
    parser.add_argument("--turns", type=int, default=8, help="with and without, each")
    parser.add_argument("--seconds", type=float, default=5, help="of a turn")
    parser.add_argument("--core", type=int, help="the run and its server have this core alone")
    parser.add_argument("--worst", type=float, help="per cent")
    parser.add_argument("--slowest", type=float, help="seconds")
    options = parser.parse_args()
    options.program = options.program.resolve()
    with tempfile.TemporaryDirectory(prefix="fedep-watch-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        result = measure(options, Path(folder))
    print(json.dumps(result, indent=1))
    too_slow = options.worst is not None and result["slower_percent"] > options.worst
    too_late = options.slowest is not None and not (result["answers"] and result["answer_s_slowest"] <= options.slowest)
    return 1 if too_slow or too_late or (options.slowest is not None and result["faults"]) else 0


if __name__ == "__main__":
    sys.exit(main())
