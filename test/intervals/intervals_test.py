#!/usr/bin/env python3
"""Intervals of the short recipe on made-up hospitals: near to the pooled posterior's, holding what they say, in the few
replicates that a test has time for. All of them: simulate.py and coverage.py.

    intervals_test.py FEDEP POOLED_POSTERIOR
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import coverage
import simulate
import tables

FEDEP, POOLED = sys.argv[1:3]


def lines_of(path):
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def tables_of(*paths):
    """Exit code and text."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = tables.main([str(path) for path in paths])
    return code, text.getvalue()


class Intervals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.lines = pathlib.Path(folder.name) / "lines.jsonl"

    def simulate(self, *words):
        simulate.main([str(self.lines), "--fedep", FEDEP, "--pooled", POOLED, *words])
        return lines_of(self.lines)

    def test_sites_apart_have_the_posterior_of_their_pooled_rows(self):
        modes = [word for mode in simulate.MODES for word in ("--mode", mode)]
        cells = ["--cell", "logistic:0.9", "--cell", "linear:0.5", "--cell", "poisson:0"]
        lines = self.simulate("--replicates", "1", "--draws", "4000", *cells, *modes, "--method", "quadrature", "--method", "laplace")
        self.assertEqual(len(lines), 3)
        code, text = tables_of(self.lines)
        # So few draws are all that is missed.
        self.assertEqual(code, 1)
        self.assertEqual(text.count("Missed"), 1, text)
        self.assertIn("Missed: pooled posteriors", text)
        self.assertIn("FedSEP, half", text)

    def test_a_replicate_that_is_there_is_not_run_again(self):
        words = ["--cell", "linear:0", "--mode", "stateful", "--method", "laplace", "--draws", "100"]
        first = self.simulate("--replicates", "1", *words)
        both = self.simulate("--replicates", "2", *words)
        self.assertEqual(both[0], first[0])
        self.assertEqual([line["replicate"] for line in both], [0, 1])
        self.assertNotEqual(both[0]["truth"], both[1]["truth"])

    def test_intervals_hold_what_they_say_in_20_replicates(self):
        cells = ["--cell", "linear:0.9", "--cell", "logistic:0.9", "--cell", "poisson:0.9"]
        coverage.main([str(self.lines), "--fedep", FEDEP, "--replicates", "20", "--mode", "stateful", *cells])
        code, text = tables_of(self.lines)
        self.assertEqual(code, 0, text)
        self.assertEqual(sum(line["study"]["replicates"] for line in lines_of(self.lines)), 60)

    def test_tables_name_what_is_missed(self):
        line = self.simulate("--replicates", "1", "--cell", "linear:0", "--mode", "stateful", "--method", "quadrature", "--draws", "1000")[0]
        line["runs"]["quadrature stateful"]["sd"] = [0.5 * sd for sd in line["runs"]["quadrature stateful"]["sd"]]
        self.lines.write_text(json.dumps(line) + "\n", encoding="utf-8")
        code, text = tables_of(self.lines)
        self.assertEqual(code, 1)
        self.assertIn("Missed: quadrature stateful, linear at 0.0: sd ratios", text)
        self.assertIn("Missed: pooled posteriors", text)

    def test_tables_go_between_the_marks_of_a_page(self):
        page = self.lines.with_name("page.md")
        page.write_text("# Page\n<!-- begin: test/intervals/tables.py -->\nold\n<!-- end -->\nrest\n", encoding="utf-8")
        self.lines.write_text("", encoding="utf-8")
        for _ in range(2):  # twice is once
            self.assertEqual(tables.main([str(self.lines), "--page", str(page)]), 0)
            text = page.read_text(encoding="utf-8")
            self.assertTrue(text.startswith("# Page\n<!-- begin"))
            self.assertTrue(text.endswith("Every bar is met.\n<!-- end -->\nrest\n"))
            self.assertNotIn("old", text)

    def test_tails_of_chi_square(self):
        self.assertAlmostEqual(tables.chi_square_tail(30.143527, 19), 0.05, places=6)
        self.assertAlmostEqual(tables.chi_square_tail(18.307038, 10), 0.05, places=6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
