#!/usr/bin/env python3
"""Runs whose posteriors must not be told as intervals, one for every reason, and that no command and no format does: neither an interval
nor a deviation nor a draw, but why, and which key to change. One run whose precisions were inferred has all of them, so that this
test would see them.

    withheld_test.py PROGRAM
"""

import csv
import json
import math
import random
import re
import struct
import sys
import unittest

from program import FolderTest, Program

PROGRAM = None

RECIPE = """
seed = 3
[data]
name = "tabular"
path = "stays.csv"
client_column = "ward"
label_column = "{outcome}"
label = "{label}"
{label_positive}
features = "{features}"
[client]
epochs = 8
batch = 20
optimizer = {{ name = "sgd", lr = {lr} }}
weight_decay = {weight_decay}
[server]
clients_per_round = 3
prior = {{ mean = 0.0, precision = {prior} }}
{server}
[[phase]]
algorithm = "{algorithm}"
rounds = {rounds}
factors = "flat"
{phase}
[phase.inference]
{inference}
[evaluate]
samples = 5
"""

LAPLACE = 'name = "laplace"\nfamily = "diagonal"\n'
NGVI = 'name = "ngvi"\nfamily = "diagonal"\nepochs = 2\n'
MOMENTS = 'name = "sample_moments"\n'

# Why nothing is told: what a recipe has for it, words of the reason and the key that it names.
REASONS = {
    "set": (dict(inference='name = "scaled_identity"\nalpha = 0.2'), "precisions are set", "phase.0.inference.name"),
    "scaled by Laplace": (dict(inference=LAPLACE + "scale = 3"), "3 times what clients inferred", "phase.0.inference.scale = 1"),
    "scaled by NGVI": (dict(inference=NGVI + "scale = 0.5"), "0.5 times what clients inferred", "phase.0.inference.scale = 1"),
    "begun by NGVI": (dict(inference=NGVI), "where a visit's running mean begins", "phase.0.inference.epochs"),
    "clipped by the method": (dict(inference=LAPLACE + "clip_std = 2"), "precisions are clipped", "phase.0.inference.clip_std = 0"),
    "rescaled": (
        dict(inference=MOMENTS + "langevin = true\nshrinkage = 1e-4\nrescale = true"),
        "precisions are rescaled",
        "phase.0.inference.rescale = false",
    ),
    "no draws": (dict(inference=MOMENTS + "shrinkage = 0.1"), "no draws from a posterior", "phase.0.inference.langevin = true"),
    "shrunk": (
        dict(inference=MOMENTS + "langevin = true\nshrinkage = 0.1"),
        "variances that are mixed with 1",
        "phase.0.inference.shrinkage = 0",
    ),
    "clipped answers": (dict(inference=LAPLACE, phase="clip = 3"), "were clipped in", "phase.0.clip = 0"),
    "raised to a floor": (
        dict(inference=LAPLACE, phase='guard = "floor"\nguard_floor = 500'),
        "guard_floor = 500",
        "phase.0.guard",
    ),
    "data counted twice": (dict(inference=LAPLACE, phase='cavity = "whole"'), "once more", "phase.0.cavity"),
    "an average": (dict(inference=LAPLACE, phase='cavity = "flat"'), "an average of the clients' own", "phase.0.cavity"),
    "weighted": (
        dict(inference=LAPLACE, algorithm="fed_sep", phase='weight = "examples"'),
        "weighted by their examples",
        "phase.0.weight",
    ),
    "cannot be inverted": (dict(features="age, sodium, years", prior="1e-6"), "condition number", "data.features"),
    "improper": (
        dict(
            inference=LAPLACE + "alpha = 10",
            rounds=1,
            phase='guard = "count"',
            server='damping = 1.0\noptimizer = { name = "sgd", lr = 3 }',
            factors="carry_mean",
        ),
        "not positive",
        "phase.0.guard",
    ),
    "diverged": (dict(inference=LAPLACE, lr=1e24, weight_decay=1e24), "answers were refused in 4 of 4 rounds", "client.optimizer.lr"),
    "not converged": (dict(server="damping = 0.03", rounds=80), "it has not converged", "phase.0.rounds"),
}


def recipe_of(outcome, **what):
    number = outcome == "days"
    values = dict(
        outcome=outcome,
        label="number" if number else "yes_no",
        label_positive="" if number else 'label_positive = "yes"',
        features="age, sodium",
        prior=1.0,
        lr=0.05,
        weight_decay=0.0,
        server="",
        algorithm="fed_ep",
        rounds=4,
        phase="",
        inference="",
    )
    factors = what.pop("factors", "flat")
    return RECIPE.format(**{**values, **what}).replace('factors = "flat"', f'factors = "{factors}"')


def rows():
    draw = random.Random(4)
    for i in range(240):
        age, sodium = draw.gauss(60, 15), draw.gauss(140, 3)
        died = draw.random() < 1 / (1 + math.exp(-(age - 60) / 10))
        days = (age - 60) / 15 + draw.gauss(0, 1)
        yield "ABC"[i % 3], "yes" if died else "no", f"{days:.3f}", f"{age:.1f}", f"{sodium:.1f}", f"{age:.1f}"


def metadata(file):
    """Of a safetensors file."""
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size])["__metadata__"]


def page_data(file):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read_text(), re.S)
    return json.loads(found.group(1))


class Withheld(FolderTest):
    def setUp(self):
        super().setUp()
        with open(self.folder / "stays.csv", "w", newline="") as file:
            csv.writer(file).writerows([("ward", "died", "days", "age", "sodium", "years"), *rows()])
        (self.folder / "new.csv").write_text("age,sodium,years\n70,140,70\n50,139,50\n")

    def play(self, name, recipe):
        run = self.folder / name.replace(" ", "_")
        file = run.with_suffix(".toml")
        file.write_text(recipe)
        self.assert_finishes(PROGRAM.run("run", file, "--data", self.folder, "--out", run))
        return run

    def do(self, command, run, *arguments):
        return self.assert_finishes(PROGRAM.run(command, run, *arguments))

    def all_that_is_told(self, run):
        """Everything of every command and format that rests on a precision, and everything that was said."""
        told, said = {}, {}
        done = self.do("coefficients", run)
        told["coefficients"] = re.findall(r"95 %|\bsd\b|-?\d+\.\d+ to +-?\d+\.\d+", done.stdout)
        said["coefficients"] = done.stdout
        table = json.loads(self.do("coefficients", run, "--json").stdout)
        told["coefficients --json"] = [row[key] for row in table["coefficients"] for key in ("sd", "low", "high") if row[key] is not None]
        told["coefficients --json"] += [
            row[key] for row in table["coefficients"] for key in row if key.endswith(("_low", "_high")) and row[key] is not None
        ] + table.get("shares", [])
        said["coefficients --json"] = table.get("withheld", "")
        done = self.do("coefficients", run, "--format", "csv", "--shares")
        columns = ("low", "high", "ratio_low", "ratio_high", "standardised_sd", "standardised_low", "standardised_high")
        lines = list(csv.DictReader(done.stdout.splitlines()))
        told["coefficients csv"] = [row[key] for row in lines for key in row if row[key] and (key in columns or key.startswith("share"))]
        said["coefficients csv"] = done.stderr
        done = self.do("coefficients", run, "--format", "latex")
        told["coefficients latex"] = re.findall(r"95 .%|\$ to \$", done.stdout)
        said["coefficients latex"] = done.stdout
        self.do("coefficients", run, "--forest", run.with_suffix(".svg"))
        plot = run.with_suffix(".svg").read_text()
        told["forest plot"] = re.findall(r"95 %|>to<", plot)
        said["forest plot"] = re.sub(r"</text>\s*<text[^>]*>", " ", plot).replace("&apos;", "'").replace("&quot;", '"')
        self.assertEqual(len(table["coefficients"]), 4 if "years" in done.stdout else 3)

        new = ("--data", self.folder / "new.csv")
        done = self.do("predict", run, *new)
        lines = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual(len(lines), 2)
        told["predict"] = [row[key] for row in lines for key in ("mutual_information", "deviation") if row.get(key)]
        said["predict"] = done.stderr
        done = self.do("predict", run, *new, "--format", "jsonl", "--samples", 7)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        told["predict jsonl"] = [row[key] for row in lines for key in ("mutual_information", "deviation") if row.get(key) is not None]
        said["predict jsonl"] = lines[0].get("withheld", "")

        data = ("--data", self.folder)
        done = self.do("evaluate", run, *data, "--samples", 7, "--per-client")
        told["evaluate"] = re.findall("marginal", done.stdout)
        said["evaluate"] = done.stderr
        for how, scores in (
            ("evaluate --json", json.loads(self.do("evaluate", run, *data, "--json").stdout)),
            ("evaluation.json", json.loads((run / "evaluation.json").read_text())),
        ):
            metrics = [*scores["metrics"], *(name for client in scores["per_client"] for name in client["metrics"])]
            told[how] = [name for name in metrics if name.endswith("_marginal")] + [scores["samples"]] * (scores["samples"] > 0)
            said[how] = scores.get("withheld", "")

        out = run.with_suffix(".exported")
        done = self.do("export", run, "--out", out)
        told["export"] = [file.name for file in out.iterdir() if not file.name.startswith("mean")]
        said["export"] = done.stderr
        said["export's metadata"] = metadata(out / "mean.safetensors").get("withheld", "")

        page = run.with_suffix(".html")
        self.assert_succeeds(PROGRAM.run("report", run, "--out", page))
        posterior = page_data(page)["runs"][0]["posterior"]
        told["report"] = [key for key in ("deviation", "edges", "layers") if posterior.get(key)]
        said["report"] = posterior.get("withheld", "")
        return told, said

    def expect_withheld(self, run, words, key):
        told, said = self.all_that_is_told(run)
        for how, what in told.items():
            self.assertEqual(what, [], f"{run.name}: {how} must tell nothing")
        for how, text in said.items():
            self.assertIn(words, text, f"{run.name}: {how}")
            self.assertIn(key, text, f"{run.name}: {how}")

    def test_an_inferred_posterior_is_told_by_every_command(self):
        for outcome in ("died", "days"):
            told, said = self.all_that_is_told(self.play(outcome, recipe_of(outcome, inference=LAPLACE)))
            for how, what in told.items():
                self.assertTrue(what, f"{outcome}: {how}")
            self.assertNotIn("no intervals", said["coefficients"])
            self.assertEqual(said["report"], "")

    def test_none_is_told_where_it_was_not_inferred(self):
        self.assertGreaterEqual(len(REASONS), 10)
        for name, (what, words, key) in REASONS.items():
            with self.subTest(name):
                self.expect_withheld(self.play(name, recipe_of("died", **what)), words, key)

    def test_a_predicted_number_has_no_deviation_then(self):
        for name in ("set", "scaled by Laplace"):
            what, words, key = REASONS[name]
            self.expect_withheld(self.play(name, recipe_of("days", **what)), words, key)

    def test_the_part_of_alpha_is_shown_and_said_above_five_percent(self):
        # With K = 3 of 3 a visit replaces 1/3: after 4 rounds (2/3)^4 of alpha an example are left.
        run = self.play("short", recipe_of("died", inference=LAPLACE, factors="carry_mean"))
        shown = self.do("coefficients", run).stdout
        self.assertIn("alpha's", shown)
        self.assertIn("still alpha from the phase's beginning", shown)
        table = json.loads(self.do("coefficients", run, "--json").stdout)
        left = 192 * (2 / 3) ** 4  # of 240 rows a fifth is held out
        for row in table["coefficients"]:
            self.assertAlmostEqual(row["start_share"], left * row["sd"] ** 2, places=4)
        self.assertTrue(any("still alpha" in note for note in table["notes"]))
        for done in (
            self.do("predict", run, "--data", self.folder / "new.csv"),
            self.do("evaluate", run, "--data", self.folder),
            self.do("export", run, "--out", self.folder / "out"),
        ):
            self.assertIn("still alpha", done.stderr)
        self.assertIn("still alpha", metadata(self.folder / "out" / "std.safetensors")["note"])
        self.assert_succeeds(PROGRAM.run("report", run, "--out", self.folder / "page.html"))
        self.assertIn("still alpha", page_data(self.folder / "page.html")["runs"][0]["posterior"]["note"])
        # Long enough, and it is shown but not worth a word.
        full = 'name = "laplace"\nfamily = "full"'  # without a chain's noise
        run = self.play("long", recipe_of("died", inference=full, factors="carry_mean", rounds=30))
        shown = self.do("coefficients", run).stdout
        self.assertIn("alpha's", shown)
        self.assertNotIn("still alpha from", shown)

    def test_what_is_left_of_alpha_survives_a_stop(self):
        recipe = recipe_of("died", inference=LAPLACE, factors="carry_mean", rounds=9)
        whole = self.play("whole", recipe)
        part = self.play("part", recipe.replace("rounds = 9", "rounds = 5"))
        file = self.folder / "part.toml"
        file.write_text(recipe)
        options = ("--data", self.folder, "--out", part, "--resume", "--set", "phase.0.rounds=9")
        self.assert_finishes(PROGRAM.run("run", file, *options))
        last = [json.loads((run / "log.jsonl").read_text().splitlines()[-2])["start_precision"] for run in (whole, part)]
        self.assertEqual(last[0], last[1])

    def test_two_columns_that_are_the_same_have_no_sure_coefficient(self):
        """Nothing tells b from c where both columns are one: only the prior, N(0, 1), holds b - c, whose variance is 2 then. So
        each of them has a variance of 1/2 at least, whatever the data are."""
        for name, what in (
            ("quadrature", dict()),
            ("laplace", dict(inference='name = "laplace"\nfamily = "full"')),
            ("ngvi", dict(inference='name = "ngvi"\nfamily = "full"')),
            ("hmc", dict(inference='name = "hmc"', rounds=5)),  # too short to be judged: draws move q
            ("stateless", dict(algorithm="fed_sep")),
        ):
            with self.subTest(name):
                run = self.play(name, recipe_of("died", features="age, sodium, years", **{"rounds": 30, **what}))
                table = json.loads(self.do("coefficients", run, "--json").stdout)
                self.assertEqual(table["family"], "full")
                found = {row["name"]: row for row in table["coefficients"]}
                for column in ("age", "years"):
                    self.assertGreater(found[column]["sd"], 0.95 * math.sqrt(0.5))
                self.assertLess(found["sodium"]["sd"], 0.4)


if __name__ == "__main__":
    PROGRAM = Program(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
