#!/usr/bin/env python3
"""docs/images.md as a reader follows it: its files are written, its commands run, and what it promises is checked.

    images_page_test.py PROGRAM PAGE
"""

import csv
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from program import FolderTest, Program

PROGRAM = PAGE = None


def blocks(text):
    """(language, file name or None, contents) of every fenced block."""
    for match in re.finditer(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield match[1], match[2], match[3]


class ImagesPageTest(FolderTest):
    def shell(self, command):
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 3), f"{command}\n{done.stdout}\n{done.stderr}")  # 3: a few rounds, not to be trusted
        return done

    def flagged(self, name):
        rows = list(csv.DictReader((self.folder / name).read_text().splitlines()))
        self.assertEqual(len(rows), 200)
        return sum(row["out_of_distribution"] == "1" for row in rows) / len(rows), rows

    def test_works_as_written(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "fedep").symlink_to(PROGRAM.path)
        commands = []
        for language, name, text in blocks(Path(PAGE).read_text()):
            if language == "sh":
                commands += text.splitlines()
            else:
                (self.folder / name).write_text(text)
        outputs, detections = {}, {}
        for command in commands:
            outputs[command] = self.shell(command)
            if "--unlike" in command:
                [found] = json.loads((self.folder / "run/evaluation.json").read_text())["detection"]
                detections[found["unlike"]] = found
        described = outputs["fedep data describe drawings.toml --data ."].stdout
        self.assertRegex(described, r"\b5\b")
        self.assertEqual((detections["moons"]["unlike_examples"], detections["moons"]["examples"]), (200, 400))
        for unlike, by_information, by_energy in (("moons", 1.0, 1.0), ("black", 0.98, 1.0), ("bright", 0.81, 0.33)):
            found = detections[unlike]
            self.assertAlmostEqual(found["marginal"]["mutual_information"]["auroc"], by_information, delta=0.04, msg=unlike)
            self.assertAlmostEqual(found["point"]["energy"]["auroc"], by_energy, delta=0.04, msg=unlike)
        ordinary, rows = self.flagged("new.csv")
        self.assertLess(ordinary, 0.12)
        self.assertGreater(sum(row["prediction"] == "2" for row in rows), 190)
        self.assertGreater(self.flagged("moons.csv")[0], 0.85)
        [stars] = json.loads((self.folder / "without/evaluation.json").read_text())["detection"]
        self.assertEqual(stars["examples"] + stars["unlike_examples"], 400)
        self.assertGreater(stars["marginal"]["mutual_information"]["auroc"], 0.9)


if __name__ == "__main__":
    PROGRAM, PAGE = Program(sys.argv.pop(1)), sys.argv.pop(1)
    unittest.main()
