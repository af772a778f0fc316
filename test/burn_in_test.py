#!/usr/bin/env python3
"""Rows of a table share their burn-in: `fedep reproduce` plays it once, and every row still ends in the bytes that it
ends in when it plays all of its rounds itself.

    burn_in_test.py PROGRAM
"""

import os
import sys
import unittest

from program import LABELLED, FolderTest, Program, contents, json_lines, skip
from tensorboard_events import steps

PROGRAM = None
BURN_IN = 5
ROUNDS = 12
RECIPE = """
table = "trial"
row = "{row}"
seed = 1
{data}
[client]
epochs = 2
batch = 10
optimizer = {{ name = "sgd", lr = 0.05, momentum = 0.9 }}
[server]
clients_per_round = 3
optimizer = {{ name = "sgd", lr = 0.5, momentum = 0.9 }}
[[phase]]
algorithm = "fed_avg"
rounds = {burn_in}
{second}
[evaluate]
every = {every}
samples = {samples}
[checkpoint]
every = 4
factors = {factors}
"""
SECOND = """[[phase]]
algorithm = "{algorithm}"
rounds = {rounds}
[phase.inference]
name = "{inference}"
alpha = 0.5
"""
# row, algorithm of the second phase (none: FedAvg all along), inference, rounds of the first phase
ROWS = [
    ("fed_avg", None, None, ROUNDS),
    ("fed_ep_i", "fed_ep", "scaled_identity", BURN_IN),
    ("fed_pa", "fed_pa", "sg_mcmc", BURN_IN - 1),
    ("fed_sep_l", "fed_sep", "laplace", BURN_IN),
]


def rounds_of(run):
    """Lines of its rounds, with their seconds."""
    return [line for line in json_lines(run / "log.jsonl") if line["kind"] == "round"]


class BurnInTest(FolderTest):
    def setUp(self):
        super().setUp()
        (self.folder / "recipe").mkdir()
        self.write_recipes()

    def write_recipes(self, every=1):
        for row, algorithm, inference, burn_in in ROWS:
            second = SECOND.format(algorithm=algorithm, rounds=ROUNDS - burn_in, inference=inference)
            text = RECIPE.format(
                row=row,
                data=LABELLED,
                burn_in=burn_in,
                second=second if algorithm else "",
                every=every,
                samples=3 if algorithm == "fed_ep" else 0,
                factors="false" if algorithm == "fed_ep" else "true",
            )
            (self.folder / "recipe" / f"{row}.toml").write_text(text)

    def reproduce(self, out, *arguments):
        return self.assert_succeeds(PROGRAM.run("reproduce", "trial", "--out", out, *arguments, cwd=self.folder))

    def alone(self):
        """Every row's contents when it plays everything itself."""
        self.reproduce("alone", "--no-shared-burn-in", "--results", "alone.jsonl")
        self.assertFalse((self.folder / "alone" / "burn-in").exists())
        return {row: contents(self.run_folder("alone", row)) for row, *_ in ROWS}

    def run_folder(self, out, row):
        return self.folder / out / f"{row}-seed1"

    def kept(self, out="shared"):
        return sorted(path.name for path in (self.folder / out / "burn-in").iterdir())

    def assert_same(self, expected, out, shared):
        """`shared`: how many of each row's rounds came from another's."""
        for row, *_ in ROWS:
            with self.subTest(row=row):
                files, lines = contents(self.run_folder(out, row))
                self.assertEqual(sorted(files), sorted(expected[row][0]))
                for name, content in expected[row][0].items():
                    self.assertEqual(files[name], content, f"{name} differs")
                self.assertEqual(lines[0].pop("shared_rounds", 0), shared[row])
                self.assertEqual(lines, expected[row][1])

    def test_ends_in_the_same_bytes_and_log_whoever_played_it(self):
        for every in (1, 3):
            with self.subTest(every=every):
                self.write_recipes(every)
                expected = self.alone()
                self.reproduce("shared")
                self.assert_same(expected, "shared", {"fed_avg": 0, "fed_ep_i": 5, "fed_pa": 4, "fed_sep_l": 5})
                self.assertEqual(len(self.kept()), 4)  # after 4 and after 5 rounds
                # One row a process, the one that leaves first first.
                for row in ("fed_pa", "fed_sep_l", "fed_avg", "fed_ep_i"):
                    self.reproduce("one-by-one", "--rows", row)
                self.assert_same(
                    expected, "one-by-one", {"fed_pa": 0, "fed_sep_l": 4, "fed_avg": 5, "fed_ep_i": 5}
                )
                for out in ("alone", "shared", "one-by-one"):
                    for path in sorted((self.folder / out).rglob("*"), reverse=True):
                        path.unlink() if path.is_file() else path.rmdir()

    def test_counts_the_shared_rounds_seconds(self):
        self.reproduce("shared", "--rows", "fed_avg,fed_sep_l")
        first, second = (self.run_folder("shared", row) for row in ("fed_avg", "fed_sep_l"))
        self.assertEqual(rounds_of(first)[:BURN_IN], rounds_of(second)[:BURN_IN])
        results = json_lines(self.folder / "result" / "results.jsonl")
        for run, result in zip((first, second), results):
            self.assertAlmostEqual(result["seconds"], sum(line["seconds"] for line in rounds_of(run)))
            self.assertEqual(result["rounds"], ROUNDS)

    def test_is_in_every_rows_event_file(self):
        self.reproduce("shared", "--rows", "fed_avg,fed_sep_l")
        (events,) = self.run_folder("shared", "fed_sep_l").glob("events.out.tfevents.*")
        self.assertEqual(steps(events), list(range(1, ROUNDS + 1)))
        (all_along,) = self.run_folder("shared", "fed_avg").glob("events.out.tfevents.*")
        for name in (b"accuracy", b"train_loss", b"seconds"):
            self.assertEqual(events.read_bytes().count(name), all_along.read_bytes().count(name))

    def test_passes_over_what_is_damaged_with_a_line(self):
        expected = self.alone()
        self.reproduce("shared", "--rows", "fed_avg")
        for path in (self.folder / "shared" / "burn-in").iterdir():
            whole = bytearray(path.read_bytes())
            whole[-3] ^= 1
            path.write_bytes(whole)
        done = self.reproduce("shared")
        self.assertEqual(done.stderr.count("not used, these rounds are played again"), 2)
        # fed_ep_i found both of them bad, and kept what it played itself for the rows after it.
        self.assert_same(expected, "shared", {"fed_avg": 0, "fed_ep_i": 0, "fed_pa": 4, "fed_sep_l": 5})

    def test_is_not_shared_between_other_data_or_seeds(self):
        self.reproduce("shared", "--rows", "fed_avg")
        self.reproduce("shared", "--rows", "fed_sep_l", "--seeds", "2")
        log = (self.folder / "shared" / "fed_sep_l-seed2" / "log.jsonl").read_text()
        self.assertNotIn("shared_rounds", log.splitlines()[0])
        self.assertEqual(len(self.kept()), 8)

    def test_by_processes_at_once_does_no_harm(self):
        expected = self.alone()
        started = [
            PROGRAM.start("reproduce", "trial", "--rows", row, "--out", "shared", "--results", f"{row}.jsonl", cwd=self.folder)
            for row, *_ in ROWS
        ]
        for process in started:
            _, stderr = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, stderr)
            self.assertNotIn("not used", stderr)
        for row, *_ in ROWS:
            files, lines = contents(self.run_folder("shared", row))
            self.assertEqual(files, expected[row][0])
            self.assertEqual(lines[1:], expected[row][1][1:])
        self.assertEqual(len(self.kept()), 4)

    def test_goes_on_with_a_run_that_was_behind_it(self):
        expected = self.alone()
        self.reproduce("shared", "--rows", "fed_avg")
        # A run that had begun by itself and was stopped after three rounds.
        run = self.run_folder("shared", "fed_sep_l")
        recipe = self.folder / "recipe" / "fed_sep_l.toml"
        self.assert_succeeds(PROGRAM.run("run", recipe, "--rounds", 3, "--out", run, cwd=self.folder))
        self.reproduce("shared")
        self.assert_same(expected, "shared", {"fed_avg": 0, "fed_ep_i": 5, "fed_pa": 4, "fed_sep_l": 5})

    def test_is_not_kept_by_a_run_that_went_on_from_its_own_checkpoint(self):
        """It may have come there otherwise: here its first rounds were not scored."""
        expected = self.alone()
        run = self.run_folder("shared", "fed_avg")
        recipe = self.folder / "recipe" / "fed_avg.toml"
        unscored = ("--rounds", 3, "--set", "evaluate.every=0")
        self.assert_succeeds(PROGRAM.run("run", recipe, *unscored, "--out", run, cwd=self.folder))
        self.reproduce("shared", "--rows", "fed_avg")
        self.assertFalse((self.folder / "shared" / "burn-in").exists())
        self.reproduce("shared", "--rows", "fed_sep_l")
        self.assertEqual(contents(self.run_folder("shared", "fed_sep_l")), expected["fed_sep_l"])
        self.assertEqual(len(self.kept()), 4)

    def test_is_not_shared_between_programs(self):
        """Of one version, but not of the same bytes."""
        self.reproduce("shared", "--rows", "fed_avg")
        other = self.folder / "fedep"
        other.write_bytes(PROGRAM.path.read_bytes() + b"\0")
        other.chmod(0o755)
        if not os.access(other, os.X_OK):
            skip(f"{self.folder} holds no programs that can be run")
        arguments = ("reproduce", "trial", "--out", "shared", "--rows", "fed_sep_l")
        done = self.assert_succeeds(Program(other).run(*arguments, cwd=self.folder))
        self.assertNotIn("rounds are those of", done.stderr)
        self.assertEqual(len(self.kept()), 8)

    def test_in_a_named_folder_is_shared_between_folders_of_runs(self):
        self.reproduce("one", "--rows", "fed_avg", "--burn-in", "burn-in")
        done = self.reproduce("two", "--rows", "fed_ep_i", "--burn-in", "burn-in")
        self.assertIn("the first 5 rounds are those of burn-in/", done.stderr)


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
