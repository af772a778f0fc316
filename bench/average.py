#!/usr/bin/env python3
"""What a server's average costs a round: rounds with and without it, played in turns.

    bench/average.py PROGRAM RECIPE_FOLDER [--device cpu] [--repeats 7]          data: $FEDEP_DATA

Visits are as short as an epoch. An average is no part of a client's training, whose time differs by up to 7 % with how a process's memory
happens to lie; so the server's part of a round is compared, without scores. Milliseconds are medians over repeats; the cost is the median
difference of pairs in percent of a whole round, and behind it are their quartiles.
"""

import argparse
import json
import pathlib
import statistics
import subprocess

AVERAGE = 'phase.0.average={ kind = "exponential", rounds = 30 }'
# Recipe, timed rounds, settings.
CASES = {
    "cpu": (
        ("figure4/small_i.toml", 40, ["client.epochs=1"]),
        ("figure4/large_i.toml", 20, ["client.epochs=1"]),
        ("femnist/fed_avg.toml", 5, ["client.epochs=1", "server.clients_per_round=20"]),
    ),
    "cuda": (("table2/fed_avg.toml", 50, []), ("figure4/large_i.toml", 50, [])),
}


def round_ms(options, recipe, rounds, settings):
    command = [options.program, "bench", "round", options.recipes / recipe, "--no-evaluation"]
    command += ["--json", "--device", options.device, "--warm-up", "3", "--rounds", str(rounds)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    line = json.loads(done.stdout.strip().splitlines()[-1])
    return line["training_ms"], line["other_ms"], line["weights"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recipes", type=pathlib.Path)
    parser.add_argument("--device", choices=CASES, default="cpu")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    print("| recipe | weights | a round, ms | the server's part, ms | with an average, ms | cost, % |\n|---|---|---|---|---|---|")
    for recipe, rounds, settings in CASES[options.device]:
        pairs = []
        for repeat in range(options.repeats):
            ways = [settings, settings + [AVERAGE]]
            times = [round_ms(options, recipe, rounds, way) for way in (ways if repeat % 2 else ways[::-1])]
            pairs.append(times if repeat % 2 else times[::-1])
        weights = pairs[0][0][2]
        server, averaged = ([pair[way][1] for pair in pairs] for way in (0, 1))
        whole = statistics.median(training + other for (training, other, _), _ in pairs)
        costs = [100 * (b - a) / whole for a, b in zip(server, averaged)]
        low, cost, high = statistics.quantiles(costs, n=4)
        middle = f"{whole:.1f} | {statistics.median(server):.3f} | {statistics.median(averaged):.3f}"
        print(f"| {recipe} | {weights:,} | {middle} | {cost:.2f} ({low:.2f} to {high:.2f}) |", flush=True)


if __name__ == "__main__":
    main()
