#!/usr/bin/env python3
"""Ranks with GPUs: the bytes of one process with a GPU, whatever the number of ranks, and after a stop.

    mpi_cuda_test.py PROGRAM

Starts ranks on this machine with Open MPI's mpirun. Skips where there is no GPU; ranks share those there are.
"""

import argparse
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import mpi_test
from mpi_test import LAPLACE, QUIET, inferred, over, play, uneven, wait_for
from program import Program, contents, log_lines, skip

GPU = ("--device", "cuda")

RECIPES = {
    "fed_avg": uneven("fed_avg"),
    "fed_sep": uneven("fed_sep", inferred("scaled_identity", alpha=0.02)),
    "fed_ep": uneven("fed_ep", LAPLACE),
    "fed_ep_32_bits": uneven("fed_ep", LAPLACE, server="grid_bits = 32"),
    "fed_ep_momentum": uneven(
        "fed_ep", inferred("sample_moments", shrinkage=0.001), server='optimizer = { name = "sgd", lr = 0.5, momentum = 0.9 }'
    ),
    "fed_ep_not_saved": uneven("fed_ep", LAPLACE, checkpoint="factors = false"),
}


def played(out):
    """What a run directory holds, without what a log says of the ranks."""
    files, log = contents(out)
    for line in log:
        line.pop("remark", None)
    return files, log


class OnGpus(mpi_test.RanksTest):
    def setUp(self):
        super().setUp()
        recipe = self.recipe(RECIPES["fed_avg"])
        tried = mpi_test.PROGRAM.run("run", recipe, "--out", self.new_run(), "--rounds", 1, *GPU)
        if lacking := re.search(r"no usable GPU: .*", tried.stderr):
            skip(lacking[0])

    def alone(self, recipe):
        out = self.new_run()
        self.assert_finishes(mpi_test.PROGRAM.run("run", recipe, "--out", out, *GPU))
        return played(out)

    def test_the_bytes_of_one_process_whatever_the_number_of_ranks(self):
        for name, text in RECIPES.items():
            recipe = self.recipe(text)
            expected = self.alone(recipe)
            for ranks in (1, 2, 3):
                with self.subTest(recipe=name, ranks=ranks):
                    out = self.new_run()
                    self.assert_finishes(play(ranks, "run", recipe, "--out", out, *GPU))
                    self.assertEqual(played(out), expected)

    def test_the_log_says_who_computes_where(self):
        out = self.new_run()
        self.assert_finishes(play(2, "run", self.recipe(RECIPES["fed_avg"]), "--out", out, *GPU))
        header = log_lines(out)[0]
        self.assertRegex(header["remark"], r"GPUs of rank 0: [0-9A-Fa-f:.]+ on \S+, rank 1: ")
        first, second = re.findall(r"rank [01]: ([0-9A-Fa-f:.]+) on", header["remark"])
        self.assertEqual("2 ranks share 1 GPU" in header["remark"], first == second)

    def test_a_run_that_was_stopped_goes_on_with_another_number_or_with_none(self):
        recipe = self.recipe(RECIPES["fed_ep"].replace("rounds = 5", "rounds = 3000").replace("every = 2", "every = 200"))
        expected = self.alone(recipe)
        for other in (3, 1):
            out = self.new_run()
            launcher = subprocess.Popen(
                over(2, "run", recipe, "--out", out, *GPU), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET
            )
            log = out / "log.jsonl"
            wait_for(self, lambda: log.exists() and log.read_text().count('"round"') >= 5, launcher)
            self.assertIn("stopped after round", self.assert_stops(launcher, signal.SIGUSR1))
            with self.subTest(then=other):
                arguments = ["run", recipe, "--out", out, "--resume", *GPU]
                done = mpi_test.PROGRAM.run(*arguments) if other == 1 else play(other, *arguments)
                self.assert_finishes(done)
                self.assertEqual(played(out), expected)

    def test_a_sweep_gives_every_rank_runs_of_its_own(self):
        arguments = ["sweep", self.recipe(RECIPES["fed_ep"]), "--seeds", "1,2,3", *GPU]
        alone, out = self.new_run(), self.new_run()
        self.assert_succeeds(mpi_test.PROGRAM.run(*arguments, "--out", alone))
        self.assert_succeeds(play(2, *arguments, "--out", out))
        logs = sorted(alone.rglob("log.jsonl"))
        self.assertEqual(len(logs), 3)
        for log in logs:
            self.assertEqual(played(out / log.parent.relative_to(alone)), played(log.parent))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    known, rest = parser.parse_known_args()
    mpi_test.PROGRAM = Program(known.program)
    unittest.main(argv=[sys.argv[0], *rest])
