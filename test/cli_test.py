#!/usr/bin/env python3
"""Commands and options: what is misspelt or out of range is named, with the name that was meant; help, version and
lists are results, and a result that cannot be printed is a failure.

    cli_test.py PROGRAM
"""

import os
import re
import subprocess
import sys
import unittest

from cli import CliTest
from program import LABELLED, Program, contents


class Usage(CliTest):
    def test_without_a_command_is_refused(self):
        self.assert_one_line(self.program.run(), 2, "subcommand is required", "--help")

    def test_an_unknown_command_or_option_is_named(self):
        self.assert_one_line(self.program.run("rum"), 2, "unknown command rum", "did you mean run?")
        self.assert_one_line(self.program.run("frobnicate", self.recipe), 2, "frobnicate", "known: toy, check, run")
        self.assert_one_line(self.program.run("--verison"), 2, "--verison", "--version")
        for command in ("toy", "check", "run", "list"):
            done = self.program.run(command, "--frob")
            self.assert_one_line(done, 2, "fedep " + command + " --help")
        self.assert_one_line(self.program.run("run", self.recipe, "--treads", 3), 2, "--treads")
        self.assert_one_line(self.program.run("run", self.recipe, "another.toml"), 2, "another.toml")
        self.assert_one_line(self.program.run("run"), 2, "recipe is required")

    def test_a_number_out_of_range_is_named(self):
        for option, value in (
            ("--threads", "0"),
            ("--threads", "-3"),
            ("--threads", "many"),
            ("--threads", "2.5"),
            ("--threads", "1000000000"),
            ("--rounds", "0"),
            ("--rounds", "-1"),
            ("--rounds", "99999999999999999999"),
            ("--seed", "-1"),
            ("--seed", "one"),
            ("--seed", "18446744073709551615"),
        ):
            with self.subTest(option=option, value=value):
                self.assert_one_line(self.run_recipe(f"{option}={value}"), 2, option, value)
                self.assertFalse(self.out.exists())
        self.assert_one_line(self.run_recipe("--threads"), 2, "--threads")

    def test_help_and_version_are_results(self):
        for arguments in (["--help"], ["run", "--help"], ["toy", "--help"]):
            done = self.assert_succeeds(self.program.run(*arguments))
            self.assertIn("--help", done.stdout)
            self.assertEqual(done.stderr, "")
        done = self.assert_succeeds(self.program.run("--version"))
        self.assertRegex(done.stdout, r"^fedep \d+\.\d+\.\d+ \(.*cores\)\n$")

    def test_lists_names_and_refuses_unknown_lists(self):
        everything = self.assert_succeeds(self.program.run("list")).stdout
        for what, names in (
            (
                "algorithms",
                ("fed_avg", "fed_pa", "fed_ep", "fed_sep", "fed_prox", "fed_dyn", "pvi", "fed_lap", "fed_lap_cov", "bayes_admm", "fed_ivon"),
            ),
            ("optimizers", ("sgd", "adagrad", "adam", "yogi")),
            ("places", ("serial", "threads", "cuda", "mpi", "mpi_cuda")),
        ):
            listed = self.assert_succeeds(self.program.run("list", what)).stdout
            self.assertIn(listed, everything)
            self.assertEqual(listed.splitlines()[0], what)
            self.assertEqual([line.split()[0] for line in listed.splitlines()[1:]], list(names))
        self.assert_one_line(self.program.run("list", "algoritms"), 2, "algoritms", "did you mean algorithms?")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_results_that_cannot_be_printed_are_a_failure(self):
        for arguments in (["list"], ["toy", "--trials", "2", "--json"], ["check", self.recipe]):
            with open("/dev/full", "w") as full:
                done = subprocess.run(
                    [self.program.path, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
                )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assert_says(done.stderr.splitlines()[-1], "standard output", "No space left")

    def with_streams(self, redirections, *arguments):
        """The program with its standard streams redirected by a shell."""
        command = ["sh", "-c", f'exec "$@" {redirections}', "sh", self.program.path, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_what_cannot_be_said_is_lost_and_the_run_goes_on(self):
        self.assert_succeeds(self.run_recipe(out=self.folder / "plain"))
        for number, redirection in enumerate(("2>/dev/full", "2>&-", "<&- 2>&-")):
            with self.subTest(redirection):
                out = self.folder / f"run{number}"
                done = self.with_streams(redirection, "run", self.recipe, "--out", out)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, r"^distance \S+\n$")
                self.assertEqual(contents(out), contents(self.folder / "plain"))  # no word of it went into a file
                self.assertEqual(self.with_streams(redirection, "run", self.folder / "none.toml").returncode, 2)

    def test_a_result_without_a_place_is_a_failure(self):
        for redirection in (">&-", "<&- >&-", ">&- 2>/dev/full", ">&- 2>&-"):
            with self.subTest(redirection):
                done = self.with_streams(redirection, "list")
                self.assertEqual(done.returncode, 1)
                if "2>" not in redirection:
                    self.assert_one_line(done, 1, "standard output: cannot write")
        out = self.folder / "closed"
        self.assertEqual(self.with_streams(">&-", "run", self.recipe, "--out", out).returncode, 1)
        self.assertTrue(all(line.startswith("{") for line in (out / "log.jsonl").read_text().splitlines()))

    def test_a_reader_that_goes_ends_nothing_but_its_results(self):
        for stream, arguments, code in (
            ("stdout", ["list"], 141),
            ("stderr", ["run", self.recipe, "--out", self.out], 0),
        ):
            reading, writing = os.pipe()
            os.close(reading)
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writing}
            done = subprocess.run([self.program.path, *map(str, arguments)], text=True, timeout=120, **streams)
            os.close(writing)
            self.assertEqual(done.returncode, code)
            if stream == "stdout":
                self.assertEqual(done.stderr, "")

    def test_bench_takes_device_and_precision_as_runs_do(self):
        recipe = self.folder / "labelled.toml"
        recipe.write_text(LABELLED + '[server]\nclients_per_round = 3\n[[phase]]\nalgorithm = "fed_avg"\nrounds = 2\n')
        self.assert_succeeds(self.program.run("bench", "round", recipe, "--rounds", 1, "--precision", "float32"))
        self.assert_last_line(self.program.run("bench", "round", recipe, "--precision", "half"), 2, "unknown precision half")
        self.assert_last_line(self.program.run("bench", "round", recipe, "--device", "gpu"), 2, "unknown device gpu")

    def test_list_shows_every_registry(self):
        text = self.program.run("list").stdout
        self.assertEqual(
            re.findall(r"^\w+$", text, re.M), ["algorithms", "inference", "models", "data", "partitions", "optimizers", "places"]
        )
        for name in ("ngvi", "resnet18", "cifar100_pca", "toy", "shards", "pachinko", "yogi"):
            self.assertRegex(text, rf"(?m)^  {name} +\S")


if __name__ == "__main__":
    CliTest.program = Program(sys.argv.pop(1))
    unittest.main()
