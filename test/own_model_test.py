#!/usr/bin/env python3
"""docs/own_model.md as a reader follows it: its files are written, its commands run, and what it promises is checked.

    own_model_test.py PROGRAM TUTORIAL

Skips (exit code 77) where no Python has torch.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

from program import FolderTest, Program, contents

PROGRAM = TUTORIAL = PYTHON = None
SKIPPED = 77

BATCH_NORM = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
torch.jit.script(model).save("stays.pt")
"""
WIDE = """
import torch
torch.jit.script(torch.nn.Linear(9, 1)).save("stays.pt")
"""


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


def blocks(text):
    """(language, file name or None, contents) of every fenced block."""
    for match in re.finditer(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield match[1], match[2], match[3]


class OwnModelTest(FolderTest):
    def setUp(self):
        super().setUp()
        tools = self.folder / "bin"
        tools.mkdir()
        (tools / "fedep").symlink_to(PROGRAM.path)
        (tools / "python3").symlink_to(PYTHON)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        self.commands = []
        for language, name, text in blocks(Path(TUTORIAL).read_text()):
            if language == "sh":
                self.commands += text.splitlines()
            else:
                (self.folder / name).write_text(text)

    def shell(self, command, code=0):
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )
        codes = (0, 3) if code == 0 else (code,)  # 3: a few rounds of a network, not to be trusted
        self.assertIn(done.returncode, codes, f"{command}\n{done.stdout}\n{done.stderr}")
        return done

    def test_the_tutorial_works_as_written(self):
        outputs = {command: self.shell(command).stdout for command in self.commands}
        evaluation = json.loads((self.folder / "run/evaluation.json").read_text())
        self.assertGreater(evaluation["metrics"]["accuracy"], 0.75)
        self.assertGreater(evaluation["metrics"]["auc"], 0.8)
        self.assertEqual([row["client"] for row in evaluation["per_client"]], ["north", "east", "south", "west"])
        rows = list(csv.DictReader((self.folder / "predictions.csv").read_text().splitlines()))
        self.assertEqual(len(rows), 3)
        self.assertGreater(float(rows[0]["p_yes"]), 0.8)
        self.assertLess(float(rows[1]["p_yes"]), 0.3)
        self.assertEqual([row["out_of_distribution"] for row in rows[1:]], ["0", "1"])
        # Training went on from the file: the exported parameters are others, and give the mean's predictions.
        printed = json.loads(outputs["python3 use_model.py"])
        point = self.shell("fedep predict run --data new.csv --samples 0 --format jsonl").stdout.splitlines()
        for line, p in zip(point, printed, strict=True):
            self.assertAlmostEqual(json.loads(line)["probabilities"]["yes"], p, places=5)
        self.assertNotEqual((self.folder / "exported/model.pt").read_bytes(), (self.folder / "stays.pt").read_bytes())

    def test_exported_modules_predict_at_their_temperatures(self):
        self.shell("python3 make_data.py && python3 make_model.py")
        # Long steps on few rows, for a network that is too sure.
        settings = "data.calibration_fraction=0.7 client.optimizer.lr=0.3 phase.0.average.rounds=5"
        self.shell(f"fedep run stays.toml --data . --out run --rounds 10 --set {settings}")
        self.shell("fedep export run --out exported --format torchscript")
        script = self.folder / "use_model.py"
        predict = "fedep predict run --data new.csv --samples 0 --format jsonl"
        for module, options in (("model.pt", ""), ("average.pt", " --average")):
            script.write_text(re.sub(r"\w+\.pt", module, script.read_text()))
            printed = json.loads(self.shell("python3 use_model.py").stdout)
            told, plain = (
                [json.loads(line)["probabilities"]["yes"] for line in self.shell(command).stdout.splitlines()]
                for command in (predict + options, predict + options + " --no-temperature")
            )
            for p, expected in zip(printed, told, strict=True):
                self.assertAlmostEqual(p, expected, places=5)
            self.assertGreater(max(abs(a - b) for a, b in zip(told, plain, strict=True)), 1e-3, module)
        # A run without either, exported to the same folder, leaves none of another run's there.
        self.shell("fedep run stays.toml --data . --out plain --rounds 1")
        self.shell("fedep export plain --out exported --format torchscript")
        self.assertFalse((self.folder / "exported/average.pt").exists())
        script.write_text(re.sub(r"\w+\.pt", "model.pt", script.read_text()))
        printed = json.loads(self.shell("python3 use_model.py").stdout)
        told = self.shell("fedep predict plain --data new.csv --samples 0 --format jsonl").stdout.splitlines()
        for line, p in zip(told, printed, strict=True):
            self.assertAlmostEqual(json.loads(line)["probabilities"]["yes"], p, places=5)

    def test_the_recipe_forgets_the_precision_that_its_posterior_began_with(self):
        settings = tomllib.loads(self.shell("fedep check stays.toml --settings").stdout)
        posterior = settings["phase"][1]
        self.assertEqual(settings["server"]["clients_per_round"], 4)  # all of them, so that each round is a visit
        self.assertLess((1 - posterior["damping"]) ** posterior["rounds"], 1e-4)

    def test_dropout_does_not_depend_on_threads(self):
        self.shell("python3 make_data.py && python3 make_model.py")
        for threads in (1, 3):
            self.shell(f"fedep run stays.toml --data . --out threads-{threads} --threads {threads} --rounds 3")
        self.assertEqual(contents(self.folder / "threads-1")[0], contents(self.folder / "threads-3")[0])

    def test_modules_that_cannot_be_trained_are_refused(self):
        self.shell("python3 make_data.py")
        check = "fedep check stays.toml --data ."
        self.assertIn("stays.pt", self.shell(check, 2).stderr)  # not there yet
        (self.folder / "stays.pt").write_bytes(b"no module")
        self.assertIn("must be a TorchScript module", self.shell(check, 2).stderr)
        for script, words in ((BATCH_NORM, "batch norm"), (WIDE, "forward failed")):
            (self.folder / "bad.py").write_text(script)
            self.shell("python3 bad.py")
            error = self.shell(check, 2).stderr
            self.assertIn(words, error)
            self.assertEqual(error.count("\n"), 1, error)

    def test_a_checkpoint_of_another_module_is_refused(self):
        self.shell("python3 make_data.py && python3 make_model.py")
        self.shell("fedep run stays.toml --data . --out run --rounds 1")
        script = self.folder / "make_model.py"
        script.write_text(script.read_text().replace("16", "8"))
        self.shell("python3 make_model.py")
        for command in ("evaluate run --data .", "predict run --data new.csv"):
            self.assertIn("it is of another model", self.shell(f"fedep {command}", 2).stderr)
        error = self.shell("fedep export run --out exported --format torchscript", 2).stderr
        self.assertIn("must have the parameters of the checkpoint", error)


if __name__ == "__main__":
    PROGRAM, TUTORIAL = Program(sys.argv[1]), sys.argv[2]
    PYTHON = python_with_torch()
    if PYTHON is None:
        print("skipped: no Python has torch; on Debian: apt-get install python3-torch")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
