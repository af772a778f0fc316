#!/usr/bin/env python3
"""Reading a large table: fedep against pandas, CPU seconds and memory of whole processes, in one run.

    bench/read_table.py build/bin/fedep [--rows 1000000] [--clients 100000] [--columns 11]
        [--repeat 3] [--keep FOLDER]

Makes a table of clients, a yes-or-no label and numbers (130 MB as it is), then lets `fedep data describe` and
pandas.read_csv read it, --repeat times each in turn, and prints the least of each. fedep also checks every cell, holds rows
out, pools the columns' scales and makes the features; pandas only reads. Its own row has the reading alone, too, without
starting Python and importing pandas. `numbers` is what the feature columns take as doubles.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

READ = """
import os, sys, pandas
before = os.times()
table = pandas.read_csv(sys.argv[1])
after = os.times()
print(after.user + after.system - before.user - before.system)
"""

RECIPE = """
[data]
name = "tabular"
path = "table.csv"
client_column = "client"
label_column = "y"
[server]
clients_per_round = 2
[[phase]]
algorithm = "fed_avg"
rounds = 1
"""


def make_table(path, rows, clients, columns):
    pick = random.Random(1)
    with open(path, "w", encoding="utf-8") as out:
        out.write(",".join(["client", "y"] + [f"x{j}" for j in range(columns)]) + "\n")
        for i in range(rows):
            cells = ",".join(f"{pick.gauss(0, 1):.7f}" for _ in range(columns))
            out.write(f"site-{i % clients:06d},{pick.randrange(2)},{cells}\n")


def measured(command, folder):
    """CPU seconds, peak memory in MB, output."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, cwd=folder, stdout=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{command} ended with {child.returncode}")
        said.seek(0)
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said.read().decode()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("fedep", type=Path)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--clients", type=int, default=100_000)
    options.add_argument("--columns", type=int, default=11)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--keep", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / "table.csv"
        if not table.is_file():
            make_table(table, chosen.rows, chosen.clients, chosen.columns)
        (folder / "recipe.toml").write_text(RECIPE)
        commands = {
            "fedep": [chosen.fedep.resolve(), "data", "describe", "recipe.toml", "--data", "."],
            "pandas": [sys.executable, "-c", READ, "table.csv"],
        }
        least = {}
        reading = []
        for _ in range(chosen.repeat):
            for name, command in commands.items():
                cpu, memory, said = measured(command, folder)
                before = least.get(name, (cpu, memory))
                least[name] = (min(cpu, before[0]), min(memory, before[1]))
                if name == "pandas":
                    reading.append(float(said))
        numbers = chosen.rows * chosen.columns * 8 / 2**20
        print(f"table: {table.stat().st_size / 1e6:.0f} MB, {chosen.clients} clients, numbers: {numbers:.0f} MB")
        for name, (cpu, memory) in least.items():
            print(f"{name:8} {cpu:6.2f} s CPU {memory:7.0f} MB  {memory / numbers:5.2f} times the numbers")
        print(f"of pandas, reading alone: {min(reading):.2f} s CPU")


if __name__ == "__main__":
    main()
