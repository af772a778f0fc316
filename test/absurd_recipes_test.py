"""Twenty recipes that nobody can run: `fedep check` says so in words, or what a run would need, within a second of the
processor's time and 100 MB of memory.

    absurd_recipes_test.py build/bin/fedep
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import FolderTest, Program

BASE = """
[data]
name = "synthetic"
clients = 6
dimension = 5
examples = 30
[server]
clients_per_round = 3
[[phase]]
algorithm = "fed_avg"
rounds = 10
[[phase]]
algorithm = "fed_ep"
rounds = 10
[phase.inference]
name = "laplace"
"""
# Changes, what is refused (2) or not (0), and a part of what is said.
ABSURD = [
    (["data.dimension=1000000000"], 2, "memory"),
    (["data.dimension=2147483647", "data.clients=2147483647", "data.examples=2147483647"], 2, "memory"),
    (["data.clients=2147483647"], 2, "memory"),
    (["data.examples=2147483647"], 2, "memory"),
    (["data.name=regression", "data.dimension=2000000000"], 2, "memory"),
    (["data.name=random_images", "data.examples=1000000000"], 2, "memory"),
    (["data.name=toy", "phase.inference.name=exact", "data.dimension=1000000000"], 2, "memory"),
    (["data.name=toy", "phase.inference.name=exact", "data.clients=2147483647", "data.dimension=60"], 2, "memory"),
    (["server.clients_per_round=2147483647"], 2, "server.clients_per_round must be at most"),
    (["phase.rounds=2147483647"], 0, "of disk"),
    (["client.epochs=2147483647", "data.examples=3000", "client.batch=1", "server.clients_per_round=6"], None, " years"),
    (["phase.1.inference.epochs=2147483647", "data.examples=3000", "client.batch=1"], None, " years"),
    (["evaluate.samples=2147483647"], 0, "ready to run"),
    (["checkpoint.keep=2147483647", "checkpoint.every=1", "phase.rounds=2147483647"], 0, "B of disk"),
    (["phase.0.clip=1e20"], 2, "phase.0.clip must be at most"),
    (["phase.0.clip=1e10", "server.grid_bits=32"], 2, "phase.0.clip must be at most"),
    (["server.prior={mean=0, precision=1e300}"], 2, "server.prior.precision must be in [1e-24, 1e24]"),
    (["model.initial_scale=1e38"], 2, "model.initial_scale must be in"),
    (["phase.1.inference.alpha=-9223372036854775808"], 2, "phase.1.inference.alpha must be positive"),
    (["data.max_examples=9223372036854775807"], 2, "data.max_examples must be at most 2147483647"),
]


class AbsurdRecipes(FolderTest):
    program = None

    def check(self, changes):
        """Exit code, what it said, seconds of processor time and bytes at most."""
        recipe = self.folder / "recipe.toml"
        recipe.write_text(BASE)
        with tempfile.TemporaryFile() as said:
            command = [self.program.path, "check", recipe, *[word for change in changes for word in ("--set", change)]]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read().decode()
        return child.returncode, text, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024

    def test_there_are_twenty(self):
        self.assertEqual(len(ABSURD), 20)

    def test_are_answered_in_words_at_once_and_without_memory(self):
        for changes, code, words in ABSURD:
            with self.subTest(changes):
                came, text, seconds, memory = self.check(changes)
                print(f"{seconds:5.2f} s {memory / 1e6:6.1f} MB  {changes}: {text.splitlines()[0][:110]}")
                self.assertIn(came, (0, 2) if code is None else (code,), text)
                self.assertIn(words, text)
                if came == 2:
                    self.assertEqual(len(text.splitlines()), 1, text)
                self.assertLess(seconds, 1)
                self.assertLess(memory, 100e6)

    def test_a_run_refuses_them_before_it_makes_a_folder(self):
        recipe, out = self.folder / "recipe.toml", self.folder / "run"
        recipe.write_text(BASE)
        done = self.program.run("run", recipe, "--out", out, "--set", "data.dimension=1000000000")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("memory", done.stderr)
        self.assertFalse(Path(out).exists())

    def test_a_clip_that_freezes_learning_is_told(self):
        recipe = self.folder / "recipe.toml"
        recipe.write_text(BASE)
        freeze = ["--set", "phase.clip=1e8", "server.grid_bits=32", "--rounds", 2]
        done = self.program.run("run", recipe, "--out", self.folder / "frozen", *freeze)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lost in rounding: phase.clip is far larger", done.stderr)
        fine = ["--set", "phase.clip=100", "server.grid_bits=32", "--rounds", 2]
        done = self.program.run("run", recipe, "--out", self.folder / "fine", *fine)
        self.assertNotIn("lost in rounding", done.stderr)


if __name__ == "__main__":
    AbsurdRecipes.program = Program(sys.argv.pop(1))
    unittest.main()
