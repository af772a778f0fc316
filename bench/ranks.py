#!/usr/bin/env python3
"""Ranks against threads on one machine, and what rounds cost over ranks against a model of it.

    bench/ranks.py PROGRAM BENCH_RANKS [--repeats 5] [--only speed|sum|model]          data: $FEDEP_DATA

PROGRAM is build-mpi/bin/fedep, BENCH_RANKS build-mpi/bin/fedep_bench_ranks. Runs are played in turns, so that other work on the
machine hits all of them alike; times are medians over rounds, and the least. Take the machine for yourself where you can.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
ENVIRONMENT = {
    **os.environ,
    "OPENBLAS_NUM_THREADS": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # containers forbid it
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
# Name, recipe, settings, rounds. Visits are short, so that what ranks cost shows.
CASES = [
    ("FEMNIST's CNN, 20 clients of one epoch", "recipe/femnist/fed_avg.toml", ["server.clients_per_round=20", "client.epochs=1"], 4),
    ("CIFAR-100's linear model, 20 clients", "recipe/figure4/small_i.toml", [], 60),
]
QUIET = ["evaluate.every=0", "checkpoint.every=0"]


def seconds_of_rounds(program, recipe, settings, rounds, ranks=1, threads=1):
    """Of every round but the first, which warms caches."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [program, "run", recipe, "--out", out, "--rounds", rounds, "--threads", threads]
        for setting in settings:
            command += ["--set", setting]
        if ranks > 1:
            command = [*MPIRUN, "-n", ranks, *command]
        done = subprocess.run([str(part) for part in command], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(done.stderr)
        lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        return [line["seconds"] for line in lines if line["kind"] == "round"][1:-1]


def in_turns(ways, repeats):
    times = {name: [] for name in ways}
    for _ in range(repeats):
        for name, play in ways.items():
            times[name] += play()
    return times


def shown(seconds):
    return f"{1e3 * statistics.median(seconds):.1f} ({1e3 * min(seconds):.1f})"


def compare_speed(program, repeats):
    print("| rounds of | one thread, ms | two threads | two ranks | two ranks / two threads: speed by medians, by the least |\n|---|---|---|---|---|")
    for name, recipe, settings, rounds in CASES:
        for scored in (False, True):
            more = [] if scored else QUIET
            ways = {
                "one": lambda: seconds_of_rounds(program, recipe, [*settings, *more], rounds),
                "threads": lambda: seconds_of_rounds(program, recipe, [*settings, *more], rounds, threads=2),
                "ranks": lambda: seconds_of_rounds(program, recipe, [*settings, *more], rounds, ranks=2),
            }
            times = in_turns(ways, repeats)
            ratio = statistics.median(times["threads"]) / statistics.median(times["ranks"])
            least = min(times["threads"]) / min(times["ranks"])
            print(
                f"| {name}{', scored' if scored else ''} | {shown(times['one'])} | {shown(times['threads'])} | {shown(times['ranks'])} "
                f"| {ratio:.2f}, {least:.2f} |",
                flush=True,
            )


def bench_sum(bench, recipe, ranks, rounds):
    command = [*MPIRUN, "-n", ranks, bench, recipe, rounds]
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    numbers = int(re.search(r"(\d+) integers", done.stdout)[1])
    least = {name.strip(): float(ms) for name, ms in re.findall(r"(?m)^(.*?) median +[\d.]+ ms, least +([\d.]+) ms", done.stdout)}
    median = {name.strip(): float(ms) for name, ms in re.findall(r"(?m)^(.*?) median +([\d.]+) ms", done.stdout)}
    return numbers, median, least


def sum_recipe(folder, name, text):
    file = Path(folder) / f"{name}.toml"
    file.write_text(text)
    return file


def sum_recipes(folder):
    """Few and short visits of large models: the sum is what is looked at."""
    images = '[data]\nname = "random_images"\nclients = 4\nexamples = 4\n[client]\nbatch = 4\nepochs = 1\n[server]\nclients_per_round = 2\n'
    yield sum_recipe(folder, "cnn", f'extends = "{ROOT}/recipe/femnist/fed_avg.toml"\n[client]\nepochs = 1\n[server]\nclients_per_round = 2\n')
    yield sum_recipe(folder, "resnet", f'{images}[model]\nname = "resnet18"\n[[phase]]\nalgorithm = "fed_avg"\nrounds = 100\n')


def compare_sums(bench, rounds):
    print("| integers | ranks | last visit to sum, ms: median (least) | bare sum | ratio of medians, of the least |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for recipe in sum_recipes(folder):
            for ranks in (2, 3, 4):
                numbers, median, least = bench_sum(bench, recipe, ranks, rounds)
                wait, bare = "last visit to sum", "bare sum"
                print(
                    f"| {numbers:,} | {ranks} | {median[wait]:.2f} ({least[wait]:.2f}) | {median[bare]:.2f} ({least[bare]:.2f}) "
                    f"| {median[wait] / median[bare]:.2f}, {least[wait] / least[bare]:.2f} |",
                    flush=True,
                )


def makespan(costs, workers):
    """Longest first, each to whoever has least: a part of all work."""
    busy = [0] * workers
    for cost in sorted(costs, reverse=True):
        busy[busy.index(min(busy))] += cost
    return max(busy) / sum(costs)


def femnist_sizes():
    text = (ROOT / "fedep/sim/ranks/test_femnist_sizes.h").read_text()
    return [int(number) for number in re.findall(r"\d+", text.partition("kFemnistSizes{")[2])]


def check_model(program, bench, repeats):
    """round = compute x the largest share + sum. Compute is measured on one rank, the sum by itself."""
    name, recipe, settings, rounds = CASES[0]
    cores = len(os.sched_getaffinity(0))
    sizes, dice = femnist_sizes(), random.Random(1)
    cohorts = [dice.sample(sizes, 20) for _ in range(200)]
    ways = {
        ranks: lambda ranks=ranks: seconds_of_rounds(program, recipe, [*settings, *QUIET], rounds, ranks=ranks) for ranks in (1, 2, 3, 4)
    }
    times = in_turns(ways, repeats)
    one = statistics.median(times[1])
    print("| ranks | measured, ms: median (least) | model | compute | sum | measured / model |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        cnn = next(sum_recipes(folder))
        for ranks in ways:
            share = statistics.mean(makespan(cohort, ranks) for cohort in cohorts)
            # More ranks than cores take turns.
            compute = one * max(share, share * ranks / cores if ranks > cores else 0)
            added = 0 if ranks == 1 else bench_sum(bench, cnn, ranks, 20)[1]["bare sum"] / 1e3
            measured = statistics.median(times[ranks])
            print(
                f"| {ranks} | {shown(times[ranks])} | {1e3 * (compute + added):.1f} | {1e3 * compute:.1f} | {1e3 * added:.1f} "
                f"| {measured / (compute + added):.2f} |",
                flush=True,
            )


# One H200, ResNet-18, measured (result/gpu.md): clients a round -> ms a client-step of 20 examples.
GPU_STEP = {1: 0.532, 2: 0.308, 5: 0.159, 10: 0.103, 20: 0.075, 50: 0.068, 100: 0.062, 200: 0.060}
STEPS = 50  # of a visit: 10 epochs of 100 examples
WEIGHTS = 11_218_212


def gpu_seconds(clients):
    """Of a round's training on one GPU; between measured cohorts a line of logarithms, beyond the largest in proportion."""
    known = sorted(GPU_STEP)
    if clients >= known[-1]:
        step = GPU_STEP[known[-1]]
    else:
        above = next(k for k in known if k >= clients)
        below = max(k for k in known if k <= clients)
        part = 0 if above == below else (clients - below) / (above - below)
        step = GPU_STEP[below] ** (1 - part) * GPU_STEP[above] ** part
    return clients * STEPS * step / 1e3


def extend():
    print("| clients a round | GPUs | training, ms | sum at 25 GB/s | sum at 1.25 GB/s | times as fast as one GPU: 25 GB/s, 1.25 GB/s |\n|---|---|---|---|---|---|")
    for clients in (20, 200, 2000):
        for gpus in (1, 8, 64, 512):
            share = -(-clients // gpus)
            train = gpu_seconds(share)
            # A ring sends and receives what there is twice, less one part.
            sums = [2 * (gpus - 1) / gpus * 8 * WEIGHTS / rate for rate in (25e9, 1.25e9)]
            speed = [gpu_seconds(clients) / (train + added) for added in sums]
            print(f"| {clients:,} | {gpus} | {1e3 * train:.0f} | {1e3 * sums[0]:.0f} | {1e3 * sums[1]:.0f} | {speed[0]:.1f}, {speed[1]:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("speed", "sum", "model", "paper"))
    given = parser.parse_args()
    program, bench = given.program.resolve(), given.bench.resolve()
    parts = {
        "speed": lambda: compare_speed(program, given.repeats),
        "sum": lambda: compare_sums(bench, 30),
        "model": lambda: check_model(program, bench, given.repeats),
        "paper": extend,
    }
    for name, part in parts.items():
        if given.only in (None, name):
            print(f"\n## {name}, load {os.getloadavg()[0]:.1f}", flush=True)
            part()


if __name__ == "__main__":
    main()
