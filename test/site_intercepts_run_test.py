#!/usr/bin/env python3
"""Hospitals with intercepts of their own and estimated noise, as a user runs them: run, resume, evaluate, coverage, and what is
refused.

    site_intercepts_run_test.py FEDEP
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

FEDEP = sys.argv[1]

RECIPE = """seed = 3

[data]
name = "tabular"
path = "table.csv"
client_column = "hospital"
label_column = "y"
label = "{label}"
test_fraction = 0.25

[model]
name = "linear"
{model}

[server]
clients_per_round = 6
prior = {{ mean = 0.0, precision = 0.1 }}
damping = 0.5

[[phase]]
algorithm = "{algorithm}"
rounds = 16

[evaluate]
samples = 40
"""

# Outcomes are around 3 apart between the first hospital and the last, which no column has.
LEVELS = (-3.0, -1.5, -0.5, 0.5, 1.5, 3.0)


def write_table(path, label):
    rng = random.Random(5)
    with open(path, "w", encoding="utf-8") as file:
        file.write("hospital,x,y\n")
        for k, level in enumerate(LEVELS):
            for _ in range(40):
                x = rng.gauss(0, 1)
                f = level + 0.8 * x
                y = f + 2 * rng.gauss(0, 1) if label == "number" else int(rng.random() < 1 / (1 + math.exp(-f)))
                file.write(f"h{k},{x!r},{y!r}\n")


class SiteIntercepts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fedep(self, *words, code=0):
        done = subprocess.run([FEDEP, *map(str, words)], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout, done.stderr

    def recipe(self, label="yes_no", model="site_intercept = true", algorithm="fed_ep", name="recipe.toml"):
        write_table(self.folder / "table.csv", label)
        (self.folder / name).write_text(RECIPE.format(label=label, model=model, algorithm=algorithm), encoding="utf-8")
        return name

    def evaluation(self, run):
        return json.loads(self.fedep("evaluate", run, "--data", ".", "--json")[0])

    def test_hospitals_that_differ_are_predicted_by_their_own_intercepts(self):
        self.fedep("run", self.recipe(), "--out", "own", "--data", ".")
        self.fedep("run", self.recipe(model=""), "--out", "one", "--data", ".")
        own, one = self.evaluation("own"), self.evaluation("one")
        for score in ("nll", "nll_marginal"):
            self.assertLess(own["metrics"][score], one["metrics"][score] - 0.05)
        # The run's own last scores are those of the command.
        lines = (self.folder / "own" / "log.jsonl").read_text(encoding="utf-8").splitlines()
        last = [line for line in map(json.loads, lines) if "nll_marginal" in line][-1]
        for score in ("nll", "nll_marginal"):
            self.assertAlmostEqual(last[score], own["metrics"][score], places=6)
        # Every hospital has a file of its own, and nothing else is kept of its intercept.
        self.assertEqual(len(list((self.folder / "own" / "intercepts").iterdir())), 6)
        self.assertFalse((self.folder / "one" / "intercepts").exists())

    def test_a_run_that_was_stopped_ends_in_the_same_bytes(self):
        recipe = self.recipe()
        self.fedep("run", recipe, "--out", "whole", "--data", ".")
        self.fedep("run", recipe, "--out", "parts", "--data", ".", "--rounds", "7", code=3)
        self.fedep("run", recipe, "--out", "parts", "--data", ".", "--resume")
        whole, parts = self.folder / "whole", self.folder / "parts"
        for path in sorted((whole / "intercepts").iterdir()):
            self.assertEqual((parts / "intercepts" / path.name).read_bytes(), path.read_bytes())
        # Files that are missing are made again.
        victim = sorted((parts / "intercepts").iterdir())[0]
        before = victim.read_bytes()
        victim.unlink()
        self.fedep("run", recipe, "--out", "parts", "--data", ".", "--resume")
        self.assertEqual(victim.read_bytes(), before)

    def test_noise_is_estimated_beside_intercepts(self):
        both = 'site_intercept = true\nnoise = "estimated"'
        for algorithm in ("fed_ep", "fed_sep"):
            with self.subTest(algorithm):
                self.fedep("run", self.recipe("number", both, algorithm), "--out", algorithm, "--data", ".")
                metrics = self.evaluation(algorithm)["metrics"]
                # Noise is 2: the NLL of a normal with that deviation.
                self.assertAlmostEqual(metrics["nll_marginal"], 0.5 * math.log(2 * math.pi * math.e * 4), delta=0.2)
                self.assertAlmostEqual(metrics["error_ratio_marginal"], 1, delta=0.25)

    def test_predictions_use_the_intercept_of_a_hospital_that_took_part(self):
        self.fedep("run", self.recipe(), "--out", "own", "--data", ".")
        (self.folder / "new.csv").write_text("hospital,x\nh0,0.3\nh5,0.3\nnowhere,0.3\n", encoding="utf-8")
        (self.folder / "alone.csv").write_text("x\n0.3\n", encoding="utf-8")

        def predict(name):
            text, notes = self.fedep("predict", "own", "--data", name, "--samples", "400")
            header, *rows = [line.split(",") for line in text.splitlines()]
            return [dict(zip(header, row)) for row in rows], notes

        (first, last, nowhere), notes = predict("new.csv")
        self.assertIn("1 of 3 rows are of hospitals that took no part, first nowhere", notes)
        yes = [float(row["p_yes"]) for row in (first, nowhere, last)]
        self.assertLess(yes[0], 0.2)
        self.assertGreater(yes[2], 0.8)
        self.assertTrue(0.25 < yes[1] < 0.75, yes)
        (alone,), notes = predict("alone.csv")
        self.assertIn("rows do not say whose they are", notes)
        self.assertEqual(alone["p_yes"], nowhere["p_yes"])

    def test_intervals_are_tried_of_all_shared_parameters(self):
        recipe = self.recipe("number", 'site_intercept = true\nnoise = "estimated"')
        study = json.loads(self.fedep("coverage", recipe, "--data", ".", "--replicates", "4", "--json")[0])
        self.assertEqual([row["name"] for row in study["coefficients"]], ["x", "intercept", "log_site_sd", "log_noise"])

    def test_what_cannot_be_is_refused_in_one_line(self):
        recipe = self.recipe()
        for change, said in (
            ("server.prior=flat", "model.site_intercept needs a proper prior"),
            ("phase.0.algorithm=fed_avg", "phase.0.algorithm is fed_avg"),
            ("phase.inference={name=\"hmc\"}", "it is hmc"),
            ("data.label=classes", "model.site_intercept needs dense columns"),
            ("model.noise=estimated", "model.noise can be estimated where the outcome is a number"),
            ("model.noise=guessed", "a positive number or estimated"),
        ):
            with self.subTest(change):
                _, error = self.fedep("run", recipe, "--out", "never", "--data", ".", "--set", change, code=2)
                self.assertIn(said, error)
                self.assertFalse((self.folder / "never").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
