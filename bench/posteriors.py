#!/usr/bin/env python3
"""What a posterior adds to FedAvg with an average and a temperature: NLL, selective prediction, detection of classes that nobody trained on.

    bench/posteriors.py PROGRAM RECIPE_FOLDER --out FOLDER [--tasks cifar100,few,femnist,deep] [--threads 2] [--device cpu]

Plays each row and seed with some classes left out of training (a run that is finished in FOLDER is not played again), scores it by
`fedep evaluate`, and prints a line for each way to predict: at a mean or averaged over draws, of q or of the server's average, always
after the clients' temperature for it. Columns are means over seeds; in brackets the difference from the first line, paired by seed, ± its
standard deviation. AURC: mean risk over all coverages. AUROC: of the left-out classes' test images against the others', by 1 less the
largest probability; at a mean also by energy, and for draws by mutual information.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

CIFAR_UNSEEN = ", ".join(map(str, range(90, 100)))
LINEAR = ["fed_avg", "fed_dyn", "fed_ep_i", "fed_ep_l", "fed_ep_v"]
TASKS = {
    "cifar100": ("field_linear/{}.toml", LINEAR, (1, 2, 3), CIFAR_UNSEEN),
    "few": ("few/{}.toml", ["fed_avg", "fed_ep_i", "fed_ep_l"], (1, 2, 3, 4, 5), CIFAR_UNSEEN),
    "femnist": (
        "posterior/femnist_{}.toml",
        ["fed_avg", "fed_sep_i", "fed_sep_l", "fed_ep_i", "bayes_admm"],
        (1, 2, 3),
        None,
    ),
    "deep": ("field_deep/{}.toml", ["fed_avg", "fed_ep_i"], (1,), CIFAR_UNSEEN),  # ResNet-18: on a GPU
}
# Draws around an average have a temperature only where the run made draws. With the rate that validation rows chose for all classes,
# 0.003, clients of FedEP (L) diverge without ten of them.
# A recipe of a table has draws whether or not its q has converged: FEMNIST's 50 rounds are too few to tell.
OTHER_SETTINGS = {
    **{("femnist", row): "table=posterior" for row in ("fed_avg", "fed_sep_i", "fed_sep_l", "fed_ep_i", "bayes_admm")},
    ("cifar100", "fed_avg"): "evaluate.samples=10",
    ("cifar100", "fed_dyn"): "evaluate.samples=10",
    ("deep", "fed_avg"): "evaluate.samples=10",
    ("cifar100", "fed_ep_l"): "client.optimizer.lr=0.001",
}
COLUMNS = (
    ("accuracy, %", 100, 1),
    ("NLL", 1, 3),
    ("ECE-15, %", 100, 1),
    ("AURC", 1, 4),
    ("AUROC", 1, 3),
    ("by energy", 1, 3),
    ("by MI", 1, 3),
)


def finish(command, **where):
    """A run whose posterior is not to be trusted for intervals (3) has scores all the same."""
    done = subprocess.run(command, **where)
    if done.returncode not in (0, 3):
        sys.exit(f"{command[1]} ended with {done.returncode}: {' '.join(map(str, command))}")


def play(options, recipe, seed, settings, run):
    if list(run.glob("checkpoint-*.safetensors")):
        return
    command = [options.program, "run", recipe, "--seed", str(seed), "--out", run]
    command += ["--device", options.device, "--threads", str(options.threads)]
    for setting in settings:
        command += ["--set", setting]
    finish(command, stdout=sys.stderr)


def evaluated(options, run, average):
    out = run / ("evaluation-average.json" if average else "evaluation-posterior.json")
    if not out.is_file():
        command = [options.program, "evaluate", run, "--json", "--out", out]
        command += ["--average"] if average else []
        finish(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(out.read_text())


def numbers(found, draws):
    """One way to predict: its columns, or nothing where there are no draws."""
    way = "marginal_calibrated" if draws else "point_calibrated"
    behind = "_marginal" if draws else ""
    scores, selective = found["metrics"], found["selective"]
    if way not in selective:
        return None
    (detection,) = found["detection"]
    plain = detection["marginal" if draws else "point"]  # neither of the two is after a temperature
    return (
        scores["accuracy" + behind],
        scores["nll_calibrated" + behind],
        scores["ece_calibrated" + behind],
        selective[way]["area"],
        detection[way]["max_probability"]["auroc"],
        None if draws else plain["energy"]["auroc"],
        plain["mutual_information"]["auroc"] if draws else None,
    )


def ways(options, run):
    for average in (True, False):
        found = evaluated(options, run, average)
        for draws in (False, True):
            line = numbers(found, draws)
            if line:
                name = ("average" if average else "q") + (", draws" if draws else ", mean")
                yield name, line


def cell(values, first, factor, digits):
    if any(value is None for value in values):
        return "–"
    mean = f"{factor * statistics.mean(values):.{digits}f}"
    if values == first or any(value is None for value in first):
        return mean
    differences = [factor * (value - other) for value, other in zip(values, first)]
    spread = f" ± {statistics.stdev(differences):.{digits}f}" if len(differences) > 1 else ""
    return f"{mean} ({statistics.mean(differences):+.{digits}f}{spread})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recipes", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of runs; scores are made on the CPU")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for task in options.tasks.split(","):
        pattern, rows, seeds, unseen = TASKS[task]
        lines = {}
        for row in rows:
            settings = [f"data.unseen_classes={unseen}"] if unseen else []
            if (task, row) in OTHER_SETTINGS:
                settings.append(OTHER_SETTINGS[task, row])
            for seed in seeds:
                run = options.out / f"{task}_{row}_{seed}"
                recipe = options.recipes / pattern.format(row)
                play(options, recipe, seed, settings, run)
                for way, line in ways(options, run):
                    lines.setdefault(f"{row}: {way}", []).append(line)
        first = list(zip(*next(iter(lines.values()))))
        print(f"\n**{task}**, {len(seeds)} seeds\n")
        print("| row | " + " | ".join(name for name, _, _ in COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for name, seeds_of_line in lines.items():
            columns = zip(zip(*seeds_of_line), first, COLUMNS)
            cells = [cell(list(v), list(f), k, d) for v, f, (_, k, d) in columns]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
