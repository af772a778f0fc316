#!/usr/bin/env python3
"""What is built is hardened as cmake/hardening.cmake says, and loads no library that lies where one happens to be.

    hardening_test.py BUILD CHECK_HARDENING
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

from program import scratch_folder

BUILD = CHECK = None


def needed(program):
    said = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"NEEDED.*\[(.*)\]", said)


class Hardening(unittest.TestCase):
    def programs(self):
        """The programs that are built: the one for users, and what measures and tests it."""
        found = [path for pattern in ("bin/*", "**/fedep_*_test") for path in Path(BUILD).glob(pattern)]
        return [path for path in found if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]

    def test_every_program_has_all_of_it(self):
        programs = self.programs()
        self.assertIn("fedep", [path.name for path in programs])
        own = [path for path in programs if path.name == "fedep"]
        done = subprocess.run([CHECK, *own], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Small ones may have nothing to guard, but none looks for libraries in an odd place.
        done = subprocess.run([CHECK, *programs], capture_output=True, text=True)
        faults = [line for line in done.stderr.splitlines() if "stack protector" not in line and "checked copies" not in line]
        self.assertEqual(faults, [])

    def test_a_library_that_lies_in_the_current_folder_is_not_loaded(self):
        program = Path(BUILD, "bin", "fedep")
        with scratch_folder() as folder:
            for name in needed(program):
                Path(folder, name).write_text("not a library")
            done = subprocess.run([program, "--version"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_program_without_it_is_found_out(self):
        with scratch_folder() as folder:
            source, program = Path(folder, "plain.c"), Path(folder, "plain")
            source.write_text("int main(void) { return 0; }\n")
            flags = ["-no-pie", "-fno-stack-protector", "-Wl,-z,lazy,-z,norelro,-z,execstack", "-Wl,-rpath,/usr/lib:", "-Wl,--enable-new-dtags"]
            subprocess.run(["gcc", *flags, source, "-o", program], check=True, capture_output=True)
            done = subprocess.run([CHECK, program], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            for fault in ("position-independent", "RELRO", "BIND_NOW", "executable stack", "stack protector", "FORTIFY", 'entry ""'):
                self.assertIn(fault, done.stderr)


if __name__ == "__main__":
    BUILD, CHECK = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    unittest.main()
