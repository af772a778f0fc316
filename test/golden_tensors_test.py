#!/usr/bin/env python3
"""test/golden_tensors.py finds a program equal to itself, and names what another seed changes.

    golden_tensors_test.py FEDEP
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop()
SCRIPT = Path(__file__).with_name("golden_tensors.py")


def golden(*arguments):
    return subprocess.run([sys.executable, "-B", SCRIPT, PROGRAM, *arguments], capture_output=True, text=True)


class GoldenTensors(unittest.TestCase):
    def test_a_program_equals_itself_and_another_seed_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "kept.json"
            first = golden("--only", "yes_no fed_ep")
            self.assertEqual(first.stderr, "")
            kept.write_text(first.stdout)
            runs = json.loads(first.stdout)
            self.assertEqual(len(runs), 4)
            for hashes in runs.values():
                self.assertTrue(any(name.endswith(".site") for name in hashes))
                self.assertTrue(any(name.startswith("checkpoint-") for name in hashes))
            same = golden("--only", "yes_no fed_ep", "--against", kept)
            self.assertEqual(same.returncode, 0, same.stdout)
            other = golden("--only", "yes_no fed_ep", "--against", kept, "--set", "seed=2")
            self.assertEqual(other.returncode, 1)
            self.assertIn("4 runs differ", other.stdout)


if __name__ == "__main__":
    unittest.main()
