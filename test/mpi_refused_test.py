#!/usr/bin/env python3
"""Ranks that do not fit together, or fail: what all of them say of it, once, and what is left.

    mpi_refused_test.py PROGRAM CRASH_AT_LIBRARY WRONG_SUM_LIBRARY
"""

import argparse
import os
import sys
import unittest
from pathlib import Path

import mpi_test
from mpi_test import EVERY, QUIET, RECIPES, RanksTest, play
from program import Program, contents, log_lines

PROGRAM = LIBRARY = WRONG_SUM = None


class Refused(RanksTest):
    """One rank that is not like the others ends all of them, with words."""

    def test_a_rank_with_another_recipe(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        program = self.differing(f'exec {PROGRAM.path} "$@" --set client.epochs=3')
        done = play(3, "run", recipe, "--out", self.folder / "run", program=program)
        self.assert_refused(done, 2, "recipe must be the same on all ranks", "rank 1", "epochs = 3", "epochs = 2")
        self.assertFalse((self.folder / "run").exists())

    def with_other_data(self):
        """A recipe, a program that reads a longer table on rank 1, and its environment."""
        table = "hospital,x,y\n" + "".join(f"{i % 4},{i % 7},{i % 3}\n" for i in range(80))
        for name, text in (("here", table), ("there", table + "1,2,3\n")):
            (self.folder / name).mkdir()
            (self.folder / name / "t.csv").write_text(text)
        recipe = self.recipe(
            '[data]\nname = "tabular"\npath = "t.csv"\nclient_column = "hospital"\nlabel_column = "y"\nlabel = "number"\n'
            '[client]\nbatch = 5\n[server]\nclients_per_round = 2\n[[phase]]\nalgorithm = "fed_avg"\nrounds = 2\n'
        )
        program = self.differing(f"export FEDEP_DATA={self.folder / 'there'}")
        return recipe, {"program": program, "env": {**QUIET, "FEDEP_DATA": str(self.folder / "here")}}

    def test_a_rank_with_other_data(self):
        recipe, there = self.with_other_data()
        done = play(2, "run", recipe, "--out", self.folder / "run", **there)
        self.assert_refused(done, 2, "data must be the same on all ranks", "rank 1")

    def test_a_rank_with_other_data_among_runs_that_are_dealt_out(self):
        recipe, there = self.with_other_data()
        out = self.folder / "sweep"
        done = play(2, "sweep", recipe, "--seeds", "1,2", "--out", out, **there)
        self.assert_refused(done, 2, "data must be the same on all ranks", "rank 1")
        self.assertEqual(list(out.iterdir()), [])
        # What is over already needs no data.
        self.assertEqual(play(2, "sweep", recipe, "--seeds", "1,2", "--out", out, env=there["env"]).returncode, 0)
        self.assertEqual(play(2, "sweep", recipe, "--seeds", "1,2", "--out", out, **there).returncode, 0)

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

    def test_a_rank_with_another_blas_kernel_among_runs_that_are_dealt_out(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        program = self.differing("export OPENBLAS_CORETYPE=Prescott")
        for name, more in (("alone", ()), ("pairs", ("--ranks-per-run", 2))):
            with self.subTest(name):
                arguments = ["sweep", recipe, "--seeds", "1,2,3", "--out", self.folder / name, *more]
                done = play(3, *arguments, program=program)
                self.assert_refused(done, 2, "BLAS kernel must be the same on all ranks", "Prescott", "--mixed-cpus")
                done = play(3, *arguments, "--mixed-cpus", program=program)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("BLAS kernel must be the same", done.stderr)

    def test_a_rank_without_the_others_scratch_folder(self):
        recipe = self.recipe(RECIPES["fed_ep_on_disk"])
        program = self.differing(f'exec {PROGRAM.path} "${{@:1:$#-1}}" ""')
        done = play(2, "run", recipe, "--out", self.folder / "run", "--scratch", self.folder, program=program)
        self.assert_refused(done, 2, "--scratch must be the same on all ranks", '"not given"')

    def test_a_file_system_without_locks_is_taken_as_it_is(self):
        recipe = self.recipe(RECIPES["fed_ep_on_disk"])
        out = self.new_run()
        unlocked = {**QUIET, "CRASH_NO_LOCKS": "1", "LD_PRELOAD": str(LIBRARY)}
        done = play(2, "run", recipe, "--out", out, env=unlocked)
        self.assert_finishes(done)
        self.assertEqual(contents(out), self.alone(recipe))

    def adding_wrongly(self, rank, **settings):
        """A program that has wrong sums on a rank (wrong_sum.cpp)."""
        exported = " ".join(f"WRONG_SUM_{name}={value}" for name, value in settings.items())
        return self.differing(f"export {exported} LD_PRELOAD={WRONG_SUM}", rank)

    def test_a_library_that_adds_wrongly(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        out = self.new_run()
        for rank, settings, words in (
            (1, {}, "64 bits"),
            (2, {"BITS": 32}, "place 1 of 1, 32 bits"),
            (0, {"FROM": 100000}, "of 262144, 64 bits"),
            (EVERY, {"FROM": 100000, "BITS": 32}, "of 262144, 32 bits"),
        ):
            with self.subTest(rank=rank, **settings):
                done = play(3, "run", recipe, "--out", out, program=self.adding_wrongly(rank, **settings))
                who = 0 if rank == EVERY else rank
                self.assert_refused(done, 1, "rank 0 on", f"MPI: on rank {who}", "over 3 ranks must be", words)
                self.assertFalse(out.exists())
        self.assert_finishes(play(3, "run", recipe, "--out", out, program=self.adding_wrongly(1, BITS=16)))

    def test_a_library_that_adds_wrongly_in_groups(self):
        arguments = ["sweep", self.recipe(RECIPES["fed_ep_laplace"]), "--seeds", "1,2", "--out", self.new_run()]
        program = self.adding_wrongly(3, GROUPS=1)
        done = play(4, *arguments, "--ranks-per-run", 2, program=program)
        self.assert_refused(done, 1, "MPI: on rank 3", "over 2 ranks must be")
        self.assertEqual(play(4, *arguments, program=program).returncode, 0)

    def test_ranks_that_do_not_find_each_other_say_so_once(self):
        recipe = self.recipe(RECIPES["fed_avg"])
        for rank in (0, 1):
            env = {**QUIET, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": str(rank)}
            done = PROGRAM.run("run", recipe, "--out", self.folder / "run", env=env)
            if rank == 0:
                self.assert_one_line(done, 2, "srun started 2 ranks, but MPI found 1", "--mpi=pmix")
            else:
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertFalse((self.folder / "run").exists())

    def test_help_is_printed_once(self):
        for arguments in (["--help"], ["--version"], ["run", "--help"], ["sweep", "--help"]):
            done = play(3, *arguments)
            self.assertEqual((done.returncode, done.stdout), (0, PROGRAM.run(*arguments).stdout), done.stderr)
        for arguments in ([], ["--halp"], ["run", "--halp"], ["halp"]):
            self.assert_refused(play(3, *arguments), 2)

    def test_one_rank_needs_no_mpi(self):
        """`srun --pty bash` says that it started one, and may have no MPI for it."""
        one = {**os.environ, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "OMPI_MCA_btl": "none", "OMPI_MCA_pml": "none"}
        self.assertEqual(PROGRAM.run("list", env=one).returncode, 0)
        recipe = self.recipe(RECIPES["fed_avg"])
        out = self.new_run()
        self.assert_finishes(PROGRAM.run("run", recipe, "--out", out, env=one))
        self.assertEqual(contents(out), self.alone(recipe))

    def test_a_rank_that_does_not_see_the_folder(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        (self.folder / "elsewhere").mkdir()
        program = self.differing(f"cd {self.folder / 'elsewhere'}")
        for command in (["run", recipe, "--out", "run"], ["sweep", recipe, "--seeds", "1,2", "--out", "sweep"]):
            done = play(3, *command, program=program, cwd=self.folder)
            self.assert_refused(done, 2, "must be one that all ranks see", "rank 1")

    def test_a_mistake_that_all_make_is_said_once(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        done = play(3, "run", recipe, "--out", self.folder / "run", "--set", "client.epochs=-1")
        self.assert_refused(done, 2, "rank 0", "epochs")
        self.assert_refused(play(2, "list"), 2, "only fedep run, reproduce, sweep are shared out")
        for command in (["run", recipe, "--out", self.folder / "run"], ["sweep", recipe, "--out", self.folder / "sweep"]):
            if PROGRAM.run(*command, "--device", "cuda").returncode == 2:  # no GPU: test/mpi_cuda_test.py has those with one
                self.assert_refused(play(2, *command, "--device", "cuda"), 2, "rank 0")

    def test_a_rank_that_cannot_write_its_factors(self):
        recipe = self.recipe(RECIPES["fed_ep_laplace"])
        expected = self.alone(recipe)
        for call in (3, 12):
            out = self.new_run()
            program = self.crashing(out / "sites", 1, AT=call, HOW="ENOSPC")
            done = play(3, "run", recipe, "--out", out, program=program)
            self.assert_refused(done, 1, "rank 1", "No space left on device")
            # What was saved before goes on.
            self.assert_finishes(play(2, "run", recipe, "--out", out, "--resume"))
            self.assertEqual(contents(out), expected)

    def test_a_disk_that_is_full_for_one_rank(self):
        """No file may grow beyond a few KiB there: rank 0's log and checkpoints do not fit, nor another rank's factors."""
        recipe = self.recipe(RECIPES["fed_ep_full"])
        expected = self.alone(recipe)
        for rank in (0, 1):
            with self.subTest(rank=rank):
                out = self.new_run()
                program = self.differing("trap '' XFSZ\nulimit -f 6", rank)
                done = play(3, "run", recipe, "--out", out, program=program)
                self.assert_refused(done, 1, f"rank {rank} on", "File too large")
                self.assert_finishes(play(2, "run", recipe, "--out", out, "--resume"))
                self.assertEqual(contents(out), expected)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("wrong_sum", type=Path)
    known, rest = parser.parse_known_args()
    PROGRAM = mpi_test.PROGRAM = Program(known.program)
    LIBRARY, WRONG_SUM = known.library.resolve(), known.wrong_sum.resolve()
    mpi_test.LIBRARY = LIBRARY
    unittest.main(argv=[sys.argv[0], *rest])
