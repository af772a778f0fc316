#!/usr/bin/env python3
"""fedep sweep: every combination of settings, over seeds, in one table; the same command goes on after a stop.

    test/sweep_test.py FEDEP
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

FEDEP = str(pathlib.Path(sys.argv.pop(1)).resolve())

RECIPE = """
[data]
name = "synthetic"
clients = 6
dimension = 5
examples = 30

[server]
clients_per_round = 6

[[phase]]
algorithm = "fed_avg"
rounds = 4
"""


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "small.toml").write_text(RECIPE)

    def fedep(self, *arguments, code=0):
        done = subprocess.run([FEDEP, *arguments], cwd=self.path, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def sweep(self, *arguments, code=0):
        return self.fedep("sweep", "small.toml", "--out", "out", *arguments, code=code)

    def test_scores_are_those_of_runs(self):
        """A cell's mean is the mean of runs that `fedep run` plays with the same settings."""
        table = json.loads(self.sweep("--grid", "client.epochs=1,3", "--seeds", "1,2", "--json").stdout)
        self.assertEqual([cell["settings"] for cell in table["cells"]], [{"client.epochs": "1"}, {"client.epochs": "3"}])
        for cell in table["cells"]:
            scores = []
            for seed in (1, 2):
                setting = f"client.epochs={cell['settings']['client.epochs']}"
                out = f"alone-{setting}-{seed}"
                self.fedep("run", "small.toml", "--seed", str(seed), "--set", setting, "--out", out)
                compared = json.loads(self.fedep("compare", out, "--json").stdout)
                scores.append(compared[0]["scores"]["nll"])
            self.assertAlmostEqual(cell["scores"]["nll"]["mean"], sum(scores) / 2, places=12)
            self.assertAlmostEqual(cell["scores"]["nll"]["sd"], abs(scores[0] - scores[1]) / 2**0.5, places=12)

    def test_what_is_finished_is_not_played_again(self):
        first = self.sweep("--grid", "client.epochs=1,3")
        logs = {log: log.read_bytes() for log in self.path.glob("out/*/*/log.jsonl")}
        self.assertEqual(len(logs), 2)
        second = self.sweep("--grid", "client.epochs=1,3,5")
        self.assertEqual(second.stderr.count("finished already"), 2)
        for log, there in logs.items():
            self.assertEqual(log.read_bytes(), there)
        self.assertEqual(first.stdout.splitlines()[1:3], second.stdout.splitlines()[1:3])

    def test_a_picture_has_every_cell(self):
        self.sweep("--grid", "client.epochs=1,3", "--seeds", "1,2", "--figure", "curves.svg", "--score", "nll")
        picture = (self.path / "curves.svg").read_text()
        for name in ("client.epochs=1", "client.epochs=3", "2 seeds"):
            self.assertIn(name, picture)
        refused = self.sweep("--grid", "client.epochs=1,3", "--figure", "curves.svg", "--score", "beauty", code=2)
        self.assertIn("--score must be one of", refused.stderr)

    def test_bad_grids_are_refused_before_anything_is_played(self):
        for grid, words in [
            ("client.epoch=1,2", "did you mean client.epochs?"),
            ("client.epochs=1,zero", "client.epochs"),
            ("client.epochs", "key=a,b,c"),
            ("client.epochs=1,1", "twice"),
            ("server.clients_per_round=6,60", "clients"),
        ]:
            self.assertIn(words, self.sweep("--grid", grid, code=2).stderr)
            self.assertFalse(list(self.path.glob("out/*/*/log.jsonl")), grid)

    def test_it_says_when_settings_would_be_chosen_by_the_test_set(self):
        words = "have seen them"
        self.assertIn(words, self.sweep("--grid", "client.epochs=1,3").stderr)
        quiet = self.fedep("sweep", "small.toml", "--out", "other", "--grid", "client.epochs=1,3",
                           "--set", "data.validation_fraction=0.2")  # fmt: skip
        self.assertNotIn(words, quiet.stderr)


if __name__ == "__main__":
    unittest.main()
