#!/usr/bin/env python3
"""`fedep coefficients` on made-up hospitals whose effects are known: a column in other units has the same effect for the same change,
text, CSV, LaTeX and JSON say the same, a forest plot is drawn, and options that do not fit are refused in one line.

    coefficients_test.py PROGRAM
"""

import csv
import io
import json
import math
import random
import re
import sys
import unittest
import xml.etree.ElementTree

from program import FolderTest, Program

PROGRAM = None
ODDS = {"hdu": 0.4, "icu": 0.9, "ward": 0.0}  # log odds of an event against ward
AGE = 0.05  # a year

RECIPE = """
seed = 2
[data]
name = "tabular"
path = "stays.csv"
client_column = "hospital"
label_column = "{outcome}"
label = "{label}"
features = "{age}, lactate, unit"
categories = "unit"
test_fraction = 0.0
[model]
noise = 3.0
[server]
clients_per_round = 4
prior = {{ mean = 0.0, precision = 0.1 }}
damping = 0.5
[[phase]]
algorithm = "{algorithm}"
rounds = 15
factors = "flat"
"""


def stays(rows=1200):
    draw = random.Random(8)
    for i in range(rows):
        age, lactate, unit = round(draw.gauss(60, 15)), draw.gauss(2, 0.7), draw.choice(["icu", "hdu", "ward", "ward"])
        line = AGE * (age - 60) + ODDS[unit]
        died = draw.random() < 1 / (1 + math.exp(-line))
        falls = sum(draw.random() < math.exp(line - 2) / 100 for _ in range(100))
        days = 5 + 10 * line + draw.gauss(0, 3)
        yield "ABCD"[i % 4], int(died), falls, f"{days:.2f}", age, 12 * age, f"{lactate:.2f}", unit


class Coefficients(FolderTest):
    def setUp(self):
        super().setUp()
        with open(self.folder / "stays.csv", "w", newline="") as file:
            head = ("hospital", "died", "falls", "days", "age", "months", "lactate", "unit")
            csv.writer(file).writerows([head, *stays()])

    def play(self, name, outcome="died", label="yes_no", age="age", algorithm="fed_ep"):
        recipe = self.folder / f"{name}.toml"
        recipe.write_text(RECIPE.format(outcome=outcome, label=label, age=age, algorithm=algorithm))
        self.assert_succeeds(PROGRAM.run("run", recipe, "--data", self.folder, "--out", self.folder / name))
        return self.folder / name

    def do(self, run, *options):
        return self.assert_succeeds(PROGRAM.run("coefficients", run, *options)).stdout

    def table(self, run, *options):
        return json.loads(self.do(run, "--json", *options))

    def rows(self, run, *options):
        return {row["name"]: row for row in self.table(run, *options)["coefficients"]}

    def test_own_units_are_those_of_the_truth_for_every_outcome(self):
        for outcome, label, times in (("died", "yes_no", 1), ("falls", "count", 1), ("days", "number", 10)):
            table = self.table(self.play(outcome, outcome, label))
            rows = {row["name"]: row for row in table["coefficients"]}
            self.assertEqual(table["ratio"], {"died": "odds ratio", "falls": "rate ratio", "days": ""}[outcome])
            for name, truth in (("age", AGE), ("lactate", 0.0), ("unit=icu vs ward", ODDS["icu"]), ("unit=hdu vs ward", ODDS["hdu"])):
                with self.subTest(f"{outcome} {name}"):
                    row = rows[name]
                    sd = (row["estimate_high"] - row["estimate_low"]) / (2 * 1.959964)
                    self.assertLess(abs(row["estimate"] - times * truth), 3.5 * sd)
                    if label == "number":
                        self.assertIsNone(row["ratio"])
                    else:
                        self.assertAlmostEqual(row["ratio"], math.exp(row["estimate"]))
                        self.assertAlmostEqual(row["ratio_low"], math.exp(row["estimate_low"]))

    def test_a_column_in_other_units_has_the_same_effect_for_the_same_change(self):
        years, months = self.play("years"), self.play("months", age="months")
        a, b, c = self.rows(years), self.rows(months), self.rows(months, "--per", "months=12")
        for key in ("mean", "sd", "low", "high"):
            self.assertAlmostEqual(a["age"][key], b["months"][key], places=5)
        for key in ("estimate", "estimate_low", "estimate_high"):
            self.assertAlmostEqual(a["age"][key], 12 * b["months"][key], places=6)
        for key in ("ratio", "ratio_low", "ratio_high"):
            self.assertAlmostEqual(a["age"][key], c["months"][key], places=5)
        self.assertEqual({k: v for k, v in b.items() if k != "months"}, {k: v for k, v in c.items() if k != "months"})

    def test_formats_say_the_same(self):
        run = self.play("run")
        options = ("--level", "0.9", "--per", "age=10", "--contrast", "unit=icu,hdu")
        table = self.table(run, *options)
        rows = [*table["coefficients"], *table["contrasts"]]
        self.assertEqual(table["level"], 0.9)
        lines = list(csv.DictReader(io.StringIO(self.do(run, *options, "--format", "csv"))))
        self.assertEqual([line["name"] for line in lines], [row["name"] for row in rows])
        keys = {"estimate": "estimate", "low": "estimate_low", "high": "estimate_high", "ratio": "ratio", "ratio_high": "ratio_high"}
        for line, row in zip(lines, rows):
            for column, key in {**keys, "standardised": "mean", "standardised_sd": "sd"}.items():
                self.assertEqual(float(line[column]) if line[column] else None, row[key])
        latex = self.do(run, *options, "--format", "latex")
        text = self.do(run, *options)
        self.assertIn("90 % interval", text)
        for row in rows:
            name = row["name"] + (", per 10" if row["name"] == "age" else "")
            shown = next(line for line in text.splitlines() if line.startswith(name + " "))
            numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", shown[len(name) :])]
            cells = next(line for line in latex.splitlines() if line.startswith(name + " &"))
            in_latex = [float(n) for n in re.findall(r"\$(-?[\d.]+)\$", cells)]
            expected = [row[key] for key in ("estimate", "estimate_low", "estimate_high", "ratio", "ratio_low", "ratio_high")]
            expected = [n for n in expected if n is not None]
            self.assertEqual(len(numbers), len(expected))
            for found, number in zip(numbers, expected):
                self.assertAlmostEqual(found, number, delta=0.0051)
            ratios = len(expected) == 6
            self.assertEqual(in_latex[: len(expected)], numbers[3:] + numbers[:3] if ratios else numbers)

    def test_one_level_against_another_is_the_opposite_of_the_other(self):
        run = self.play("run")
        table = self.table(run, "--contrast", "unit=icu,hdu", "--contrast", "unit=hdu,icu", "--contrast", "unit=ward,icu")
        there, back, reference = table["contrasts"]
        self.assertAlmostEqual(there["estimate"], -back["estimate"])
        self.assertAlmostEqual(there["estimate_low"], -back["estimate_high"])
        self.assertAlmostEqual(there["ratio"], 1 / back["ratio"])
        rows = {row["name"]: row for row in table["coefficients"]}
        self.assertAlmostEqual(reference["estimate"], -rows["unit=icu vs ward"]["estimate"])
        self.assertAlmostEqual(there["estimate"], rows["unit=icu vs ward"]["estimate"] - rows["unit=hdu vs ward"]["estimate"])

    def test_shares_add_up_to_one(self):
        run = self.play("run")
        table = self.table(run, "--shares")
        self.assertEqual([share["of"] for share in table["shares"]], ["prior", "A", "B", "C", "D"])
        self.assertAlmostEqual(sum(share["share"] for share in table["shares"]), 1)
        for row in table["coefficients"]:
            self.assertAlmostEqual(sum(row["shares"]), 1)
            self.assertTrue(all(0 < share < 0.4 for share in row["shares"]))  # 300 rows each
        self.assertIn("share of A", self.do(run, "--shares", "--format", "csv").splitlines()[0])
        self.assertIn("not whose are better", self.do(run))
        sep = self.play("sep", algorithm="fed_sep")
        self.assertIn("fed_sep keeps no factor", self.do(sep))
        self.assertNotIn("shares", self.table(sep, "--shares"))

    def test_files_are_written(self):
        run = self.play("run")
        for name, begin in (("t.csv", "name,kind,"), ("t.tex", "% needs"), ("t.json", '{"data"'), ("t.txt", "tabular, fed_ep")):
            self.assertEqual(self.do(run, "--out", self.folder / name), "")
            self.assertTrue((self.folder / name).read_text().startswith(begin), name)
        self.do(run, "--forest", self.folder / "forest.svg")
        texts = [e.text for e in xml.etree.ElementTree.parse(self.folder / "forest.svg").iter() if e.tag.endswith("text")]
        self.assertIn("Odds ratios of died", texts)
        self.assertIn("unit=icu vs ward", texts)
        self.assertNotIn("intercept", texts)

    def test_what_does_not_fit_is_refused_in_one_line(self):
        run = self.play("run")
        for options, words in (
            (("--level", "95"), "between 0 and 1"),
            (("--level", "0"), "between 0 and 1"),
            (("--per", "unit=2"), "holds numbers"),
            (("--per", "age=0"), "positive"),
            (("--contrast", "unit=icu,nowhere"), "two levels"),
            (("--reference", "died"), "several classes"),
            (("--format", "excel"), "format"),
            (("--json", "--format", "csv"), "one of them"),
        ):
            self.assert_one_line(PROGRAM.run("coefficients", run, *options), 2, words)


if __name__ == "__main__":
    PROGRAM = Program(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
