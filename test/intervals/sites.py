#!/usr/bin/env python3
"""What intervals hold where hospitals have intercepts of their own, and where noise is estimated: `fedep coverage` on made-up
hospitals, design by design. Prints a table of result/coverage.md.

    python3 test/intervals/sites.py --fedep build/bin/fedep --replicates 200 [--threads 2] [--design yes_no:12 …]
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

RECIPE = """seed = 1

[data]
name = "tabular"
path = "table.csv"
client_column = "hospital"
label_column = "y"
label = "{label}"
test_fraction = 0.0

[model]
name = "linear"
{model}

[server]
clients_per_round = {hospitals}
prior = {{ mean = 0.0, precision = 4.0 }}
damping = 0.5

[[phase]]
algorithm = "fed_ep"
rounds = 20
"""
COLUMNS = 3
SITE, NOISE = "site_intercept = true", 'noise = "estimated"'
DESIGNS = {
    "yes_no:4": ("yes_no", 4, SITE),
    "yes_no:12": ("yes_no", 12, SITE),
    "yes_no:36": ("yes_no", 36, SITE),
    "count:12": ("count", 12, SITE),
    "number:4": ("number", 4, f"{SITE}\n{NOISE}"),
    "number:12": ("number", 12, f"{SITE}\n{NOISE}"),
    "noise:4": ("number", 4, NOISE),
}


def write_table(path, label, hospitals):
    """Rows alone matter, and of numbers the outcome's deviation: outcomes are drawn anew in every replicate."""
    rng = random.Random(f"{label} {hospitals}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("hospital," + ",".join(f"x{j}" for j in range(COLUMNS)) + ",y\n")
        for k in range(hospitals):
            for _ in range(max(4, 120 // (k + 1))):
                shared = rng.gauss(0, 1)
                x = [0.6 * shared + 0.8 * rng.gauss(0, 1) for _ in range(COLUMNS)]
                y = rng.gauss(0, 1.5) if label == "number" else rng.randrange(2)
                file.write(f"h{k}," + ",".join(map(repr, x)) + f",{y!r}\n")


def study(fedep, label, hospitals, model, replicates, threads):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_table(folder / "table.csv", label, hospitals)
        (folder / "recipe.toml").write_text(RECIPE.format(label=label, model=model, hospitals=hospitals), encoding="utf-8")
        words = [fedep, "coverage", "recipe.toml", "--data", ".", "--replicates", replicates, "--threads", threads, "--json"]
        done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            sys.exit(done.stderr.strip())
        return json.loads(done.stdout)


def text_of(numbers):
    share = next(one for one in numbers["covered"] if one["level"] == 0.95)
    ratio = numbers["sd_ratio"]
    return f"{100 * share['value']:.1f} ± {100 * share['error']:.1f} % | {ratio['value']:.2f} ± {ratio['error']:.2f}"


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fedep", type=pathlib.Path, required=True)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--design", action="append", choices=DESIGNS)
    options = parser.parse_args(words)
    print("| outcome | hospitals | replicates | coefficient | in 95 % intervals | deviation over error |")
    print("| --- | ---: | ---: | --- | ---: | ---: |")
    for name in options.design or DESIGNS:
        label, hospitals, model = DESIGNS[name]
        found = study(options.fedep.resolve(), label, hospitals, model, options.replicates, options.threads)
        for row in found["coefficients"]:
            if row["name"].startswith("x") and row["name"] != "x0":
                continue
            print(f"| {label} | {hospitals} | {found['replicates']} | {row['name']} | {text_of(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
