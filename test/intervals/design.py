"""The design that intervals are tried on: six sites, 12 columns that correlate, three kinds of outcome.

    truth, rows = draw_replicate("logistic", 0.9, 7)        # rows: (site, columns, outcome)

Columns are standardised over all rows, as a run would have them, so that truth and prior are on one scale.
"""

import math
import random

SITES = (300, 210, 150, 90, 60, 30)
COLUMNS = 12
PRIOR_SD = 0.3
NOISE = 1.0
OUTCOMES = ("logistic", "linear", "poisson")
CORRELATIONS = (0.0, 0.5, 0.9)
LABELS = {"logistic": "yes_no", "linear": "number", "poisson": "count"}


def standardised(columns):
    out = []
    for column in columns:
        mean = math.fsum(column) / len(column)
        sd = math.sqrt(math.fsum((x - mean) ** 2 for x in column) / len(column))
        out.append([(x - mean) / sd for x in column])
    return out


def draw_poisson(rng, mean):
    """By the times between events."""
    count, time = 0, rng.expovariate(1.0)
    while time < mean:
        count += 1
        time += rng.expovariate(1.0)
    return count


def draw_outcome(rng, outcome, f):
    if outcome == "linear":
        return f + NOISE * rng.gauss(0, 1)
    if outcome == "poisson":
        return draw_poisson(rng, math.exp(f))
    return int(rng.random() < 1 / (1 + math.exp(-f)))


def draw_replicate(outcome, correlation, replicate):
    """The truth (the intercept last) and its rows."""
    rng = random.Random(f"{outcome} {correlation} {replicate}")
    truth = [PRIOR_SD * rng.gauss(0, 1) for _ in range(COLUMNS + 1)]
    own, common = math.sqrt(1 - correlation), math.sqrt(correlation)
    table = []
    for _ in range(sum(SITES)):
        shared = common * rng.gauss(0, 1)
        table.append([shared + own * rng.gauss(0, 1) for _ in range(COLUMNS)])
    table = list(zip(*standardised(zip(*table))))
    sites = [k for k, size in enumerate(SITES) for _ in range(size)]
    rows = []
    for site, x in zip(sites, table):
        f = truth[-1] + math.fsum(a * b for a, b in zip(truth, x))
        rows.append((site, x, draw_outcome(rng, outcome, f)))
    return truth, rows


def write_table(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("hospital," + ",".join(f"x{j}" for j in range(COLUMNS)) + ",y\n")
        for site, x, y in rows:
            file.write(f"h{site}," + ",".join(map(repr, x)) + f",{y!r}\n")


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        for _, x, y in rows:
            file.write(" ".join(map(repr, x)) + f" {y!r}\n")
