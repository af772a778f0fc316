"""Asks `fedep coverage` what intervals hold on the design of design.py, cell by cell.

    python3 test/intervals/coverage.py lines.jsonl --fedep build/bin/fedep --replicates 400 --jobs 16
        [--cell logistic:0.9 …] [--mode stateful …] [--method quadrature …]

A line of JSON for each table of 50 replicates, appended when it is done; what is there already is not run again.
tables.py makes a page of them.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

import design
import simulate

REPLICATES = 50  # of a table: every 50 replicates have other rows


def play_table(job):
    outcome, correlation, method, mode, table, replicates, fedep = job
    line = {"outcome": outcome, "correlation": correlation, "method": method, "mode": mode, "table": table}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Rows of their own: those of simulate.py have smaller numbers.
        _, rows = design.draw_replicate(outcome, correlation, 1_000_000 + table)
        design.write_table(folder / "table.csv", rows)
        (folder / "recipe.toml").write_text(simulate.recipe_of(outcome, method, mode, table + 1), encoding="utf-8")
        begin = time.monotonic()
        words = [fedep, "coverage", "recipe.toml", "--replicates", str(replicates), "--json"]
        try:
            line["study"] = json.loads(simulate.output_of(words, folder))
        except (RuntimeError, json.JSONDecodeError) as error:
            line["error"] = str(error)
        line["seconds"] = round(time.monotonic() - begin, 3)
    return line


def key_of(line):
    return tuple(line[name] for name in ("outcome", "correlation", "method", "mode", "table"))


def jobs_of(options):
    there = set()
    if options.out.exists():
        there = {key_of(json.loads(text)) for text in options.out.read_text(encoding="utf-8").splitlines()}
    sizes = [REPLICATES] * (options.replicates // REPLICATES)
    if options.replicates % REPLICATES:
        sizes.append(options.replicates % REPLICATES)
    for table, size in enumerate(sizes):
        for outcome, correlation in simulate.cells_of(options.cell):
            for method in options.method:
                for mode in options.mode or simulate.MODES:
                    job = (outcome, correlation, method, mode, table)
                    if job not in there:
                        yield (*job, size, options.fedep)


def parse_options(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, help="lines of JSON, appended to")
    parser.add_argument("--fedep", type=pathlib.Path, required=True)
    parser.add_argument("--replicates", type=int, default=400, help="of each cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cell", action="append", help="OUTCOME:CORRELATION; default: all nine")
    parser.add_argument("--mode", action="append", choices=simulate.MODES)
    parser.add_argument("--method", action="append", choices=simulate.METHODS)
    options = parser.parse_args(words)
    options.method = options.method or ["quadrature"]
    options.fedep = options.fedep.resolve()
    return options


def main(words):
    options = parse_options(words)
    simulate.append_all(play_table, jobs_of(options), options)


if __name__ == "__main__":
    main(sys.argv[1:])
