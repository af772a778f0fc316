#!/usr/bin/env python3
"""What plant.py calls untrue, caught and survived."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import plant  # noqa: E402


def fault(**changes):
    entry = {"folder": "round", "id": "x", "file": "fedep/round/a.cpp", "before": "a + b", "after": "a - b", "tests": "",
             "why": "a sum"}
    return plant.Fault(**{**entry, **changes})


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("fedep/round/a.cpp", "return a + b;\nreturn c;\nreturn c;\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Lists(Folder):
    def wrong(self, **changes):
        return "\n".join(plant.wrong_with([fault(**changes)], self.root))

    def test_a_text_that_stands_once_is_true(self):
        self.assertEqual(self.wrong(), "")

    def test_a_text_must_stand_exactly_once(self):
        self.assertIn("stands 0 times", self.wrong(before="a * b"))
        self.assertIn("stands 2 times", self.wrong(before="return c;"))
        self.assertIn("is missing", self.wrong(file="fedep/round/b.cpp"))

    def test_a_fault_changes_something_in_the_folder_whose_tests_are_asked(self):
        self.assertIn("nothing would change", self.wrong(after="a + b"))
        self.assertIn("is not in fedep/sim/", self.wrong(folder="sim"))

    def test_a_name_stands_once(self):
        self.assertIn("stands twice", "\n".join(plant.wrong_with([fault(), fault()], self.root)))

    def test_every_folder_has_faults_and_every_fault_its_reason(self):
        faults = plant.read_faults()
        self.assertEqual({one.folder for one in faults}, set(plant.FOLDERS))
        self.assertEqual([one.name for one in faults if not one.why], [])


class Copies(Folder):
    def test_a_copy_has_what_the_tree_has_and_touches_only_what_differs(self):
        copy = self.root / "copy"
        source = self.root / "source"
        self.write("source/a.txt", "1")
        self.write("source/b.txt", "2")
        subprocess.run(["git", "init", "-q"], cwd=source, check=True)
        plant.copy_tree(source, copy)
        (copy / "build").mkdir()
        (copy / "build" / "kept").write_text("")
        before = (copy / "a.txt").stat().st_mtime_ns
        (source / "b.txt").unlink()
        self.write("source/c/d.txt", "3")
        plant.copy_tree(source, copy)
        self.assertEqual((copy / "a.txt").stat().st_mtime_ns, before)
        self.assertEqual(sorted(path.name for path in copy.rglob("*") if path.is_file()), ["a.txt", "d.txt", "kept"])


class Pretended(plant.Workshop):
    """Whose tests look at the planted text themselves."""

    def __init__(self, root, compiles=True, noticed_by=None):
        self.tree, self.log, self.compiles, self.noticed_by, self.asked = root, root / "log", compiles, noticed_by, []

    def text(self):
        return (self.tree / "fedep/round/a.cpp").read_text()

    def builds(self, folder):
        return self.compiles

    def passes(self, folder, tests, seconds):
        self.asked.append(tests)
        return "a + b" in self.text() or self.noticed_by not in (tests, "any")


class Verdicts(Folder):
    def verdict(self, workshop, tests=""):
        before = workshop.text()
        verdict = workshop.verdict(fault(tests=tests), 60)
        self.assertEqual(workshop.text(), before)  # as it was
        return verdict

    def test_a_fault_that_a_test_notices_is_caught(self):
        self.assertEqual(self.verdict(Pretended(self.root, noticed_by="any")), "caught")

    def test_a_fault_that_no_test_notices_survives(self):
        self.assertEqual(self.verdict(Pretended(self.root)), "SURVIVED")

    def test_a_fault_that_does_not_compile_is_not_caught(self):
        self.assertEqual(self.verdict(Pretended(self.root, compiles=False)), "DID NOT COMPILE")

    def test_those_who_should_notice_are_asked_first_and_then_all(self):
        quick = Pretended(self.root, noticed_by="Sums.*")
        self.assertEqual(self.verdict(quick, tests="Sums.*"), "caught")
        self.assertEqual(quick.asked, ["Sums.*"])
        slow = Pretended(self.root, noticed_by="")
        self.assertEqual(self.verdict(slow, tests="Sums.*"), "caught")
        self.assertEqual(slow.asked, ["Sums.*", ""])

    def test_a_survivor_fails_and_is_named(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(plant.report({fault(): "caught"}), 0)
            self.assertEqual(plant.report({fault(): "caught", fault(id="y"): "SURVIVED"}), 1)
        self.assertIn("SURVIVED: round/y (fedep/round/a.cpp)", said.getvalue())
        self.assertIn("50.0 %", said.getvalue())


class Programs(Folder):
    def workshop(self, script):
        workshop = Pretended(self.root)
        workshop.scratch, workshop.environment = self.root / "scratch", {}
        self.write("build/fedep/round/fedep_round_test", "#!/bin/sh\n" + script)
        (self.root / "build/fedep/round/fedep_round_test").chmod(0o755)
        return plant.Workshop.passes(workshop, "round", "", 2)

    def test_a_program_passes_fails_or_does_not_end(self):
        self.assertTrue(self.workshop("exit 0\n"))
        self.assertFalse(self.workshop("exit 1\n"))
        self.assertFalse(self.workshop("kill -SEGV $$\n"))
        self.assertFalse(self.workshop("while true; do :; done\n"))  # an endless loop is caught


if __name__ == "__main__":
    unittest.main()
