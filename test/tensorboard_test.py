#!/usr/bin/env python3
"""TensorBoard's event files: one per start, every round once. That TensorBoard reads them is for peers_test.py to say.

    tensorboard_test.py PROGRAM
"""

import sys
import unittest

from program import Program
from tables import ROUNDS, TablesTest
from tensorboard_events import steps


class TensorBoard(TablesTest):
    def events(self, run):
        return sorted(run.glob("events.out.tfevents.*"))

    def test_has_a_file_per_start_and_every_round_once(self):
        self.recipe("trial", "fed_avg")
        recipe, out = self.recipes / "trial" / "fed_avg.toml", self.folder / "run"
        self.assert_succeeds(self.program.run("run", recipe, "--out", out, "--rounds", 5))
        self.assert_succeeds(self.program.run("run", recipe, "--out", out, "--resume"))
        self.assert_succeeds(self.program.run("run", recipe, "--out", out, "--resume"))  # plays nothing
        first, second = self.events(out)
        self.assertEqual(steps(first), list(range(1, 6)))
        self.assertEqual(steps(second), list(range(6, ROUNDS + 1)))
        self.assertIn(b"accuracy", first.read_bytes())
        self.assertIn(b"train_loss", first.read_bytes())


if __name__ == "__main__":
    TablesTest.program = Program(sys.argv.pop(1))
    unittest.main()
