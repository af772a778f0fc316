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
    """The log without what may differ between two equal runs: seconds, and the machine."""
    lines = [json.loads(line) for line in (Path(run) / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("seconds", "machine")} for line in lines]


def contents(run):
    """Everything in a run directory that depends on recipe and seed alone: two equal runs have equal contents."""
    run = Path(run)
    files = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != "log.jsonl"
    }
    return files, log_lines(run)


def state(run):
    """Every byte in a directory, to see that nothing was touched. None if there is no such directory."""
    run = Path(run)
    return {str(p.relative_to(run)): p.read_bytes() if p.is_file() else None for p in sorted(run.rglob("*"))} if run.exists() else None
