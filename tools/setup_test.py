#!/usr/bin/env python3
"""What tools/setup would install."""

import subprocess
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


if __name__ == "__main__":
    unittest.main()
