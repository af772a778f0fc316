#!/usr/bin/env python3
"""Heart disease and eICU: how much of the posterior of the pooled rows is inside the 95 % intervals, full covariance beside
diagonal.

    FEDEP_DATA=… python3 test/intervals/hospitals.py --fedep build/bin/fedep --pooled build/bin/pooled_posterior [--table]

Prints the tables of result/coverage.md; --table: every coefficient too.
"""

import argparse
import bisect
import json
import os
import pathlib
import subprocess
import sys
import tempfile

RECIPES = pathlib.Path(__file__).resolve().parents[2] / "recipe"
STUDIES = {"heart_disease": ("ep_full", "ep"), "eicu": ("sep_full", "sep")}


def output_of(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):  # 3: finished, and said that it is not to be trusted
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def share_below(permilles, x):
    """Of the draws, between their permilles."""
    at = bisect.bisect_left(permilles, x)
    if at in (0, len(permilles)):
        return at / len(permilles)
    low, high = permilles[at - 1], permilles[at]
    return (at + ((x - low) / (high - low) if high > low else 0)) / 1000


def compare(rows, pooled):
    """By coefficient: name, mean, sd, distance in pooled sds, sd ratio, mass inside the 95 % interval."""
    out = []
    for row, mean, sd, permilles in zip(rows, pooled["mean"], pooled["sd"], pooled["permilles"]):
        mass = share_below(permilles, row["high"]) - share_below(permilles, row["low"])
        out.append((row["name"], row["mean"], row["sd"], abs(row["mean"] - mean) / sd, row["sd"] / sd, mass, mean, sd))
    return out


# Chains' noise keeps a run from converging, and such a run tells no intervals: its steps fall in 20 rounds more.
COOLDOWN = {
    "heart_disease": ["--set", "phase.0.rounds=40", "phase.0.cooldown={after=20,rounds=20,to=0.1}"],
    "eicu": ["--set", "phase.0.rounds=60", "phase.0.cooldown={after=40,rounds=20,to=0.1}"],
}


def coefficients(fedep, recipe, more=()):
    with tempfile.TemporaryDirectory() as folder:
        output_of([fedep, "run", recipe, "--out", f"{folder}/run", *more])
        table = json.loads(output_of([fedep, "coefficients", f"{folder}/run", "--json"]))
    rows = table["coefficients"]
    if rows[0]["sd"] is None:
        if more:
            sys.exit(f"{recipe}: {table.get('withheld')}")
        return coefficients(fedep, recipe, COOLDOWN[recipe.parent.name])
    return rows


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fedep", type=pathlib.Path, required=True)
    parser.add_argument("--pooled", type=pathlib.Path, required=True)
    parser.add_argument("--study", action="append", choices=STUDIES)
    parser.add_argument("--table", action="store_true", help="every coefficient")
    options = parser.parse_args(words)
    if "FEDEP_DATA" not in os.environ:
        parser.error("$FEDEP_DATA must name the folder of the data sets")
    print("| data | family | mass inside 95 % intervals | least of a coefficient | largest distance of a mean | sd ratios |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    details = []
    for study in options.study or STUDIES:
        pooled = json.loads(output_of([options.pooled, RECIPES / study / f"{STUDIES[study][0]}.toml"]))
        for family, name in zip(("full", "diagonal"), STUDIES[study]):
            rows = compare(coefficients(options.fedep, RECIPES / study / f"{name}.toml"), pooled)
            masses, ratios = [row[5] for row in rows], [row[4] for row in rows]
            print(
                f"| {study} | {family} | {100 * sum(masses) / len(masses):.1f} % | {100 * min(masses):.1f} % | "
                f"{max(row[3] for row in rows):.3f} | {min(ratios):.3f}–{max(ratios):.3f} |",
                flush=True,
            )
            details += [(study, family, *row) for row in rows]
    if options.table:
        print("\n| data | family | coefficient | mean | sd | pooled mean | pooled sd | distance | sd ratio | mass inside |")
        print("| --- | --- | --- |" + " ---: |" * 7)
        for study, family, name, mean, sd, distance, ratio, mass, pooled_mean, pooled_sd in details:
            print(
                f"| {study} | {family} | {name} | {mean:.3f} | {sd:.3f} | {pooled_mean:.3f} | {pooled_sd:.3f} | "
                f"{distance:.3f} | {ratio:.3f} | {100 * mass:.1f} % |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
