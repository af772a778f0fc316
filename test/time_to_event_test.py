#!/usr/bin/env python3
"""Time to event, as a user has it: hospitals of uneven size, a hazard that rises and falls, censoring, patients with several
spells. Coefficients are near the posterior of the pooled rows under the same likelihood and prior, and near Cox's partial
likelihood with the same penalty; risks are those of the hazard; spells that cannot be are refused with their lines.

    time_to_event_test.py PROGRAM

FEDEP_FIGURES=1 prints the distances.
"""

import csv
import json
import math
import os
import random
import sys
import unittest

from program import FolderTest, Program

try:
    import numpy as np
except ImportError:
    np = None
try:
    import lifelines
    import pandas
except ImportError:
    lifelines = None

PROGRAM = None
HOSPITALS = {"north": 520, "south": 330, "east": 200, "lake": 90, "hill": 35}
NUMBERS = ("age", "lactate")
TRUTH = {"age": 0.03, "lactate": 0.25, "treated": -0.5}
INTERVALS = 12
RECIPE = f"""
[data]
name = "tabular"
path = "stays.csv"
client_column = "hospital"
label_column = "died"
label = "time_to_event"
start_column = "from"
stop_column = "until"
group_column = "patient"
categories = "treated"
reference = "treated=no"
intervals = {INTERVALS}
test_fraction = 0.0
[server]
clients_per_round = 5
prior = {{ precision = 1.0 }}
[[prior]]
coefficient = "time=*"
precision = 0.01
[[prior]]
coefficient = "intercept"
precision = 0.0001
[[phase]]
algorithm = "fed_ep"
rounds = 20
"""


def hazard(day):
    """Of a patient at the means: high at first, low, then rising."""
    return 0.06 * math.exp(-day / 4) + 0.008 + 0.0006 * day


def stays():
    """Rows (hospital, patient, from, until, died, age, lactate, treated); some patients have two, one after the other."""
    draw = random.Random(11)
    for number, (hospital, patients) in enumerate(HOSPITALS.items()):
        for patient in range(patients):
            age = draw.gauss(58 + 3 * number, 12)
            lactate = draw.lognormvariate(0.6, 0.5)
            treated = draw.random() < 0.3 + 0.1 * number
            score = TRUTH["age"] * (age - 60) + TRUTH["lactate"] * (lactate - 2) + TRUTH["treated"] * treated
            left, day = draw.expovariate(1) / math.exp(score), 0.0
            while left > 0 and day < 60:
                left -= hazard(day) * 0.01
                day += 0.01
            censored = draw.uniform(5, 60)
            until, died = min(day, censored), int(day <= censored and left <= 0)
            until = max(0.01, round(until, 2))
            row = (f"{age:.1f}", f"{lactate:.2f}", "yes" if treated else "no")
            cut = round(until * draw.uniform(0.2, 0.8), 2)
            if draw.random() < 0.2 and 0 < cut < until:
                yield hospital, patient, 0, cut, 0, *row
                yield hospital, patient, cut, until, died, *row
            else:
                yield hospital, patient, 0, until, died, *row


class Design:
    """The rows as arrays, scaled as docs/data.md says."""

    def __init__(self, rows):
        self.start = np.array([float(row[2]) for row in rows])
        self.stop = np.array([float(row[3]) for row in rows])
        self.died = np.array([float(row[4]) for row in rows])
        raw = np.array([[float(row[5]), float(row[6]), float(row[7] == "yes")] for row in rows])
        self.x = (raw - raw.mean(0)) / raw.std(0)

    def pieces(self, cuts):
        """Design matrix with levels of time and a column of ones, counts, and times at risk: of every piece."""
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        matrix, counts, times = [], [], []
        for i in range(len(self.stop)):
            for j in range(len(ends) - 1):
                low, high = max(self.start[i], ends[j]), min(self.stop[i], ends[j + 1])
                if high <= low:
                    continue
                level = np.zeros(len(cuts))
                if j > 0:
                    level[j - 1] = 1
                matrix.append(np.concatenate([self.x[i], level]))
                counts.append(self.died[i] if high == self.stop[i] else 0)
                times.append(high - low)
        matrix = np.array(matrix)
        levels = matrix[:, 3:]
        matrix[:, 3:] = (levels - levels.mean(0)) / levels.std(0)
        return np.column_stack([matrix, np.ones(len(matrix))]), np.array(counts), np.array(times)


def pooled_posterior(matrix, counts, times, precision):
    """Means and deviations of Poisson counts' posterior: Laplace's, weighted by how far it is from the real one."""
    offset = np.log(times)
    mode = np.zeros(matrix.shape[1])
    mode[-1] = math.log(counts.sum() / times.sum())
    for _ in range(50):
        mean = np.exp(matrix @ mode + offset)
        gradient = matrix.T @ (counts - mean) - precision * mode
        hessian = (matrix.T * mean) @ matrix + np.diag(precision)
        mode = mode + np.linalg.solve(hessian, gradient)
    root = np.linalg.cholesky(np.linalg.inv(hessian))
    noise = np.random.default_rng(1).standard_normal((1000, len(mode)))
    draws = mode + np.concatenate([noise, -noise]) @ root.T

    def log_posterior(weights):
        eta = matrix @ weights + offset
        return counts @ eta - np.exp(eta).sum() - 0.5 * precision @ weights**2

    at_mode = log_posterior(mode)
    gap = np.array([log_posterior(one) - at_mode for one in draws]) + 0.5 * np.tile((noise**2).sum(1), 2)
    weights = np.exp(gap - gap.max())
    weights /= weights.sum()
    means = weights @ draws
    return means, np.sqrt(weights @ (draws - means) ** 2), 1 / (weights**2).sum()


def cox(design, precision):
    """Mode and deviations of Efron's partial likelihood under N(0, 1/precision)."""
    beta = np.zeros(3)
    at = np.unique(design.stop[design.died == 1])
    for _ in range(12):
        gradient, hessian = -precision * beta, precision * np.eye(3)
        risk = np.exp(design.x @ beta)
        for time in at:
            under = (design.start < time) & (design.stop >= time)
            events = (design.stop == time) & (design.died == 1)
            ties = int(events.sum())
            sums = [(risk[who], design.x[who]) for who in (under, events)]
            s0, t0 = (r.sum() for r, _ in sums)
            s1, t1 = (r @ x for r, x in sums)
            s2, t2 = ((x.T * r) @ x for r, x in sums)
            gradient = gradient + design.x[events].sum(0)
            for tie in range(ties):
                part = tie / ties
                r0, r1, r2 = s0 - part * t0, s1 - part * t1, s2 - part * t2
                gradient = gradient - r1 / r0
                hessian = hessian + r2 / r0 - np.outer(r1, r1) / r0**2
        beta = beta + np.linalg.solve(hessian, gradient)
    return beta, np.sqrt(np.diag(np.linalg.inv(hessian)))


class TimeToEvent(FolderTest):
    def write(self, rows, recipe=RECIPE):
        (self.folder / "stays.toml").write_text(recipe)
        with open(self.folder / "stays.csv", "w", newline="") as file:
            header = ("hospital", "patient", "from", "until", "died", "age", "lactate", "treated")
            csv.writer(file).writerows([header, *rows])

    def run_it(self, out="run", *options):
        self.assert_succeeds(PROGRAM.run("run", "stays.toml", "--data", ".", "--out", out, *options, cwd=self.folder))

    def weights(self, out="run"):
        """As the model has them, per standard deviation."""
        done = self.assert_succeeds(PROGRAM.run("coefficients", out, "--json", cwd=self.folder))
        return json.loads(done.stdout)["coefficients"]

    def features(self, out="run"):
        return json.loads((self.folder / out / "features.json").read_text())

    def tell(self, what, gaps):
        if os.environ.get("FEDEP_FIGURES"):
            print(f"\n{what}: " + " ".join(f"{gap:.3f}" for gap in gaps), file=sys.stderr)

    @unittest.skipIf(np is None, "no Python has numpy")
    def test_is_near_the_pooled_posterior_and_near_cox(self):
        rows = list(stays())
        self.write(rows)
        self.run_it()
        table = self.weights()
        self.assertEqual([row["name"] for row in table[:3]], ["age", "lactate", "treated=yes vs no"])
        means, deviations = (np.array([row[name] for row in table]) for name in ("mean", "sd"))
        cuts = self.features()["time"]["cuts"]
        self.assertEqual(len(cuts), INTERVALS - 1)
        design = Design(rows)
        for time in cuts:  # at quantiles of events
            part = (design.stop[design.died == 1] <= time).mean() * INTERVALS
            self.assertAlmostEqual(part, round(part), delta=0.2)

        precision = np.concatenate([np.ones(3), np.full(len(cuts), 0.01), [0.0001]])
        pooled, pooled_deviations, draws = pooled_posterior(*design.pieces(cuts), precision)
        self.assertGreater(draws, 500)
        gaps = np.abs(means - pooled) / pooled_deviations
        self.tell(f"{len(rows)} rows, {design.died.sum():.0f} events; against the pooled posterior, in deviations", gaps)
        self.tell("deviations over the pooled posterior's", deviations / pooled_deviations)
        self.assertLess(gaps.max(), 0.1)
        self.assertLess(np.abs(deviations / pooled_deviations - 1).max(), 0.06)

        beta, of_cox = cox(design, 1.0)
        gaps = np.abs(means[:3] - beta) / of_cox
        self.tell("against Cox's partial likelihood, in deviations", gaps)
        self.tell("deviations over Cox's", deviations[:3] / of_cox)
        self.assertLess(gaps.max(), 0.25)
        truth = np.array([0.03, 0.25, -0.5])
        raw = np.array([[float(row[5]), float(row[6]), row[7] == "yes"] for row in rows], dtype=float)
        self.assertLess((np.abs(means[:3] / raw.std(0) - truth) / (deviations[:3] / raw.std(0))).max(), 3)

    @unittest.skipIf(np is None or lifelines is None, "no Python has lifelines")
    def test_our_partial_likelihood_is_that_of_lifelines(self):
        design = Design(list(stays()))
        frame = pandas.DataFrame(design.x, columns=["a", "b", "c"])
        frame["start"], frame["stop"], frame["died"] = design.start, design.stop, design.died
        fitted = lifelines.CoxTimeVaryingFitter(penalizer=0.0)
        frame["id"] = range(len(frame))
        fitted.fit(frame, id_col="id", event_col="died", start_col="start", stop_col="stop")
        beta, deviations = cox(design, 0.0)
        self.assertLess(np.abs(fitted.params_.to_numpy() - beta).max(), 1e-3)
        self.assertLess(np.abs(fitted.standard_errors_.to_numpy() / deviations - 1).max(), 1e-2)

    def test_hospitals_together_are_one_client_with_all_rows(self):
        rows = list(stays())[:400]
        self.write(rows)
        few = ("--set", "data.intervals=5")
        self.run_it("run", "--set", "server.clients_per_round=1", *few)  # the first 400 are of one hospital
        half = [("second" if row[1] % 2 else "first", *row[1:]) for row in rows]
        self.write(half)
        self.run_it("apart", "--set", "server.clients_per_round=2", *few)
        self.assertEqual(self.features()["time"]["cuts"], self.features("apart")["time"]["cuts"])
        for one, other in zip(self.weights(), self.weights("apart"), strict=True):
            with self.subTest(name=one["name"]):
                self.assertEqual(one["name"], other["name"])
                self.assertLess(abs(one["mean"] - other["mean"]) / one["sd"], 0.1)

    def test_a_risk_is_that_of_the_hazard_and_of_its_parts(self):
        self.write(list(stays())[:500])
        self.run_it("run", "--set", "server.clients_per_round=1")
        (self.folder / "new.csv").write_text(
            "from,until,age,lactate,treated\n0,10,70,2,no\n0,4,70,2,no\n4,10,70,2,no\n0,40,70,2,no\n0,40,50,2,yes\n"
        )
        command = ("predict", "run", "--data", "new.csv")
        done = self.assert_succeeds(PROGRAM.run(*command, "--samples", 0, cwd=self.folder))
        ten, four, after, forty, less = (float(row["p_yes"]) for row in csv.DictReader(done.stdout.splitlines()))
        self.assertAlmostEqual(1 - ten, (1 - four) * (1 - after), places=5)
        self.assertTrue(four < ten < forty < 1 and less < forty)
        score = 0.03 * 10
        expected = 1 - math.exp(-math.exp(score) * sum(hazard(day / 100) / 100 for day in range(1000)))
        self.assertAlmostEqual(ten, expected, delta=0.08)
        self.assertIn("died is 1", done.stderr)
        drawn = self.assert_succeeds(PROGRAM.run(*command, "--samples", 200, cwd=self.folder))
        self.assertAlmostEqual(float(next(csv.DictReader(drawn.stdout.splitlines()))["p_yes"]), ten, delta=0.03)
        (self.folder / "new.csv").write_text("from,until,age,lactate,treated\n0,10,70,2,no\n0,,70,2,no\n")
        done = PROGRAM.run(*command, cwd=self.folder)
        self.assertIn("until", done.stdout + done.stderr)
        self.assertIn("empty", done.stdout + done.stderr)
        (self.folder / "new.csv").write_text("from,age,lactate,treated\n0,70,2,no\n")
        self.assert_one_line(PROGRAM.run(*command, cwd=self.folder), 2, "until")

    def test_spells_that_cannot_be_are_refused_with_their_lines(self):
        rows = list(stays())[:50]
        for bad, line in (
            (("north", 900, 5, 5, 0, 60, 2, "no"), "stays.csv: line 52: until must be a time after 5"),
            (("north", 900, 5, 3, 0, 60, 2, "no"), "stays.csv: line 52: until must be a time after 5"),
            (("north", 0, 0, 3, 0, 60, 2, "no"), "and line 52: spells of patient 0 must not overlap"),
        ):
            with self.subTest(bad=bad):
                self.write([*rows, bad])
                one = ("--set", "server.clients_per_round=1")
                done = PROGRAM.run("check", "stays.toml", "--data", ".", *one, cwd=self.folder)
                self.assertEqual(done.returncode, 2)
                self.assertIn(line, done.stderr)


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
