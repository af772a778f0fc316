#!/usr/bin/env python3
"""Installs the build into a folder of its own and lets a small project find and use the package.

    consumer_test.py BUILD PROJECT CHECK_HARDENING
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

from program import scratch_folder

BUILD = PROJECT = CHECK = None


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=500)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class ConsumerTest(unittest.TestCase):
    def test_an_installed_package_is_found_and_used(self):
        with scratch_folder() as folder:
            prefix, build = Path(folder) / "prefix", Path(folder) / "build"
            run("cmake", "--install", BUILD, "--prefix", prefix)
            run("cmake", "-S", PROJECT, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *self.cached())
            run("cmake", "--build", build)
            self.assertEqual(run(build / "consumer"), "4 clients, 610 weights\n")
            self.assertIn("fedep 0.1", run(prefix / "bin" / "fedep", "--version"))
            recipes = prefix / "share" / "fedep" / "recipe"
            self.assertTrue((recipes / "synthetic.toml").exists())
            row = run(prefix / "bin" / "fedep", "check", recipes / "table2" / "fed_ep_i.toml", "--settings")
            self.assertIn('row = "fed_ep_i"', row)
            headers = [path.name for path in prefix.rglob("*.h")]
            self.assertIn("gaussian.h", headers)
            self.assertNotIn("log_lines.h", headers)  # an internal one
            self.assertEqual([name for name in headers if "test" in name], [])
            for path in prefix.rglob("*.cmake"):
                self.assertNotIn(str(BUILD), path.read_text(), path.name)
            run(CHECK, prefix / "bin" / "fedep", "--installed", prefix)  # nor any other path of this machine

    def cached(self):
        """The compiler and flags of the build that is installed."""
        cache = Path(BUILD, "CMakeCache.txt").read_text().splitlines()
        names = ("CMAKE_CXX_COMPILER:", "CMAKE_CXX_FLAGS:", "Torch_DIR:")
        return ["-D" + line for line in cache if line.startswith(names) and not line.endswith("NOTFOUND")]


if __name__ == "__main__":
    BUILD, PROJECT, CHECK = (os.path.abspath(path) for path in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1])
