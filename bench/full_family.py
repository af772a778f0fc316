#!/usr/bin/env python3
"""FedEP with a full covariance matrix: seconds on one core, against Newton's method on the pooled rows and a plain NumPy loop of
the same EP, in one run; then the cost of a round against the number of coefficients, and its bytes.

    bench/full_family.py build/bin/fedep [--sites 36] [--coefficients 40] [--rounds 20] [--sizes 10,40,100,…,2000] [--no-loop]

Logistic regression, sites of 50 to 300 rows, columns at correlation 0.5, prior N(0, 0.3²). Times are CPU seconds of one
thread; fedep's are of the whole process, reading its CSV included. Both EPs must come to the same posterior. Needs NumPy.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import math
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

PRIOR_SD = 0.3
RECIPE = """
[data]
name = "tabular"
path = "table.csv"
client_column = "hospital"
label_column = "y"
test_fraction = 0.0
[server]
clients_per_round = {sites}
prior = {{ mean = 0.0, precision = {precision!r} }}
damping = {damping!r}
[[phase]]
algorithm = "fed_ep"
rounds = {rounds}
factors = "flat"
inference = {{ name = "{method}", family = "full" }}
[evaluate]
every = 0
"""


def make_sites(sites, coefficients, seed=1, sizes=(50, 100, 150, 200, 250, 300)):
    """Per site: x with a last column of ones, y."""
    rng = np.random.default_rng(seed)
    columns = coefficients - 1
    truth = PRIOR_SD * rng.standard_normal(coefficients)
    rows = [sizes[k % len(sizes)] for k in range(sites)]
    x = math.sqrt(0.5) * rng.standard_normal((sum(rows), 1)) + math.sqrt(0.5) * rng.standard_normal((sum(rows), columns))
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32).astype(float)
    x = np.hstack([x, np.ones((len(x), 1))])
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-x @ truth))).astype(float)
    cuts = np.cumsum(rows)[:-1]
    return list(zip(np.split(x, cuts), np.split(y, cuts)))


def write_table(path, sites):
    with open(path, "w", encoding="utf-8") as file:
        columns = sites[0][0].shape[1] - 1
        file.write("hospital," + ",".join(f"x{j}" for j in range(columns)) + ",y\n")
        for k, (x, y) in enumerate(sites):
            for row, outcome in zip(x, y):
                file.write(f"h{k}," + ",".join(f"{v:.9g}" for v in row[:-1]) + f",{int(outcome)}\n")


def run_fedep(fedep, sites, rounds, method="quadrature", damping=0.5):
    """CPU seconds of the process, its log's rounds, coefficients."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_table(folder / "table.csv", sites)
        text = RECIPE.format(sites=len(sites), precision=1 / PRIOR_SD**2, rounds=rounds, method=method, damping=damping)
        (folder / "recipe.toml").write_text(text, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([fedep, "run", "recipe.toml", "--data", ".", "--out", "run"], cwd=folder, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 3):  # 3: few rounds have not converged
            sys.exit(done.stderr)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        log = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        table = subprocess.run([fedep, "coefficients", "run", "--json"], cwd=folder, capture_output=True, text=True, check=False)
        rows = json.loads(table.stdout)["coefficients"]
    return seconds, [line for line in log if line["kind"] == "round"], rows


def newton(x, y, eta, precision):
    """The mode of exp(η·θ - ½ θᵀΛθ) times the likelihood, and its Hessian."""
    theta = np.linalg.solve(precision, eta)
    for _ in range(100):
        p = 1 / (1 + np.exp(-x @ theta))
        hessian = precision + (x * (p * (1 - p))[:, None]).T @ x
        move = np.linalg.solve(hessian, precision @ theta - eta - x.T @ (y - p))
        theta = theta - move
        if np.abs(move).max() < 1e-10:
            break
    return theta, hessian


NODES, WEIGHTS = np.polynomial.hermite.hermgauss(32)
LOG_WEIGHTS = np.log(WEIGHTS) + NODES**2


def tilted_row(outcome, mean, variance):
    """Mean and variance of N(f; mean, variance) p(outcome | f): 32 nodes around its mode, scaled by its curvature."""
    f, sign = mean, 2 * outcome - 1
    for _ in range(50):
        p = 1 / (1 + math.exp(-f))
        move = ((f - mean) / variance - (outcome - p)) / (1 / variance + p * (1 - p))
        f -= move
        if abs(move) < 1e-9:
            break
    p = 1 / (1 + math.exp(-f))
    gaps = math.sqrt(2 / (1 / variance + p * (1 - p))) * NODES
    logs = LOG_WEIGHTS - np.logaddexp(0, -sign * (f + gaps)) - 0.5 * (f + gaps - mean) ** 2 / variance
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    first = mass @ gaps
    return f + first, mass @ (gaps * gaps) - first * first


def tilted(x, y, eta, precision):
    """Natural parameters of the tilted distribution, by EP over rows."""
    theta, _ = newton(x, y, eta, precision)
    f = x @ theta
    p = 1 / (1 + np.exp(-f))
    tau = p * (1 - p)
    nu = y - p + tau * f
    for _ in range(100):
        covariance = np.linalg.inv(precision + (x * tau[:, None]).T @ x)
        mean = covariance @ (eta + x.T @ nu)
        before, largest = mean, 0.0
        for i in range(len(y)):
            spread = covariance @ x[i]
            variance, place = x[i] @ spread, x[i] @ mean
            left = 1 - tau[i] * variance
            cavity, cavity_mean = variance / left, (place - nu[i] * variance) / left
            new_mean, new_variance = tilted_row(y[i], cavity_mean, cavity)
            new_tau = 1 / new_variance - 1 / cavity
            new_nu = new_mean / new_variance - cavity_mean / cavity
            more, more_nu = new_tau - tau[i], new_nu - nu[i]
            growth = 1 + more * variance
            pull = (more_nu - more * place) / growth
            covariance = covariance - more / growth * np.outer(spread, spread)
            mean = mean + pull * spread
            tau[i], nu[i] = new_tau, new_nu
            largest = max(largest, abs(pull) * math.sqrt(variance), 0.5 * abs(math.log(growth)))
        if max(largest, (np.abs(mean - before) / np.sqrt(np.diag(covariance))).max()) < 1e-6:
            break
    return eta + x.T @ nu, precision + (x * tau[:, None]).T @ x


def plain_ep(sites, rounds, damping=0.5):
    """Mean and deviations of q after so many rounds."""
    d = sites[0][0].shape[1]
    eta, precision = np.zeros(d), np.eye(d) / PRIOR_SD**2
    factors = [(np.zeros(d), np.zeros((d, d))) for _ in sites]
    for _ in range(rounds):
        sums = [np.zeros(d), np.zeros((d, d))]
        for k, (x, y) in enumerate(sites):
            cavity = eta - factors[k][0], precision - factors[k][1]
            new = tilted(x, y, *cavity)
            step = damping * (new[0] - eta), damping * (new[1] - precision)
            factors[k] = factors[k][0] + step[0], factors[k][1] + step[1]
            sums = [sums[0] + step[0], sums[1] + step[1]]
        eta, precision = eta + sums[0], precision + sums[1]
    covariance = np.linalg.inv(precision)
    return covariance @ eta, np.sqrt(np.diag(covariance))


def timed(function, *arguments):
    begin = time.process_time()
    result = function(*arguments)
    return time.process_time() - begin, result


def compare(options):
    sites = make_sites(options.sites, options.coefficients)
    rows = sum(len(y) for _, y in sites)
    print(f"{options.sites} sites, {rows} rows, {options.coefficients} coefficients, {options.rounds} rounds\n")
    print("| | CPU seconds |\n| --- | ---: |")
    seconds, log, table = run_fedep(options.fedep, sites, options.rounds)
    print(f"| fedep run, quadrature | {seconds:.2f} |")
    laplace, _, _ = run_fedep(options.fedep, sites, options.rounds, "laplace")
    print(f"| fedep run, laplace | {laplace:.2f} |")
    x, y = (np.concatenate(part) for part in zip(*sites))
    pooled, (mode, hessian) = timed(newton, x, y, np.zeros(x.shape[1]), np.eye(x.shape[1]) / PRIOR_SD**2)
    print(f"| Newton on pooled rows, NumPy | {pooled:.3f} |")
    mean, sd = np.array([row["mean"] for row in table]), np.array([row["sd"] for row in table])
    off = np.abs(mean - mode) * np.sqrt(1 / np.diag(np.linalg.inv(hessian)))
    if not options.no_loop:
        loop, (loop_mean, loop_sd) = timed(plain_ep, sites, options.rounds)
        print(f"| the same EP as a plain NumPy loop | {loop:.1f} |", flush=True)
        print(f"\nBoth EPs: means within {(np.abs(mean - loop_mean) / loop_sd).max():.1e} sd, sds within {np.abs(sd / loop_sd - 1).max():.1e} of each other.")
        print(f"fedep is {loop / seconds:.0f} times as fast as the loop.")
    print(f"The pooled mode is up to {off.max():.2f} sd from the mean.")
    print(f"A round moves {log[-1]['bytes_up'] / 1e6:.2f} MB up and {log[-1]['bytes_down'] / 1e6:.2f} MB down.")


def scale(options):
    print("\n| coefficients | rows | CPU seconds a round | by laplace | MB up a round | MB down |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for d in options.sizes:
        sites = make_sites(6, d, 2, sizes=(300,))
        cost = {}
        for method in ("quadrature", "laplace"):
            one, _, _ = run_fedep(options.fedep, sites, 1, method)
            three, log, _ = run_fedep(options.fedep, sites, 3, method)
            cost[method] = (three - one) / 2
        up, down = log[-1]["bytes_up"] / 1e6, log[-1]["bytes_down"] / 1e6
        print(f"| {d} | {6 * 300} | {cost['quadrature']:.3g} | {cost['laplace']:.3g} | {up:.3g} | {down:.3g} |", flush=True)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fedep", type=pathlib.Path)
    parser.add_argument("--sites", type=int, default=36)
    parser.add_argument("--coefficients", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[10, 40, 100, 250, 500, 1000, 2000])
    parser.add_argument("--no-loop", action="store_true", help="leave out the slow one")
    options = parser.parse_args(words)
    options.fedep = options.fedep.resolve()
    compare(options)
    scale(options)


if __name__ == "__main__":
    main(sys.argv[1:])
