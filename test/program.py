"""The fedep program as tests run it: what it printed, how it ended, and what is in a run directory."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

RECIPE = """
seed = 7
[data]
name = "toy"
clients = 9
dimension = 4
[server]
clients_per_round = 4
grid_bits = 32  # coarse, so that a wrong grid shows
prior = { mean = 0.5, precision = 0.25 }
optimizer = { name = "sgd", lr = 0.5, momentum = 0.5 }
[[phase]]
algorithm = "fed_avg"
rounds = 4
[[phase]]
algorithm = "fed_ep"
rounds = 8
[phase.inference]
name = "exact"
[evaluate]
every = 2
[checkpoint]
every = 3
"""
ROUNDS = 12


class Program:
    def __init__(self, path):
        self.path = Path(path).resolve()

    def run(self, *arguments, **options):
        """Runs it to its end; gives its code and what it printed."""
        return subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [self.path, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )


def scratch_folder():
    """A folder that goes with the test. In memory where there is some: what a kill leaves is the same there, and
    bringing a thousand files to a disk takes minutes."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="fedep-test-", dir=memory if os.access(memory, os.W_OK) else None)


def log_lines(run):
    """The log without what may differ between two equal runs: seconds, the machine and the threads used of it."""
    lines = [json.loads(line) for line in (Path(run) / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("seconds", "machine", "device")} for line in lines]


def contents(run):
    """Everything in a run directory that depends on recipe and seed alone: two equal runs have equal contents.
    TensorBoard's event files are not part of it: they hold times, and there is one per start."""
    run = Path(run)
    files = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != "log.jsonl" and not path.name.startswith("events.out.tfevents.")
    }
    return files, log_lines(run)


def state(run):
    """Every byte in a directory, to see that nothing was touched. None if there is no such directory."""
    run = Path(run)
    if not run.exists():
        return None
    return {str(path.relative_to(run)): path.read_bytes() if path.is_file() else None for path in run.rglob("*")}
