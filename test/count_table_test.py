#!/usr/bin/env python3
"""A table of counts with exposures, as a user has it: near the posterior of the pooled rows, predictions in proportion to
exposures, and what is no count or no exposure refused with its line.

    count_table_test.py PROGRAM
"""

import csv
import json
import math
import random
import sys
import unittest

from own_table_test import deviations, solve
from program import FolderTest, Program

PROGRAM = None
TRUTH = (0.3, -0.2, -1.5)  # of a, of b, and the intercept
RECIPE = """
[data]
name = "tabular"
path = "falls.csv"
client_column = "ward"
label_column = "falls"
label = "count"
exposure_column = "days"
scale = false
test_fraction = 0.0
[client]
epochs = 20
batch = 20
optimizer.lr = 0.005
[server]
clients_per_round = 4
prior = { precision = 1.0 }
[[phase]]
algorithm = "fed_ep"
rounds = 25
factors = "flat"
"""
# Chains are noisy: a cooldown averages that away.
DIAGONAL = (
    *("--set", "phase.0.inference.name=laplace", "--set", "phase.0.inference.family=diagonal"),
    *("--set", "phase.0.cooldown={after=10, rounds=15, to=0.05}"),
)


def poisson(draw, mean):
    """By counting arrivals."""
    count, left = 0, draw.expovariate(1)
    while left < mean:
        count, left = count + 1, left + draw.expovariate(1)
    return count


def falls():
    draw = random.Random(3)
    for ward in range(4):
        for _ in range(80):
            a, b, days = draw.gauss(0, 1), draw.gauss(0, 1), draw.uniform(1, 30)
            mean = days * math.exp(TRUTH[0] * a + TRUTH[1] * b + TRUTH[2])
            yield f"ward {ward}", poisson(draw, mean), f"{days:.3f}", f"{a:.4f}", f"{b:.4f}"


def pooled_posterior(rows):
    """Mode under N(0, 1), and the negative log-posterior's second derivatives there."""
    weights = [0.0, 0.0, 0.0]
    for _ in range(30):
        gradient, hessian = [-w for w in weights], [[float(i == j) for j in range(3)] for i in range(3)]
        for _, count, days, a, b in rows:
            x = (float(a), float(b), 1.0)
            mean = float(days) * math.exp(sum(w * value for w, value in zip(weights, x)))
            for i in range(3):
                gradient[i] += (count - mean) * x[i]
                for j in range(3):
                    hessian[i][j] += mean * x[i] * x[j]
        weights = [w + step for w, step in zip(weights, solve(hessian, gradient))]
    return weights, hessian


class CountTable(FolderTest):
    def write(self, rows):
        (self.folder / "falls.toml").write_text(RECIPE)
        with open(self.folder / "falls.csv", "w", newline="") as file:
            csv.writer(file).writerows([("ward", "falls", "days", "a", "b"), *rows])

    def coefficients(self, rows, *options):
        self.write(rows)
        command = ("run", "falls.toml", "--data", ".", "--out", "run", *options)
        self.assert_succeeds(PROGRAM.run(*command, cwd=self.folder))
        done = self.assert_succeeds(PROGRAM.run("coefficients", "run", "--json", cwd=self.folder))
        table = json.loads(done.stdout)
        self.assertEqual(table["unit"], "log of the mean count per unit")
        return table

    def assert_near(self, table, means, deviations, most, most_ratio):
        for coefficient, mean, deviation in zip(table["coefficients"], means, deviations, strict=True):
            with self.subTest(coefficient=coefficient["name"]):
                self.assertLess(abs(coefficient["mean"] - mean) / deviation, most)
                self.assertLess(abs(coefficient["sd"] / deviation - 1), most_ratio)

    def test_the_diagonal_family_is_near_the_pooled_posterior_of_single_weights(self):
        rows = list(falls())
        table = self.coefficients(rows, *DIAGONAL)
        mode, hessian = pooled_posterior(rows)
        self.assertNotIn("family", table)
        self.assert_near(table, mode, [1 / math.sqrt(hessian[i][i]) for i in range(3)], 0.5, 0.15)

    def test_has_the_pooled_covariance_unasked_and_predicts_in_proportion_to_exposures(self):
        rows = list(falls())
        table = self.coefficients(rows)
        mode, hessian = pooled_posterior(rows)
        self.assertEqual(table["family"], "full")
        self.assert_near(table, mode, deviations(hessian), 0.1, 0.03)  # the mean is not the mode
        (self.folder / "new.csv").write_text("a,b,days\n0.5,1,10\n0.5,1,1\n")
        done = self.assert_succeeds(PROGRAM.run("predict", "run", "--data", "new.csv", cwd=self.folder))
        ten, one = (float(row["mean"]) for row in csv.DictReader(done.stdout.splitlines()))
        self.assertAlmostEqual(ten / one, 10, places=4)
        self.assertAlmostEqual(one / math.exp(0.15 - 0.2 - 1.5), 1, delta=0.2)

    def test_what_is_no_count_or_no_exposure_is_refused_with_its_line(self):
        rows = list(falls())[:20]
        for bad, line in (
            (("ward 0", -1, "5", "0", "0"), "falls.csv: line 22: falls must be a count"),
            (("ward 0", 1.5, "5", "0", "0"), "falls.csv: line 22: falls must be a count"),
            (("ward 0", 1, "0", "0", "0"), "falls.csv: line 22: days must be a positive exposure, but is 0"),
        ):
            with self.subTest(bad=bad):
                self.write([*rows, bad])
                done = PROGRAM.run("check", "falls.toml", "--data", ".", cwd=self.folder)
                self.assertEqual(done.returncode, 2)
                self.assertIn(line, done.stderr)


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
