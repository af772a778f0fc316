#!/usr/bin/env python3
"""What tools/setup would install, and how tools/peers goes on where it can fetch nothing."""

import os
import pty
import re
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

    def install(self, apt_get, user=1000, answer=None):
        """`tools/setup demo` where nothing is installed and apt-get is this script; with an answer, at a terminal."""
        with tempfile.TemporaryDirectory() as folder:
            stand_ins = {"dpkg-query": "exit 1", "sudo": 'echo with sudo; exec "$@"', "apt-get": apt_get, "id": f"echo {user}"}
            for name, script in stand_ins.items():
                program = Path(folder, name)
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o755)
            env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
            if answer is None:
                return subprocess.run([TOOLS / "setup", "demo"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return self.at_terminal([TOOLS / "setup", "demo"], env, answer)

    def at_terminal(self, command, env, answer):
        """What a program says at a terminal where somebody types this."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, answer.encode())
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return subprocess.CompletedProcess(command, process.wait(timeout=60), said.decode(), "")

    def test_says_what_it_installs_and_what_for_before_it_does(self):
        said = self.install('echo "apt-get $1" >&2').stdout
        self.assertIn("to be installed from Debian", said)
        self.assertRegex(said, r"g\+\+ cmake ninja-build make ccache\n +for building")
        for package in packages(["demo"]):
            self.assertRegex(said.partition("with sudo")[0], rf"(?m)^ .*{re.escape(package)}")

    def test_at_a_terminal_asks_before_it_uses_sudo(self):
        refused = self.install("true", answer="n\n")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("install these with sudo?", refused.stdout)
        self.assertIn("nothing was installed", refused.stdout)
        self.assertNotIn("with sudo\r\n", refused.stdout)
        agreed = self.install("true", answer="y\n")
        self.assertEqual(agreed.returncode, 0, agreed.stdout)
        self.assertIn("with sudo\r\n", agreed.stdout)

    def test_as_root_or_without_a_terminal_goes_on(self):
        self.assertEqual(self.install("true").returncode, 0)
        as_root = self.install("true", user=0, answer="n\n")
        self.assertEqual(as_root.returncode, 0, as_root.stdout)
        self.assertNotIn("sudo", as_root.stdout)

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
