#!/usr/bin/env python3
"""Runs over MPI: the same bytes whatever the number of ranks, and whatever becomes of them.

    mpi_test.py PROGRAM CRASH_AT_LIBRARY [--cycles N]

Starts ranks on this machine with Open MPI's mpirun. N: how often a run loses a random rank (default 5).
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from program import RECIPE, FolderTest, Program, contents, log_lines

PROGRAM = LIBRARY = None
CYCLES = 5
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Containers may forbid that one process reads another one's memory; ranks that wait make room for those that work.
QUIET = {
    **os.environ,
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}

# Clients of very different sizes; {} is the part that differs.
UNEVEN = """
seed = 3
[data]
name = "synthetic"
clients = 12
dimension = 6
examples = 300
calibration_fraction = 0.1
[client]
batch = 10
epochs = 2
optimizer = {{ name = "sgd", lr = 0.02, momentum = 0.9 }}
[server]
clients_per_round = 5
{server}
[[phase]]
algorithm = "fed_avg"
rounds = 2
[[phase]]
algorithm = "{algorithm}"
rounds = 5
{phase}
[evaluate]
every = 2
samples = 2
[checkpoint]
every = 2
keep = 3
{checkpoint}
"""
LAPLACE = '[phase.inference]\nname = "laplace"\nalpha = 0.02'


def uneven(algorithm, phase="", server="", checkpoint=""):
    return UNEVEN.format(algorithm=algorithm, phase=phase, server=server, checkpoint=checkpoint)


def inferred(name, **settings):
    return f'[phase.inference]\nname = "{name}"\n' + "\n".join(f"{key} = {value}" for key, value in settings.items())


# Every algorithm and method, both memories of factors, both grids; "regression" has real targets, "toy" exact moments.
METHODS = {
    "scaled_identity": {"alpha": 0.02},
    "sample_moments": {"shrinkage": 0.001, "rho": 0.01, "mixin_epochs": 1},
    "laplace": {"alpha": 0.02},
    "ngvi": {"alpha": 0.02},
}
RECIPES = {
    "toy": RECIPE,
    "fed_avg": uneven("fed_avg"),
    "fed_pa": uneven("fed_pa", "[phase.inference]\nrho = 0.01\nmixin_epochs = 1"),
    "fed_sep_laplace": uneven("fed_sep", inferred("laplace", alpha=0.02)),
    "fed_ep_full": uneven("fed_ep", inferred("laplace", family='"full"'), server="prior = { mean = 0, precision = 1 }"),
    "fed_ep_32_bits": uneven("fed_ep", LAPLACE, server="grid_bits = 32"),
    "fed_ep_on_disk": uneven("fed_ep", LAPLACE, checkpoint='sites = "disk"'),
    "fed_ep_not_saved": uneven("fed_ep", LAPLACE, checkpoint="factors = false"),
    "fed_ep_momentum": uneven("fed_ep", LAPLACE, server='optimizer = { name = "sgd", lr = 0.5, momentum = 0.9 }'),
    **{f"fed_ep_{name}": uneven("fed_ep", inferred(name, **settings)) for name, settings in METHODS.items()},
}


def play(ranks, *arguments, program=None, **options):
    return subprocess.run(over(ranks, *arguments, program=program), capture_output=True, text=True, timeout=300, env=QUIET, **options)


def over(ranks, *arguments, program=None):
    return [*MPIRUN, "-n", str(ranks), str(program or PROGRAM.path), *map(str, arguments)]


def own_lines(done):
    """What the program said of an error, not its launcher."""
    return [line for line in done.stderr.splitlines() if line.startswith("fedep: ")]


class RanksTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.runs = 0

    def recipe(self, text):
        file = self.folder / "recipe.toml"
        file.write_text(text)
        return file

    def new_run(self):
        self.runs += 1
        return self.folder / f"run-{self.runs}"

    def alone(self, recipe):
        out = self.new_run()
        self.assert_finishes(PROGRAM.run("run", recipe, "--out", out))
        return contents(out)

    def assert_refused(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(own_lines(done)), 1, done.stderr)
        self.assert_says(own_lines(done)[0], *words)


class SameBits(RanksTest):
    def check(self, name, ranks, threads):
        with self.subTest(recipe=name, ranks=ranks, threads=threads):
            out = self.new_run()
            done = play(ranks, "run", self.recipe(RECIPES[name]), "--out", out, "--threads", threads)
            self.assert_finishes(done)
            self.assertEqual(contents(out), self.expected[name])
            self.assertEqual(done.stderr.count("run is in"), 1, "one rank speaks")
            shutil.rmtree(out)

    def test_whatever_the_number_of_ranks_and_threads(self):
        self.expected = {"fed_ep_laplace": self.alone(self.recipe(RECIPES["fed_ep_laplace"]))}
        self.assertTrue(any(name.endswith(".site") for name in self.expected["fed_ep_laplace"][0]))
        for ranks in (1, 2, 3, 4, 7):
            for threads in (1, 2):
                self.check("fed_ep_laplace", ranks, threads)

    def test_whatever_is_played(self):
        self.expected = {name: self.alone(self.recipe(text)) for name, text in RECIPES.items()}
        for name in RECIPES:
            self.check(name, 3, 1)


class Lost(RanksTest):
    """Runs that end before their time, and go on with another number of ranks or with none."""

    def begin(self, ranks, recipe, out, *more):
        return subprocess.Popen(
            over(ranks, "run", recipe, "--out", out, *more),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET,
        )

    def ranks_of(self, launcher):
        """Process ids of what a launcher started."""
        found = []
        for task in Path(f"/proc/{launcher.pid}/task").iterdir():
            found += [int(pid) for pid in (task / "children").read_text().split()]
        return [pid for pid in found if str(PROGRAM.path) in Path(f"/proc/{pid}/cmdline").read_text()]

    def wait_for(self, happened, launcher):
        end = time.monotonic() + 120
        while not happened():
            self.assertIsNone(launcher.poll(), "the run ended first")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def assert_gone(self, pids):
        end = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            self.assertLess(time.monotonic(), end, "a rank is left behind")
            time.sleep(0.05)

    def rounds_in(self, out):
        log = out / "log.jsonl"
        return log.read_text().count('"round"') if log.exists() else 0

    def long_recipe(self):
        return self.recipe(
            uneven("fed_ep", LAPLACE).replace("rounds = 5", "rounds = 60").replace("every = 2\nkeep = 3", "every = 5\nkeep = 2")
        )

    def test_ranks_that_are_killed_lose_nothing_that_was_saved(self):
        dice = random.Random(21)
        recipe = self.long_recipe()
        expected = self.alone(recipe)
        for cycle in range(CYCLES):
            out = self.new_run()
            ranks = dice.choice((2, 3, 4))
            launcher = self.begin(ranks, recipe, out)
            after = dice.randrange(1, 50)
            self.wait_for(lambda: self.rounds_in(out) >= after, launcher)
            victims = self.ranks_of(launcher)
            self.assertEqual(len(victims), ranks)
            os.kill(dice.choice(victims), signal.SIGKILL)
            launcher.communicate(timeout=60)
            self.assertNotEqual(launcher.returncode, 0)
            self.assert_gone(victims)
            other = dice.choice([n for n in (1, 2, 3, 5) if n != ranks])
            with self.subTest(cycle=cycle, ranks=ranks, after=after, then=other):
                arguments = ["run", recipe, "--out", out, "--resume"]
                done = PROGRAM.run(*arguments) if other == 1 else play(other, *arguments)
                self.assert_finishes(done)
                self.assertEqual(contents(out), expected)
            shutil.rmtree(out)

    def test_a_signal_stops_all_after_a_round_and_a_second_changes_nothing(self):
        recipe = self.long_recipe()
        expected = self.alone(recipe)
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                out = self.new_run()
                launcher = self.begin(3, recipe, out)
                self.wait_for(lambda: self.rounds_in(out) >= 3, launcher)
                one = self.ranks_of(launcher)[2]
                os.kill(one, number)
                try:
                    os.kill(one, number)
                except ProcessLookupError:
                    pass  # it was that fast
                _, errors = launcher.communicate(timeout=60)
                self.assertEqual(launcher.returncode, 130, errors)
                self.assertIn("stopped after round", errors)
                self.assertLess(self.rounds_in(out), 62)
                self.assert_finishes(play(2, "run", recipe, "--out", out, "--resume"))
                self.assertEqual(contents(out), expected)

    def test_a_launcher_that_dies_leaves_no_rank_behind(self):
        recipe = self.long_recipe()
        out = self.new_run()
        launcher = self.begin(2, recipe, out)
        self.wait_for(lambda: self.rounds_in(out) >= 2, launcher)
        ranks = self.ranks_of(launcher)
        launcher.kill()
        launcher.communicate(timeout=60)
        self.assert_gone(ranks)
        self.assert_finishes(PROGRAM.run("run", recipe, "--out", out, "--resume"))
        self.assertEqual(contents(out), self.alone(recipe))


class Refused(RanksTest):
    """One rank that is not like the others ends all of them, with words."""

    def differing(self, script):
        """A program that does something else on rank 1."""
        file = self.folder / "fedep"
        file.write_text(f'#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then\n{script}\nfi\nexec {PROGRAM.path} "$@"\n')
        file.chmod(0o755)
        return file

    def test_a_rank_with_another_recipe(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        program = self.differing(f'exec {PROGRAM.path} "$@" --set client.epochs=3')
        done = play(3, "run", recipe, "--out", self.folder / "run", program=program)
        self.assert_refused(done, 2, "recipe must be the same on all ranks", "rank 1", "epochs = 3", "epochs = 2")
        self.assertFalse((self.folder / "run").exists())

    def test_a_rank_with_other_data(self):
        table = "hospital,x,y\n" + "".join(f"{i % 4},{i % 7},{i % 3}\n" for i in range(80))
        for name, text in (("here", table), ("there", table + "1,2,3\n")):
            (self.folder / name).mkdir()
            (self.folder / name / "t.csv").write_text(text)
        recipe = self.recipe(
            '[data]\nname = "tabular"\npath = "t.csv"\nclient_column = "hospital"\nlabel_column = "y"\nlabel = "number"\n'
            '[client]\nbatch = 5\n[server]\nclients_per_round = 2\n[[phase]]\nalgorithm = "fed_avg"\nrounds = 2\n'
        )
        program = self.differing(f'exec {PROGRAM.path} "$@" --data {self.folder / "there"}')
        done = play(2, "run", recipe, "--out", self.folder / "run", program=program, cwd=self.folder / "here")
        self.assert_refused(done, 2, "data must be the same on all ranks", "rank 1")

    def test_a_rank_of_another_program(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        other = self.folder / "other"
        other.write_bytes(PROGRAM.path.read_bytes() + b"\0")
        other.chmod(0o755)
        program = self.differing(f'exec {other} "$@"')
        arguments = ["run", recipe, "--out", self.folder / "run"]
        self.assert_refused(play(2, *arguments, program=program), 2, "program must be the same on all ranks", "--mixed-cpus")
        done = play(2, *arguments, "--mixed-cpus", program=program)
        self.assert_finishes(done)
        self.assertIn("program must be the same", log_lines(self.folder / "run")[0]["remark"])

    def test_a_rank_with_another_blas_kernel(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        program = self.differing("export OPENBLAS_CORETYPE=Prescott")
        done = play(2, "run", recipe, "--out", self.folder / "run", program=program)
        self.assert_refused(done, 2, "BLAS kernel must be the same on all ranks", "Prescott")

    def test_a_mistake_that_all_make_is_said_once(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        done = play(3, "run", recipe, "--out", self.folder / "run", "--set", "client.epochs=-1")
        self.assert_refused(done, 2, "rank 0", "epochs")
        self.assert_refused(play(2, "list"), 2, "only `fedep run`")
        self.assert_refused(play(2, "run", recipe, "--out", self.folder / "run", "--device", "cuda"), 2, "rank 0")

    def test_a_rank_that_cannot_write_its_factors(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        expected = self.alone(recipe)
        for call in (3, 12):
            out = self.new_run()
            program = self.differing(
                f"export CRASH_FOLDER={out}/sites CRASH_AT={call} CRASH_HOW=ENOSPC LD_PRELOAD={LIBRARY}"
            )
            done = play(3, "run", recipe, "--out", out, program=program)
            self.assert_refused(done, 1, "rank 1", "No space left on device")
            # What was saved before goes on.
            self.assert_finishes(play(2, "run", recipe, "--out", out, "--resume"))
            self.assertEqual(contents(out), expected)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("--cycles", type=int, default=CYCLES)
    known, rest = parser.parse_known_args()
    PROGRAM, LIBRARY, CYCLES = Program(known.program), known.library.resolve(), known.cycles
    unittest.main(argv=[sys.argv[0], *rest])
