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

    def test_compare_tells_runs_apart_and_says_whom_to_trust(self):
        self.sweep("--grid", "client.epochs=1,3", "--seeds", "1")
        runs = ["out/client.epochs=1/seed-1", "out/client.epochs=3/seed-1"]
        rows = json.loads(self.fedep("compare", *runs, "--json").stdout)
        self.assertEqual([row["run"] for row in rows], ["client.epochs=1/seed-1", "client.epochs=3/seed-1"])
        self.assertEqual([row["path"] for row in rows], runs)
        log = self.path / runs[1] / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if line["kind"] == "round":
                line.update(train_loss=None, diverged=6, outside_grid=6)
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        rows = json.loads(self.fedep("compare", *runs, "--json").stdout)
        self.assertEqual([row["trust"]["trust"] == "no" for row in rows], [False, True])
        done = self.fedep("compare", *runs)
        self.assertNotIn("*", done.stdout.splitlines()[1])
        self.assertIn("client.epochs=3/seed-1 *", done.stdout.splitlines()[2])
        self.assertIn("not to be trusted", done.stderr)

    def test_a_seed_is_counted_once(self):
        self.assertIn("has 1 twice", self.sweep("--seeds", "1,2,1", code=2).stderr)
        self.assertIn("but is both", self.sweep("--grid", "seed=1,2", "--seeds", "3,4", code=2).stderr)
        self.assertFalse(list(self.path.glob("out/*/*")))

    def test_runs_of_other_settings_are_refused_before_any_is_played(self):
        self.sweep("--grid", "client.epochs=3", "--seeds", "1")
        again = ("--grid", "client.epochs=1,3", "--seeds", "1", "--set")
        said = self.sweep(*again, "client.batch=7", code=2).stderr
        self.assertIn("was played with other settings, [client] batch =", said)
        self.assertFalse((self.path / "out/client.epochs=1").exists())
        self.sweep(*again, "evaluate.every=4")  # may differ

    def test_runs_that_are_longer_than_asked_are_refused_before_any_is_played(self):
        self.sweep("--grid", "client.epochs=1", "--seeds", "1")
        again = ("--grid", "client.epochs=3,1", "--seeds", "1")
        for shorter in (("--set", "phase.0.rounds=2"), ("--rounds", "2")):
            said = self.sweep(*again, *shorter, code=2).stderr
            self.assertIn("out/client.epochs=1/seed-1 has 4 rounds, but must have at most 2: take the run away", said)
            self.assertFalse((self.path / "out/client.epochs=3").exists())
        self.sweep(*again, "--set", "phase.0.rounds=6")  # goes on
        self.assertEqual((self.path / "out/client.epochs=1/seed-1/log.jsonl").read_text().count('"kind":"round"'), 6)

    def test_runs_that_may_have_gone_on_where_others_stop_are_refused(self):
        """Their rounds would not be those of the other seeds."""
        ep = ("--set", "phase.0.algorithm=fed_ep", "--set", "phase.0.inference.name=laplace")
        stop = "stop.converged="
        self.sweep(*ep, "--seeds", "1")
        said = self.sweep(*ep, "--seeds", "2,1", "--set", stop + "0.05", code=2).stderr
        self.assertIn("out/seed-1 was played with stop.converged = 0, and may have gone on where 0.05 ends it", said)
        self.assertFalse((self.path / "out/seed-2").exists())
        self.sweep(*ep, "--seeds", "2", "--set", stop + "0.01")
        self.assertIn("= 0.01, and may", self.sweep(*ep, "--seeds", "2", "--set", stop + "0.05", code=2).stderr)
        self.sweep(*ep, "--seeds", "1,2")  # without an end both have all rounds

    def test_runs_of_other_data_are_refused_by_name(self):
        """Means are over runs of the same data."""
        rows = [f"{'ab'[i % 2]},{i % 7},{(i * i) % 5 % 2}" for i in range(60)]
        table = self.path / "rows.csv"
        table.write_text("site,x,y\n" + "\n".join(rows) + "\n")
        data = 'name = "tabular"\npath = "rows.csv"\nclient_column = "site"\nlabel_column = "y"\n\n[server]\nclients_per_round = 2\n'
        (self.path / "small.toml").write_text("[data]\n" + data + RECIPE[RECIPE.index("\n[[phase]]"):])
        again = ("--data", ".", "--seeds")
        first = self.sweep(*again, "1,2")
        self.assertEqual(self.sweep(*again, "1,2").stdout, first.stdout)
        table.write_text("site,x,y\n" + "\n".join(rows[:-2]) + "\n")
        for seeds in ("1,2", "1,2,3"):
            self.assertIn("seed-1 was played with data", self.sweep(*again, seeds, code=2).stderr)
        self.assertFalse((self.path / "out/seed-3").exists())
        table.unlink()  # nothing new is played, and nobody says that they are others
        self.assertEqual(self.sweep(*again, "1,2").stdout, first.stdout)

    def test_what_is_finished_keeps_its_scores_and_says_so(self):
        self.sweep("--seeds", "1", "--set", "evaluate.every=4")
        recipe = (self.path / "out/seed-1/recipe.toml").read_bytes()
        for _ in range(2):
            done = self.sweep("--seeds", "1", "--set", "evaluate.every=1")
            self.assertIn("out/seed-1: the run is over and keeps the scores of its own [evaluate]", done.stderr)
            self.assertEqual((self.path / "out/seed-1/recipe.toml").read_bytes(), recipe)

    def test_it_says_when_settings_would_be_chosen_by_the_test_set(self):
        words = "have seen them"
        self.assertIn(words, self.sweep("--grid", "client.epochs=1,3").stderr)
        quiet = self.fedep("sweep", "small.toml", "--out", "other", "--grid", "client.epochs=1,3",
                           "--set", "data.validation_fraction=0.2")  # fmt: skip
        self.assertNotIn(words, quiet.stderr)


if __name__ == "__main__":
    unittest.main()
