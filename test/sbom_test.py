#!/usr/bin/env python3
"""What tools/sbom says the program is made of is what the loader and dpkg say. Skips (exit code 77) where there is no dpkg.

    sbom_test.py BUILD SBOM
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from program import skip

BUILD = SBOM = None


def output(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def setUpModule():
    for program in ("dpkg-query", "ninja", "ldd"):
        if not shutil.which(program):
            skip(f"{program} is not installed")


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bom = json.loads(output(SBOM, BUILD))
        cls.components = {entry["name"]: entry for entry in cls.bom["components"]}

    def test_is_cyclonedx_of_this_very_program(self):
        self.assertEqual((self.bom["bomFormat"], self.bom["specVersion"]), ("CycloneDX", "1.5"))
        program = self.bom["metadata"]["component"]
        self.assertEqual(program["name"], "fedep")
        self.assertIn(program["version"], output(Path(BUILD, "bin", "fedep"), "--version"))
        self.assertEqual(program["hashes"][0]["content"], hashlib.sha256(Path(BUILD, "bin", "fedep").read_bytes()).hexdigest())

    def test_names_the_package_of_every_library_that_is_loaded(self):
        loaded = re.findall(r"=> (/\S+)", output("ldd", Path(BUILD, "bin", "fedep")))
        self.assertGreater(len(loaded), 5)
        for library in loaded:
            real = os.path.realpath(library)
            found = subprocess.run(["dpkg-query", "-S", real, real.removeprefix("/usr")], capture_output=True, text=True).stdout
            package = found.splitlines()[0].split(":")[0]
            self.assertIn(package, self.components)
            self.assertEqual(self.components[package]["properties"][0]["value"], "shared library")

    def test_names_what_comes_as_headers_alone(self):
        for package in ("nlohmann-json3-dev", "libeigen3-dev", "libcli11-dev", "libxxhash-dev"):
            self.assertIn(package, self.components)

    def test_has_the_versions_that_are_installed_each_with_an_address(self):
        names = list(self.components)
        self.assertEqual(len(names), len(self.bom["components"]))
        self.assertEqual(names, sorted(names))
        for name, entry in self.components.items():
            versions = output("dpkg-query", "-W", "-f", "${Version}\n", name).split()
            self.assertIn(entry["version"], versions)
            self.assertTrue(entry["purl"].startswith(f"pkg:deb/debian/{name}@"), entry["purl"])
        self.assertEqual(set(self.bom["dependencies"][0]["dependsOn"]), {entry["bom-ref"] for entry in self.components.values()})


if __name__ == "__main__":
    BUILD, SBOM = sys.argv.pop(1), sys.argv.pop(1)
    result = unittest.main(exit=False).result
    sys.exit(77 if result.skipped and result.testsRun == 0 else not result.wasSuccessful())
