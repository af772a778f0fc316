"""Runs fedep on made-up hospitals whose truth is known, and asks the pooled rows' posterior beside it.

    python3 test/intervals/simulate.py lines.jsonl --fedep build/bin/fedep --pooled build/bin/pooled_posterior
        --replicates 50 --jobs 16 [--cell logistic:0.9 …] [--mode stateful …] [--no-reference]

A line of JSON for each replicate of a cell, appended when it is done; a replicate that is there already is not
run again. tables.py makes a page of them.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import design

# The short recipe of docs/hospitals.md.
RECIPE = """seed = {seed}

[data]
name = "tabular"
path = "table.csv"
client_column = "hospital"
label_column = "y"
label = "{label}"
test_fraction = 0.0

[model]
name = "linear"

[server]
clients_per_round = {asked}
prior = {{ mean = 0.0, precision = {precision!r} }}
damping = 0.5

[[phase]]
algorithm = "{algorithm}"
rounds = {rounds}
factors = "flat"
{more}
"""
# The family with one variance for each weight goes by chains of SGD, with Langevin noise and all of a site's rows in a step.
CHAINS = """
[client]
epochs = 500
batch = 100000
optimizer = { name = "sgd", lr = 0.02, momentum = 0.9 }
"""

ALL, HALF = len(design.SITES), len(design.SITES) // 2
COOLDOWN = "cooldown = { after = 40, rounds = 120, to = 0.01 }"
# algorithm, sites asked in a round, rounds, more of the phase. Whoever asks half of the sites needs twice the rounds.
MODES = {
    "stateful": ("fed_ep", ALL, 20, ""),
    "stateful_half": ("fed_ep", HALF, 40, ""),
    "stateless": ("fed_sep", ALL, 40, ""),
    "stateless_half": ("fed_sep", HALF, 160, COOLDOWN),
}
METHODS = {
    "quadrature": "",
    "laplace": 'inference = { name = "laplace" }',
    # Steps fall as a run of hmc has them by itself, so that draws' noise averages out.
    "hmc": 'inference = { name = "hmc" }\ncooldown = { after = 20, rounds = 10, to = 0.1 }',
    "diagonal": 'inference = { name = "laplace", family = "diagonal", epochs = 50, langevin = true }' + CHAINS,
}


def recipe_of(outcome, method, mode, seed):
    algorithm, asked, rounds, more = MODES[mode]
    if method == "hmc":
        rounds *= 2
    return RECIPE.format(
        seed=seed,
        label=design.LABELS[outcome],
        asked=asked,
        precision=1 / design.PRIOR_SD**2,
        algorithm=algorithm,
        rounds=rounds,
        more=f"{more}\n{METHODS[method]}",
    )


def output_of(command, folder, good=(0,)):
    environment = dict(os.environ, FEDEP_DATA=str(folder), OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in good:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def run_fedep(fedep, folder, outcome, method, mode, seed):
    """Means and sds after a run, by coefficient."""
    name = f"{method}-{mode}"
    (folder / f"{name}.toml").write_text(recipe_of(outcome, method, mode, seed), encoding="utf-8")
    begin = time.monotonic()
    trusted = (0, 3)  # 3: finished, and the verdict is for the table to show
    output_of([fedep, "run", f"{name}.toml", "--out", name], folder, trusted)
    seconds = time.monotonic() - begin
    table = json.loads(output_of([fedep, "coefficients", name, "--json"], folder, trusted))
    rows = table["coefficients"]
    return {
        "mean": [row["mean"] for row in rows],
        "sd": [row["sd"] for row in rows],
        "seconds": round(seconds, 3),
    }


def pooled_posterior(program, folder, outcome, draws, seed):
    words = [program, "rows.txt", outcome, repr(1 / design.PRIOR_SD**2), repr(design.NOISE), str(draws), str(seed)]
    found = json.loads(output_of(words, folder))
    del found["permilles"]
    return found


def play_replicate(job):
    outcome, correlation, replicate, runs, options = job
    line = {"outcome": outcome, "correlation": correlation, "replicate": replicate}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        truth, rows = design.draw_replicate(outcome, correlation, replicate)
        design.write_table(folder / "table.csv", rows)
        line["truth"] = truth
        if not options.no_reference:
            design.write_rows(folder / "rows.txt", rows)
            begin = time.monotonic()
            line["pooled"] = pooled_posterior(options.pooled, folder, outcome, options.draws, replicate + 1)
            line["pooled"]["seconds"] = round(time.monotonic() - begin, 3)
        line["runs"] = {}
        for method, mode in runs:
            try:
                came = run_fedep(options.fedep, folder, outcome, method, mode, replicate + 1)
            except (RuntimeError, KeyError, json.JSONDecodeError) as error:
                came = {"error": str(error)}
            line["runs"][f"{method} {mode}"] = came
    return line


def runs_of(outcome, correlation, options):
    methods = options.method or ["quadrature", "laplace"]
    runs = [(method, mode) for method in methods for mode in options.mode or MODES]
    # Chains of draws in every visit: dear, so only where columns correlate most.
    if not options.method and (outcome, correlation) == ("logistic", 0.9):
        runs.append(("hmc", "stateful"))
    return runs


def cells_of(asked):
    if not asked:
        return [(outcome, correlation) for outcome in design.OUTCOMES for correlation in design.CORRELATIONS]
    return [(cell.split(":")[0], float(cell.split(":")[1])) for cell in asked]


def jobs_of(options):
    there = set()
    if options.out.exists():
        for text in options.out.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            there.add((line["outcome"], line["correlation"], line["replicate"]))
    # Replicate by replicate, so that a run that is stopped has something of every cell.
    for replicate in range(options.replicates):
        for outcome, correlation in cells_of(options.cell):
            if (outcome, correlation, replicate) not in there:
                yield outcome, correlation, replicate, runs_of(outcome, correlation, options), options


def parse_options(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, help="lines of JSON, appended to")
    parser.add_argument("--fedep", type=pathlib.Path, required=True)
    parser.add_argument("--pooled", type=pathlib.Path, help="the program pooled_posterior")
    parser.add_argument("--replicates", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cell", action="append", help="OUTCOME:CORRELATION; default: all nine")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--draws", type=int, default=6500, help="of each of four pooled chains")
    parser.add_argument("--no-reference", action="store_true", help="the truth alone, no pooled posterior")
    options = parser.parse_args(words)
    if not options.no_reference and options.pooled is None:
        parser.error("--pooled or --no-reference must be given")
    options.fedep = options.fedep.resolve()
    options.pooled = options.pooled and options.pooled.resolve()
    return options


def append_all(play, jobs, options):
    """A line for each job, in the order in which they end."""
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool, open(options.out, "a", encoding="utf-8") as file:
        for done in concurrent.futures.as_completed([pool.submit(play, job) for job in jobs]):
            file.write(json.dumps(done.result()) + "\n")
            file.flush()


def main(words):
    options = parse_options(words)
    append_all(play_replicate, jobs_of(options), options)


if __name__ == "__main__":
    main(sys.argv[1:])
