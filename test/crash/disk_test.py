#!/usr/bin/env python3
"""The model of a disk keeps what was synced, whatever else it loses, and loses all that POSIX lets it lose.

    disk_test.py
"""

import random
import tempfile
import unittest
from pathlib import Path

from disk import CUTS, Disk


def written(number, path, text):
    return [f"open\t{number}\tcreated\t{path}", f"write\t{number}\t0\t{text.encode().hex()}"]


class ADisk(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def after(self, lines, how, seed=1):
        disk = Disk(self.folder)
        for line in lines:
            disk.apply(line)
        return disk.cut(random.Random(seed), how).tree

    def all_after(self, lines):
        """Everything that some cut leaves."""
        return [self.after(lines, how, seed) for how in CUTS for seed in range(100)]

    def test_keeps_a_file_that_was_synced_in_a_folder_that_was_synced(self):
        lines = [*written(1, self.folder / "a", "one"), "sync\t1", f"open\t2\told\t{self.folder}", "sync\t2"]
        for tree in self.all_after(lines):
            self.assertEqual(tree, {"a": b"one"})

    def test_loses_the_name_of_a_file_whose_folder_was_not_synced(self):
        lines = [*written(1, self.folder / "a", "one"), "sync\t1"]
        self.assertEqual(self.after(lines, "nothing"), {})
        self.assertEqual({tuple(tree) for tree in self.all_after(lines)}, {(), ("a",)})

    def test_shows_a_new_name_with_lost_bytes_if_the_file_was_not_synced(self):
        a, b = self.folder / "a", self.folder / "b"
        b.write_bytes(b"old")
        lines = [*written(1, a, "new"), f"rename\t{a}\t{b}"]
        self.assertEqual(self.after(lines, "names"), {"b": b""})
        self.assertEqual(self.after(lines, "zeros"), {"b": b"\0\0\0"})
        self.assertEqual(self.after(lines, "nothing"), {"b": b"old"})
        self.assertEqual(self.after(lines, "everything"), {"b": b"new"})

    def test_brings_back_a_file_whose_removal_was_not_synced(self):
        (self.folder / "a").write_bytes(b"old")
        self.assertEqual(self.after([f"unlink\t{self.folder / 'a'}"], "nothing"), {"a": b"old"})
        self.assertEqual(self.after([f"unlink\t{self.folder / 'a'}"], "everything"), {})

    def test_tears_writes_and_loses_earlier_ones_alone(self):
        path = self.folder / "log"
        path.write_bytes(b"1")
        lines = [f"open\t1\told\t{path}", f"write\t1\t1\t{b'22'.hex()}", f"write\t1\t3\t{b'3'.hex()}"]
        contents = {tree["log"] for tree in self.all_after(lines)}
        self.assertLessEqual({b"1", b"122", b"1223", b"12", b"1\0\0", b"1\0\x003"}, contents)
        lines.insert(2, "sync\t1")
        self.assertTrue(all(tree["log"].startswith(b"122") for tree in self.all_after(lines)))

    def test_loses_a_folder_with_all_that_is_safe_in_it(self):
        inner = self.folder / "run"
        lines = [f"mkdir\t{inner}", *written(1, inner / "a", "one"), "sync\t1", f"open\t2\told\t{inner}", "sync\t2"]
        self.assertEqual(self.after(lines, "nothing"), {})
        lines += [f"open\t3\told\t{self.folder}", "sync\t3"]
        self.assertEqual(self.after(lines, "nothing"), {"run": {"a": b"one"}})


if __name__ == "__main__":
    unittest.main()
