#!/usr/bin/env python3
"""What tools/setup would install, and how tools/peers goes on where it can fetch nothing."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent


def packages(group):
    return subprocess.run([TOOLS / "setup", "list", *group], capture_output=True, text=True, check=True).stdout.split()


class Setup(unittest.TestCase):
    def test_what_the_demo_needs_tests_need_too(self):
        demo, test = packages(["demo"]), packages(["test"])
        self.assertLess(set(demo), set(test))
        self.assertEqual(len(set(test)), len(test))

    def test_without_a_word_it_is_all_that_a_developer_needs(self):
        self.assertEqual(packages([]), packages(["test"]))

    def test_the_demo_needs_nothing_that_only_tests_do(self):
        for word in ("chromium", "selenium", "torch", "clang", "gtest", "gmock", "benchmark", "python3", "jxl"):
            self.assertFalse([name for name in packages(["demo"]) if word in name], word)
            self.assertTrue([name for name in packages(["test"]) if word in name], word)

    def test_another_word_is_refused(self):
        done = subprocess.run([TOOLS / "setup", "list", "demos"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("must be demo or test, but is demos", done.stderr)

    def install(self, apt_get):
        """`tools/setup demo` where nothing is installed and apt-get is this script."""
        with tempfile.TemporaryDirectory() as folder:
            for name, script in {"dpkg-query": "exit 1", "sudo": 'exec "$@"', "apt-get": apt_get}.items():
                program = Path(folder, name)
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o755)
            path = f"{folder}:{os.environ['PATH']}"
            return subprocess.run([TOOLS / "setup", "demo"], env={**os.environ, "PATH": path}, capture_output=True, text=True)

    def test_is_done_when_apt_get_is_in_whatever_words(self):
        self.assertEqual(self.install("echo 'Es wurden 117 MB geholt'").returncode, 0)
        self.assertEqual(self.install("true").returncode, 0)

    def test_fails_when_apt_get_does(self):
        done = self.install('case "$*" in *install*) exit 100;; esac')
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get could not install: g++", done.stderr)


class Peers(unittest.TestCase):
    def test_goes_on_with_one_line_where_nothing_can_be_fetched(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = Path(folder, "tools")
            tools.mkdir()
            shutil.copy(TOOLS / "peers", tools)
            nowhere = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_FIND_LINKS": "", "PIP_NO_INDEX": "0"}
            done = subprocess.run([tools / "peers"], env=nowhere, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("going on without", done.stderr)
            self.assertFalse(Path(folder, "build", "peers").exists())


if __name__ == "__main__":
    unittest.main()
