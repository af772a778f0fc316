"""Makes the tables of result/coverage.md from lines of simulate.py and coverage.py.

    python3 test/intervals/tables.py lines.jsonl …                              # prints them
    python3 test/intervals/tables.py lines.jsonl … --page result/coverage.md    # into the page, between its marks

Exit code 1 where a bar is missed; the tables say which.
"""

import argparse
import contextlib
import io
import json
import math
import pathlib
import sys

LEVELS = (0.5, 0.8, 0.95)
MODE_NAMES = {
    "stateful": "FedEP, all sites",
    "stateful_half": "FedEP, half",
    "stateless": "FedSEP, all sites",
    "stateless_half": "FedSEP, half",
}


def chi_square_tail(x, degrees):
    """P(X >= x), degrees odd or even, by the recursion of the incomplete gamma function."""
    y = x / 2
    if degrees % 2:
        tail, a = math.erfc(math.sqrt(y)), 0.5
    else:
        tail, a = math.exp(-y), 1.0
    while a < degrees / 2 - 0.25:
        tail += math.exp(a * math.log(y) - y - math.lgamma(a + 1)) if y > 0 else 0
        a += 1
    return tail


class Page:
    """Markdown, and what was missed."""

    def __init__(self):
        self.missed = []

    def table(self, title, head, rows):
        if not rows:
            return
        print(f"\n### {title}\n")
        print("| " + " | ".join(head) + " |")
        print("| --- | --- |" + " ---: |" * (len(head) - 2))
        for row in rows:
            print("| " + " | ".join(row) + " |")

    def check(self, good, text, what):
        if not good:
            self.missed.append(what)
            return f"**{text}**"
        return text


def cells_in(lines):
    return sorted({(line["outcome"], line["correlation"]) for line in lines}, key=lambda cell: (cell[0], cell[1]))


def geometric_mean(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def gaps(run, mean, sd):
    return [(a - b) / s for a, b, s in zip(run["mean"], mean, sd)]


def runs_in(lines, cell, name):
    """(line, run) of a cell that have intervals."""
    for line in lines:
        if (line["outcome"], line["correlation"]) == cell and name in line["runs"]:
            yield line, line["runs"][name]


def reference_rows(page, lines, method, mode):
    name = f"{method} {mode}"
    for cell in cells_in(lines):
        pairs = [pair for pair in runs_in(lines, cell, name) if "pooled" in pair[0]]
        if not pairs:
            continue
        good = [(line, run) for line, run in pairs if "error" not in run and run["sd"][0] is not None]
        what = f"{name}, {cell[0]} at {cell[1]}"
        row = [f"{cell[0]}, {cell[1]:g}", MODE_NAMES[mode]]
        row.append(page.check(len(good) == len(pairs), f"{len(good)} of {len(pairs)}", f"{what}: runs without intervals"))
        if not good:
            yield row
            continue
        yield row + (by_mode(page, good, mode, what) if method == "laplace" else by_moments(page, good, mode, what))


def by_moments(page, pairs, mode, what):
    """Distance of means and ratios of sds to those of the pooled draws."""
    largest, squares, ratios = [], [], []
    for line, run in pairs:
        off = gaps(run, line["pooled"]["mean"], line["pooled"]["sd"])
        largest.append(max(map(abs, off)))
        squares.append(math.fsum(x * x for x in off) / len(off))
        ratios.append([a / b for a, b in zip(run["sd"], line["pooled"]["sd"])])
    rms = math.sqrt(math.fsum(squares) / len(squares))
    near = sum(x <= 0.1 for x in largest) / len(largest)
    means = [geometric_mean(column) for column in zip(*ratios)]
    if mode == "stateless_half":  # its noise is named, its bar another
        nearness = f"{100 * near:.0f} %"
        distance = page.check(rms <= 0.25, f"{rms:.3f}", f"{what}: root mean square {rms:.3f}")
    else:
        nearness = page.check(near >= 0.99, f"{100 * near:.0f} %", f"{what}: means within 0.1 sd in {near:.2f}")
        distance = f"{rms:.3f}"
    spread = f"{min(means):.3f}–{max(means):.3f}"
    inside = 0.93 <= min(means) and max(means) <= 1.05
    return [f"{max(largest):.3f}", nearness, distance, page.check(inside, spread, f"{what}: sd ratios {spread}")]


def by_mode(page, pairs, mode, what):
    """Distance to the pooled mode; sds to those of the Hessian there."""
    largest, squares, ratios = [], [], []
    for line, run in pairs:
        off = gaps(run, line["pooled"]["mode"], line["pooled"]["laplace_sd"])
        largest.append(max(map(abs, off)))
        squares.append(math.fsum(x * x for x in off) / len(off))
        ratios.append([a / b for a, b in zip(run["sd"], line["pooled"]["laplace_sd"])])
    bar = {"stateless": 0.08, "stateless_half": math.inf}.get(mode, 0.02)
    rms = math.sqrt(math.fsum(squares) / len(squares))
    means = [geometric_mean(column) for column in zip(*ratios)]
    most = f"{max(largest):.4f}"
    return [page.check(max(largest) <= bar, most, f"{what}: {most} sd from the mode"), f"{rms:.4f}", f"{min(means):.3f}–{max(means):.3f}"]


def print_pooled(page, lines, wanted=20000):
    """How good the pooled posteriors are that others are measured against."""
    pooled = [line["pooled"] for line in lines if "pooled" in line]
    if not pooled:
        return
    effective, rhat = min(p["effective"] for p in pooled), max(p["rhat"] for p in pooled)
    text = page.check(effective >= wanted, f"{effective:,.0f}", f"pooled posteriors: {effective:.0f} effective draws")
    print(f"\n{len(pooled)} pooled posteriors have at least {text} effective draws each and an R-hat of at most {rhat:.4f}.")


def print_reference(page, lines):
    modes = list(MODE_NAMES)
    rows = [row for mode in modes for row in reference_rows(page, lines, "quadrature", mode)]
    head = ["cell", "mode", "runs", "largest distance of a mean", "runs within 0.1", "root mean square", "sd ratios"]
    page.table("Quadrature against the pooled posterior", head, rows)
    rows = [row for mode in modes for row in reference_rows(page, lines, "hmc", mode)]
    page.table("HMC against the pooled posterior", head, rows)
    rows = [row for mode in modes for row in reference_rows(page, lines, "laplace", mode)]
    head = ["cell", "mode", "runs", "largest distance to the mode", "root mean square", "sd ratios"]
    page.table("Laplace against the pooled mode", head, rows)


def truth_rows(lines):
    """Coverage of the truth in the runs that were compared with the pooled posterior."""
    half_widths = (0.674489750196082, 1.281551565544601, 1.959963984540054)
    for name in sorted({name for line in lines for name in line["runs"]}):
        method, mode = name.split()
        if method == "laplace":  # nearer to quadrature than these errors tell
            continue
        for cell in cells_in(lines):
            shares = []
            for line, run in runs_in(lines, cell, name):
                if "error" in run or run["sd"][0] is None:
                    continue
                z = [abs(t - m) / s for t, m, s in zip(line["truth"], run["mean"], run["sd"])]
                shares.append([sum(x <= width for x in z) / len(z) for width in half_widths])
            if len(shares) > 1:
                yield [f"{cell[0]}, {cell[1]:g}", f"{MODE_NAMES[mode]}, {method}", str(len(shares))] + [
                    "{:.1f} ± {:.1f}".format(*average(column)) for column in zip(*shares)
                ]


def average(values):
    mean = math.fsum(values) / len(values)
    variance = math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1)
    return 100 * mean, 100 * math.sqrt(variance / len(values))


def joined(studies):
    """Coverage over several tables; errors are those over all replicates."""
    n = sum(study["replicates"] for study in studies)
    covered = []
    for i, _ in enumerate(LEVELS):
        shares = [(study["replicates"], study["covered"][i]) for study in studies]
        value = math.fsum(size * share["value"] for size, share in shares) / n
        covered.append((value, math.sqrt(math.fsum((size * share["error"]) ** 2 for size, share in shares)) / n))
    square = math.fsum(study["replicates"] / study["sd_ratio"]["value"] ** 2 for study in studies) / n
    return n, covered, 1 / math.sqrt(square)


def coverage_rows(page, lines):
    keys = sorted({(line["method"], line["outcome"], line["correlation"], line["mode"]) for line in lines})
    for method, outcome, correlation, mode in keys:
        mine = [l for l in lines if (l["method"], l["outcome"], l["correlation"], l["mode"]) == (method, outcome, correlation, mode)]
        what = f"coverage, {method} {mode}, {outcome} at {correlation}"
        studies = [line["study"] for line in mine if "study" in line]
        failed = sum(study["failed"] for study in studies)
        if len(studies) < len(mine) or failed:
            page.missed.append(f"{what}: {len(mine) - len(studies)} tables and {failed} replicates failed")
        if not studies:
            continue
        n, covered, ratio = joined(studies)
        row = [f"{outcome}, {correlation:g}", f"{MODE_NAMES[mode]}, {method}", str(n)]
        for level, (share, error) in zip(LEVELS, covered):
            text = f"{100 * share:.1f} ± {100 * error:.1f}"
            shown_only = mode == "stateless_half" or method == "diagonal"
            # Of few replicates the measured error may be 0; independent truths would have this one.
            least = math.sqrt(level * (1 - level) / (n * len(studies[0]["coefficients"])))
            good = shown_only or abs(share - level) <= 3.5 * max(error, least)
            row.append(page.check(good, text, f"{what}: {100 * level:.0f} % intervals hold {text} %"))
        yield row + [f"{ratio:.3f}"]


def rank_rows(page, lines, bins=20):
    """Simulation-based calibration, where there are a thousand replicates of a cell."""
    keys = sorted({(line["outcome"], line["correlation"], line["method"], line["mode"]) for line in lines if "study" in line})
    for outcome, correlation, method, mode in keys:
        studies = [l["study"] for l in lines if "study" in l and (l["outcome"], l["correlation"], l["method"], l["mode"]) == (outcome, correlation, method, mode)]
        n = sum(study["replicates"] for study in studies)
        if n < 1000:
            continue
        tests = []
        for parts in zip(*[study["coefficients"] for study in studies]):
            ranks = [sum(counts) for counts in zip(*[part["ranks"] for part in parts])]
            width = len(ranks) // bins
            counts = [sum(ranks[b * width : (b + 1) * width]) for b in range(bins)]
            chi = sum((count - n / bins) ** 2 for count in counts) / (n / bins)
            tests.append((chi_square_tail(chi, bins - 1), chi, parts[0]["name"], max(counts) / (n / bins), min(counts) / (n / bins)))
        least, chi, name, most, fewest = min(tests)
        corrected = min(1.0, least * len(tests))
        good = corrected >= 0.001 or outcome != "linear" or method == "diagonal"
        text = page.check(good, f"{corrected:.2g}", f"ranks, {method} {mode}, {outcome} at {correlation}: p = {corrected:.2g}")
        failing = sum(p * len(tests) < 0.001 for p, *_ in tests)
        yield [f"{outcome}, {correlation:g}", f"{MODE_NAMES[mode]}, {method}", str(n), name, f"{chi:.1f}", f"{fewest:.2f}–{most:.2f}", text, f"{failing} of {len(tests)}"]


def print_tables(paths):
    lines = [json.loads(text) for path in paths for text in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    page = Page()
    compared = [line for line in lines if "runs" in line]
    studied = [line for line in lines if "runs" not in line]
    print_pooled(page, compared)
    print_reference(page, compared)
    levels = [f"{100 * level:.0f} % interval" for level in LEVELS]
    page.table("Share of truths that intervals hold, in %", ["cell", "mode", "replicates", *levels, "sd ratio"], list(coverage_rows(page, studied)))
    page.table("The same in the runs above", ["cell", "mode", "replicates", *levels], list(truth_rows(compared)))
    head = ["cell", "mode", "replicates", "worst coefficient", "χ²(19)", "bins over expectation", "p, Bonferroni", "coefficients below 0.001"]
    page.table("Ranks of truths among 99 draws, in 20 bins", head, list(rank_rows(page, studied)))
    print()
    for what in page.missed:
        print(f"Missed: {what}.  ")
    if not page.missed:
        print("Every bar is met.")
    return 1 if page.missed else 0


def put_into(page, text):
    begin, end = "<!-- begin: test/intervals/tables.py -->\n", "<!-- end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(before + begin + text + end + after, encoding="utf-8")


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", nargs="+")
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args(words)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = print_tables(options.lines)
    if options.page:
        put_into(options.page, text.getvalue())
    else:
        print(text.getvalue(), end="")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
