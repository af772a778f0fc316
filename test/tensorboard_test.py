#!/usr/bin/env python3
"""TensorBoard's event files: one per start, every round once.

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
        recipe, out = self.recipes / "trial_fed_avg.toml", self.folder / "run"
        self.assert_succeeds(self.program.run("run", recipe, "--out", out, "--rounds", 5))
        self.assert_succeeds(self.program.run("run", recipe, "--out", out, "--resume"))
        self.assert_succeeds(self.program.run("run", recipe, "--out", out, "--resume"))  # plays nothing
        first, second = self.events(out)
        self.assertEqual(steps(first), list(range(1, 6)))
        self.assertEqual(steps(second), list(range(6, ROUNDS + 1)))
        self.assertIn(b"accuracy", first.read_bytes())
        self.assertIn(b"train_loss", first.read_bytes())

    def test_files_are_read_by_tensorboard(self):
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError:
            self.skipTest("there is no tensorboard")
        self.recipe("trial", "fed_avg")
        out = self.folder / "run"
        self.assert_succeeds(self.program.run("run", self.recipes / "trial_fed_avg.toml", "--out", out))
        read = EventAccumulator(str(out))
        read.Reload()
        log = self.lines(out / "log.jsonl")
        self.assertEqual(
            [(event.step, round(event.value, 6)) for event in read.Scalars("accuracy")],
            [(line["round"] + 1, round(line["accuracy"], 6)) for line in log if "accuracy" in line],
        )


if __name__ == "__main__":
    TablesTest.program = Program(sys.argv.pop(1))
    unittest.main()
