#!/usr/bin/env python3
"""`fedep toy`, the paper's toy experiment: its options, its JSON and its pictures.

    cli_toy_test.py PROGRAM
"""

import json
import sys
import unittest

from cli import CliTest
from program import Program


class Toy(CliTest):
    def toy(self, *arguments):
        return self.program.run("toy", *arguments)

    def test_options_out_of_range_are_named(self):
        for option, value in (
            ("--trials", "0"),
            ("--trials", "-5"),
            ("--trials", "many"),
            ("--trials", "99999999999"),
            ("--steps", "0"),
            ("--steps", "-1"),
            ("--steps", "1.5"),
            ("--seed", "-1"),
            ("--seed", "x"),
        ):
            with self.subTest(option=option, value=value):
                self.assert_one_line(self.toy(f"{option}={value}"), 2, option.strip("-"), value)

    def test_json_has_the_promised_shape(self):
        done = self.assert_succeeds(self.toy("--trials", 5, "--steps", 20, "--json"))
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(done.stdout.splitlines()), 1)
        result = json.loads(done.stdout)
        for method in ("fed_avg", "fed_pa", "fed_ep", "fed_ep_identity"):
            self.assertLessEqual({"mean", "std"}, set(result[method]))
            self.assertTrue(all(isinstance(value, float) and value >= 0 for value in result[method].values()))
        self.assertEqual(result["trials"], 5)
        self.assertLess(result["fed_ep"]["mean"], result["fed_pa"]["mean"])

    def test_the_same_seed_gives_the_same_text(self):
        text = [self.assert_succeeds(self.toy("--trials", 3, "--seed", seed, "--json")).stdout for seed in (1, 1, 2)]
        self.assertEqual(text[0], text[1])
        self.assertNotEqual(json.loads(text[0])["fed_avg"], json.loads(text[2])["fed_avg"])

    def test_figure_writes_both_pictures(self):
        prefix = self.folder / "pictures" / "toy"
        done = self.assert_succeeds(self.toy("--trials", 3, "--steps", 5, "--figure", prefix))
        names = sorted(path.name for path in prefix.parent.iterdir())
        self.assertEqual(names, ["toy-contours.svg", "toy-distance.svg"])
        for name in names:
            text = (prefix.parent / name).read_text()
            self.assertTrue(text.startswith("<svg") and text.rstrip().endswith("</svg>"))
            self.assertIn(name, done.stderr)
        self.assertIn("FedEP", done.stdout)


if __name__ == "__main__":
    CliTest.program = Program(sys.argv.pop(1))
    unittest.main()
