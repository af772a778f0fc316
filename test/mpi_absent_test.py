#!/usr/bin/env python3
"""A program without MPI that a launcher starts several times says so, once, and plays nothing.

    mpi_absent_test.py PROGRAM
"""

import os
import sys
import unittest

from program import RECIPE, FolderTest, Program

PROGRAM = None
LAUNCHERS = (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"))


class Absent(FolderTest):
    def start(self, names, ranks, rank, out):
        recipe = self.folder / "recipe.toml"
        recipe.write_text(RECIPE)
        environment = {**os.environ, names[0]: str(ranks), names[1]: str(rank)}
        return PROGRAM.run("run", recipe, "--out", out, env=environment)

    def test_several_ranks_are_refused_in_words(self):
        for names in LAUNCHERS:
            out = self.folder / names[0]
            self.assert_one_line(self.start(names, 4, 0, out), 2, "started 4 ranks", "has no MPI", "--preset mpi")
            other = self.start(names, 4, 3, out)
            self.assertEqual((other.returncode, other.stdout, other.stderr), (0, "", ""))
            self.assertFalse(out.exists())

    def test_one_plays(self):
        self.assert_finishes(self.start(LAUNCHERS[1], 1, 0, self.folder / "run"))


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
