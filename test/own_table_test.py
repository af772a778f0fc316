#!/usr/bin/env python3
"""The recipe for a table of one's own in docs/hospitals.md, on six hospitals' made-up rows: what `fedep coefficients`
prints is near the posterior of the pooled rows, in Laplace's approximation. For an outcome that is a number it is that posterior. The README's way from such a table to a report is followed, too.

    own_table_test.py PROGRAM
"""

import csv
import json
import math
import random
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from program import FolderTest, Program

PROGRAM = None
ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
HOSPITALS = {"north": 150, "south": 150, "east": 120, "west": 100, "lake": 60, "hill": 20}
NOISE = 4.0  # of days


def own_table_recipe():
    return re.search(r"```toml own_table.toml\n(.*?)```", (DOCS / "hospitals.md").read_text(), re.S).group(1)


def in_readme(block):
    return re.search(rf"```{block}\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)


def stays():
    draw = random.Random(5)
    for hospital, rows in HOSPITALS.items():
        for _ in range(rows):
            age, lactate = draw.gauss(60, 15), draw.gauss(2, 0.7)
            unit, sex = draw.choice(["icu", "ward", "ward"]), draw.choice("fm")
            score = (age - 60) / 20 + (lactate - 2) - 0.5 + (0.8 if unit == "icu" else 0)
            died = draw.random() < 1 / (1 + math.exp(-score))
            yield hospital, "yes" if died else "no", f"{age:.1f}", f"{lactate:.2f}", unit, sex


def with_days(rows):
    """The rows with a number in place of yes or no."""
    draw = random.Random(6)
    for hospital, _, age, lactate, unit, sex in rows:
        days = 5 + (float(age) - 60) / 6 + 2 * (unit == "icu") + draw.gauss(0, NOISE)
        yield hospital, f"{days:.2f}", age, lactate, unit, sex


def solve(a, b):
    """x with a x = b, by elimination."""
    rows = [[*row, value] for row, value in zip(a, b)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i])]
    return [row[-1] for row in rows]


def deviations(hessian):
    """Of the normal distribution with this precision matrix."""
    n = len(hessian)
    return [math.sqrt(solve(hessian, [float(i == j) for j in range(n)])[i]) for i in range(n)]


def scaled_columns(rows):
    """Each row's scaled features and a 1 for the intercept."""
    columns = []
    for values in (
        [float(row[2]) for row in rows],
        [float(row[3]) for row in rows],
        [float(row[4] == "icu") for row in rows],
        [float(row[5] == ("m" if sum(row[5] == "m" for row in rows) * 2 < len(rows) else "f")) for row in rows],
    ):
        mean = sum(values) / len(values)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        columns.append([(value - mean) / deviation for value in values])
    return [[*features, 1.0] for features in zip(*columns)]


def pooled_posterior(rows):
    """Mode under N(0, 1), and deviations of the normal distribution with the log-posterior's curvature there."""
    examples = scaled_columns(rows)
    labels = [row[1] == "yes" for row in rows]
    n = len(examples[0])
    weights = [0.0] * n
    for _ in range(20):
        gradient, hessian = [-w for w in weights], [[float(i == j) for j in range(n)] for i in range(n)]
        for x, y in zip(examples, labels):
            p = 1 / (1 + math.exp(-sum(w * value for w, value in zip(weights, x))))
            for i in range(n):
                gradient[i] += (y - p) * x[i]
                for j in range(n):
                    hessian[i][j] += p * (1 - p) * x[i] * x[j]
        weights = [w + step for w, step in zip(weights, solve(hessian, gradient))]
    return weights, deviations(hessian)


def pooled_regression(rows):
    """The same of days, in closed form."""
    examples = scaled_columns(rows)
    n = len(examples[0])
    hessian = [[(i == j) + sum(x[i] * x[j] for x in examples) / NOISE**2 for j in range(n)] for i in range(n)]
    right = [sum(x[i] * float(row[1]) for x, row in zip(examples, rows)) / NOISE**2 for i in range(n)]
    return solve(hessian, right), deviations(hessian)


class OwnTable(FolderTest):
    def write_table(self, outcome, rows):
        with open(self.folder / "stays.csv", "w", newline="") as file:
            csv.writer(file).writerows([("hospital", outcome, "age", "lactate", "unit", "sex"), *rows])

    def coefficients(self, outcome, rows, *settings):
        self.write_table(outcome, rows)
        (self.folder / "own_table.toml").write_text(own_table_recipe())
        options = ["--data", "."]
        for setting in ("data.test_fraction=0", *settings):  # so that all rows train
            options += ["--set", setting]
        done = self.assert_succeeds(PROGRAM.run("check", "own_table.toml", *options, cwd=self.folder))
        self.assertNotIn("diverge", done.stderr)
        done = self.assert_succeeds(PROGRAM.run("run", "own_table.toml", *options, "--out", "run", cwd=self.folder))
        self.assertNotIn("refused", done.stderr)
        done = self.assert_succeeds(PROGRAM.run("coefficients", "run", "--json", cwd=self.folder))
        return json.loads(done.stdout)["coefficients"]

    def assert_near(self, found, posterior, off):
        for coefficient, mean, deviation in zip(found, *posterior, strict=True):
            with self.subTest(coefficient=coefficient["name"]):
                self.assertLess(abs(coefficient["mean"] - mean) / deviation, off)
                self.assertLess(abs(coefficient["sd"] / deviation - 1), off)

    def test_has_the_posterior_of_the_pooled_rows(self):
        rows = list(stays())
        found = self.coefficients("died", rows)
        self.assert_near(found, pooled_posterior(rows), 0.15)  # its mean is not its mode
        self.assertEqual([c["name"].split(" vs ")[0][:7] for c in found][:2], ["age", "lactate"])
        (self.folder / "new.csv").write_text("age,lactate,unit,sex\n90,4,icu,f\n30,1,ward,m\n")
        done = self.assert_succeeds(PROGRAM.run("predict", "run", "--data", "new.csv", cwd=self.folder))
        self.assertIn("yes means that died is yes", done.stderr)
        predicted = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual([row["prediction"] for row in predicted], ["yes", "no"])
        self.assertGreater(float(predicted[0]["p_yes"]), 0.8)

    def test_has_it_for_a_number_too(self):
        rows = list(with_days(stays()))
        settings = ("data.label_column=days", "data.label=number", f"model.noise={NOISE}")
        self.assert_near(self.coefficients("days", rows, *settings), pooled_regression(rows), 0.001)

    def test_becomes_a_report_as_the_readme_says(self):
        self.write_table("died", stays())
        (self.folder / "stays.toml").write_text(in_readme("toml stays.toml"))
        (self.folder / "bin").mkdir()
        (self.folder / "bin/fedep").symlink_to(PROGRAM.path)
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        for command in in_readme("sh").splitlines():
            done = subprocess.run(
                command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
            )
            self.assert_succeeds(done)
            if command.startswith("fedep check"):
                self.assertIn("6 clients, 480 examples, 5 weights: ready to run", done.stderr)
                (self.folder / "own_table.toml").write_text(own_table_recipe())
                other = self.assert_succeeds(PROGRAM.run("check", "own_table.toml", "--data", ".", cwd=self.folder))
                self.assertEqual(done.stdout, other.stdout)  # one recipe in both places
        self.assertIn("</html>", (self.folder / "report.html").read_text())


if __name__ == "__main__":
    PROGRAM = Program(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
