"""Runs that `fedep report` and `fedep run --watch` show, for the tests report_* and watch_*.

    class Page(ReportTest):
        def test_is_one_file(self):
            self.play("a")
            self.assert_succeeds(self.report("a"))

    ReportTest.program = Program(sys.argv.pop(1))
"""

import json
import re
from pathlib import Path

from program import RECIPE, FolderTest

SYNTHETIC = """
seed = 3
[data]
name = "synthetic"
clients = 8
dimension = 6
examples = 40
[client]
epochs = 2
optimizer = { name = "sgd", lr = 0.05 }
[server]
clients_per_round = 4
[[phase]]
algorithm = "fed_avg"
rounds = 4
[[phase]]
algorithm = "fed_sep"
rounds = 11
[phase.inference]
name = "laplace"
alpha = 0.5
epochs = 1
[evaluate]
samples = 3
[checkpoint]
every = 5
"""


def data_of(page):
    """The JSON that a page draws."""
    text = Path(page).read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


class ReportTest(FolderTest):
    """Has a recipe of data with labels and one of the toy, whose runs are reported."""

    program = None

    def setUp(self):
        super().setUp()
        (self.folder / "synthetic.toml").write_text(SYNTHETIC)
        (self.folder / "toy.toml").write_text(RECIPE)

    def play(self, name, recipe="synthetic.toml", *options):
        self.assert_succeeds(self.program.run("run", recipe, "--out", name, *options, cwd=self.folder))
        return self.folder / name

    def report(self, *arguments):
        return self.program.run("report", *arguments, cwd=self.folder)

    def refused(self, done, *words):
        self.assert_one_line(done, 2, *words)
