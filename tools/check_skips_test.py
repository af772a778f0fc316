#!/usr/bin/env python3
"""check_skips.py on reports as ctest writes them: what no package brings may be lacking, all else may not."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.sax.saxutils import escape

CHECK = Path(__file__).resolve().parent / "check_skips.py"

WITHOUT_GPU = "device_test.cpp:17: Skipped\nno usable GPU: the driver shows none\n\n[  SKIPPED ] Device.Copies (0 ms)\n"
WITHOUT_SKLEARN = ".\nskipped: no Python has numpy, sklearn; tools/peers fetches them\ns\nOK (skipped=1)\n"
WITHOUT_BROWSER = "\nskipped: chromium is not installed\n\nOK (skipped=1)\n"


def ran(name, output):
    return f'<testcase name="{name}" status="run"><system-out>{escape(output)}</system-out></testcase>'


def skipped(name, output):
    return (
        f'<testcase name="{name}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
        f"<system-out>{escape(output)}</system-out></testcase>"
    )


class CheckSkips(unittest.TestCase):
    def check(self, *cases, pypi_answered=True):
        """Exit code and output for a report of these tests."""
        with tempfile.TemporaryDirectory() as folder:
            report, peers = Path(folder, "junit.xml"), Path(folder, "peers")
            report.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            if pypi_answered:
                peers.touch()
            done = subprocess.run([sys.executable, "-B", CHECK, report, "--peers", peers], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_a_report_without_skips_passes_and_says_nothing(self):
        self.assertEqual(self.check(ran("peers", "Ran 5 tests\nOK\n")), (0, ""))

    def test_a_gpu_may_be_lacking(self):
        self.assertEqual(self.check(skipped("cuda.Device.Copies", WITHOUT_GPU)), (0, ""))

    def test_packages_of_pypi_may_be_lacking_only_where_it_did_not_answer(self):
        for case in (skipped("peers", WITHOUT_SKLEARN), ran("peers", WITHOUT_SKLEARN)):  # all of it, or a part
            self.assertEqual(self.check(case, pypi_answered=False), (0, ""))
            code, output = self.check(case)
            self.assertEqual(code, 1)
            self.assertIn("peers: ", output)
            self.assertIn("sklearn", output)

    def test_packages_of_debian_may_not_be_lacking(self):
        for pypi_answered in (True, False):
            code, output = self.check(skipped("browser", WITHOUT_BROWSER), pypi_answered=pypi_answered)
            self.assertEqual(code, 1)
            self.assertIn("browser: ", output)
            self.assertIn("chromium is not installed", output)

    def test_one_reason_does_not_excuse_another(self):
        code, output = self.check(skipped("both", WITHOUT_GPU + WITHOUT_BROWSER))
        self.assertEqual((code, output.count("\n")), (1, 1))
        self.assertIn("chromium", output)

    def test_a_skip_without_a_reason_is_a_finding(self):
        for case in (skipped("silent", ""), ran("silent", "OK (skipped=1)\n")):
            self.assertEqual(self.check(case), (1, "silent: skipped, and does not say why\n"))

    def test_every_report_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, case in (("a.xml", ran("fine", "OK")), ("b.xml", skipped("browser", WITHOUT_BROWSER))):
                Path(folder, name).write_text(f"<testsuite>{case}</testsuite>")
            done = subprocess.run([sys.executable, "-B", CHECK, "a.xml", "b.xml"], cwd=folder, capture_output=True)
            self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
