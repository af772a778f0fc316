#!/usr/bin/env python3
"""A disk that is full or read-only ends a run in one line that names the place; nothing is left half-written, and the
run finishes once there is room. Skips where no file system can be mounted.

    cli_small_disk_test.py PROGRAM
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from cli import CliTest
from program import RECIPE, Program, contents, skip, state


class SmallDisk(CliTest):
    """On a file system of its own, that can be full or read-only even for root."""

    PAGE = 4096
    PAGES = 64

    def setUp(self):
        super().setUp()
        self.disk = Path(tempfile.mkdtemp(prefix="fedep-test-disk-"))
        self.addCleanup(self.disk.rmdir)
        self.mount("-t", "tmpfs", "-o", f"size={self.PAGES * self.PAGE}", "none", self.disk)
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        self.out = self.disk / "run"

    def mount(self, *arguments):
        try:
            done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, timeout=60)
        except FileNotFoundError:
            skip("needs a small file system, but there is no mount")
        if done.returncode != 0:
            skip(f"needs a small file system, but: {done.stderr.strip()}")

    def leave_free(self, pages):
        """Fills the disk until so many pages are free."""
        self.filler = self.disk / "filler"
        status = os.statvfs(self.disk)
        self.filler.write_bytes(b"x" * max(0, status.f_bavail * status.f_frsize - pages * self.PAGE))

    def test_a_full_disk_ends_a_run_that_finishes_once_there_is_room(self):
        for sites in ("memory", "disk"):
            self.recipe.write_text(RECIPE.replace("every = 3", "every = 1") + f'sites = "{sites}"\n')
            expected_out = self.folder / f"whole-{sites}"
            expected_output = self.assert_succeeds(self.run_recipe(out=expected_out)).stdout
            stopped_at = set()
            for pages in range(self.PAGES):
                self.leave_free(pages)
                done = self.run_recipe()
                if done.returncode == 0:
                    break
                with self.subTest(sites=sites, pages=pages):
                    self.assert_last_line(done, 1, self.out, "No space left on device")
                    stopped_at.add(self.stopped_file(done))
                    left = [path.name for path in self.disk.rglob("*.tmp")]
                    self.assertEqual(left, [], "an unfinished file is left")
                    self.filler.unlink()
                    self.assert_finishes(expected_out, expected_output)
                shutil.rmtree(self.out)
            self.assertEqual(done.returncode, 0)
            self.assertTrue({"checkpoint", "site", "log"} <= stopped_at, stopped_at)
            self.filler.unlink()
            shutil.rmtree(self.out)

    def stopped_file(self, done):
        line = done.stderr.splitlines()[-1]
        for kind in ("checkpoint-", ".site", "log.jsonl", "recipe.toml"):
            if kind in line:
                return kind.strip("-.").split(".")[0]
        return line

    def assert_finishes(self, expected_out, expected_output):
        extra = ["--resume"] if (self.out / "recipe.toml").exists() else []
        done = self.assert_succeeds(self.run_recipe(*extra))
        self.assertEqual(done.stdout, expected_output)
        self.assertEqual(contents(self.out), contents(expected_out))

    def test_a_full_disk_keeps_the_checkpoint_before(self):
        self.assert_succeeds(self.run_recipe("--rounds", 7))
        checkpoint = self.out / "checkpoint-7.safetensors"
        content = checkpoint.read_bytes()
        self.leave_free(0)
        self.assert_last_line(self.run_recipe("--resume"), 1, self.out, "No space left on device")
        self.assertEqual(checkpoint.read_bytes(), content)

    def test_a_read_only_disk_is_named(self):
        self.assert_succeeds(self.run_recipe("--rounds", 7))
        self.mount("-o", "remount,ro", self.disk)
        before = state(self.disk)
        self.assert_one_line(self.run_recipe("--resume"), 1, self.out, "Read-only file system")
        self.assert_one_line(self.run_recipe(out=self.disk / "new"), 1, self.disk / "new", "Read-only file system")
        figure = self.program.run("toy", "--trials", 1, "--steps", 1, "--figure", self.disk / "toy")
        self.assert_one_line(figure, 1, self.disk / "toy", "Read-only file system")
        self.assertEqual(state(self.disk), before)

    def test_a_figure_that_does_not_fit_is_not_left_half_written(self):
        self.leave_free(1)
        done = self.program.run("toy", "--trials", 2, "--steps", 3, "--figure", self.disk / "toy")
        self.assert_one_line(done, 1, self.disk / "toy", "No space left")
        self.assertEqual([path.name for path in self.disk.iterdir()], ["filler"])


if __name__ == "__main__":
    CliTest.program = Program(sys.argv.pop(1))
    unittest.main()
