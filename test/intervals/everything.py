#!/usr/bin/env python3
"""All simulations of result/coverage.md: about 100 minutes of one core.

    python3 test/intervals/everything.py FOLDER --fedep build/bin/fedep --pooled build/bin/pooled_posterior --jobs 16
    python3 test/intervals/tables.py FOLDER/*.jsonl > tables.md

Lines are appended as they come and what is there is not run again, so that it may be stopped at any time and go on.
--part 0.1 plays a tenth of the replicates.
"""

import argparse
import pathlib
import sys

import coverage
import simulate


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fedep", required=True)
    parser.add_argument("--pooled", required=True)
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--part", type=float, default=1.0)
    options = parser.parse_args(words)
    options.folder.mkdir(parents=True, exist_ok=True)
    common = ["--fedep", options.fedep, "--jobs", options.jobs, "--replicates"]
    studies, compared = str(options.folder / "coverage.jsonl"), str(options.folder / "reference.jsonl")

    def replicates(full):
        return str(max(2, round(full * options.part)))

    ranked = ["--mode", "stateful", "--cell", "linear:0.9", "--cell", "logistic:0.9"]
    coverage.main([studies, *common, replicates(400)])
    simulate.main([compared, *common, replicates(50), "--pooled", options.pooled])
    coverage.main([studies, *common, replicates(1000), *ranked])
    coverage.main([studies, *common, replicates(1000), *ranked, "--method", "diagonal"])


if __name__ == "__main__":
    main(sys.argv[1:])
