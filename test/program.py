"""The fedep program as tests run it: what it printed, how it ended, and what is in a run directory.

    class Reports(FolderTest):
        def test_of_nothing_are_refused(self):
            self.assert_one_line(PROGRAM.run("report", cwd=self.folder), 2, "must be named")
"""

import json
import os
import subprocess
import tempfile
import unittest
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
cooldown = { after = 1, rounds = 5 }  # so that rounds before and after a stop differ
[phase.inference]
name = "exact"
[evaluate]
every = 2
[checkpoint]
every = 3
"""
ROUNDS = 12
# Data with labels, whose runs end with an evaluation.json; the rest of a recipe goes behind it.
LABELLED = """
[data]
name = "synthetic"
clients = 6
dimension = 5
examples = 30
"""
# Factors that refer to means of q (docs/recipe.md).
SHARED_MEANS = """
[data]
name = "random_tags"
clients = 12
dimension = 60
tags = 3
examples = 6
max_examples = 10
[server]
clients_per_round = 3
prior = { precision = 1.0 }
[[phase]]
algorithm = "fed_avg"
rounds = 2
[[phase]]
algorithm = "fed_ep"
rounds = 9
inference = { name = "scaled_identity", alpha = 0.1 }
[checkpoint]
sparse = true
"""


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


def skip(reason):
    """Leaves a test out, and says why to tools/check_skips.py."""
    print(f"\nskipped: {reason}", flush=True)
    raise unittest.SkipTest(reason)


def scratch_folder():
    """A folder that goes with the test. In memory where there is some: what a kill leaves is the same there, and
    bringing a thousand files to a disk takes minutes."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="fedep-test-", dir=memory if os.access(memory, os.W_OK) else None)


class FolderTest(unittest.TestCase):
    """Has a folder of its own, and looks at how a program ended."""

    def setUp(self):
        scratch = scratch_folder()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def assert_succeeds(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def assert_finishes(self, done):
        """Succeeds, or has to say that its run is not to be trusted (trust_test.py), which is not the matter here."""
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done

    def assert_one_line(self, done, code, *words):
        """The program's only words are one line, with all of these in it."""
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assert_last_line(done, code, *words)

    def assert_last_line(self, done, code, *words):
        """As assert_one_line, but after lines on the run's progress."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual([line for line in lines if line.startswith("fedep: ")], lines[-1:], done.stderr)
        self.assert_says(lines[-1], *words)

    def assert_says(self, line, *words):
        self.assertTrue(line.startswith("fedep: "), line)
        self.assertLess(len(line), 400, line)
        for word in words:
            self.assertIn(str(word), line)


def json_lines(file):
    """What the lines of a log or of a file of results say."""
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


def log_lines(run):
    """The log without what may differ between two equal runs: seconds, the machine and the threads used of it."""
    lines = json_lines(Path(run) / "log.jsonl")
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
