#!/usr/bin/env python3
"""`fedep data describe` and `fedep data import`, as a user calls them.

    cli_data_test.py PROGRAM
"""

import json
import os
import sys
import unittest

from program import Program
from tables import TablesTest


class Describe(TablesTest):
    def test_has_the_columns_of_table_1(self):
        self.recipe("trial", "fed_avg")
        recipe = self.recipes / "trial" / "fed_avg.toml"
        done = self.assert_succeeds(self.program.run("data", "describe", recipe, "--json"))
        described = json.loads(done.stdout)
        self.assertEqual(described["train"]["clients"], 6)
        self.assertEqual(described["model_size"], 5 * 10 + 10)
        text = self.program.run("data", "describe", recipe).stdout
        for word in ("model size", "clients (train / test)", "examples per client (train / test)", "±"):
            self.assertIn(word, text)

    def test_takes_names_and_refuses_unknown_ones(self):
        self.assert_succeeds(self.program.run("data", "describe", "synthetic"))
        self.refused(self.program.run("data", "describe", "sinthetic"), "sinthetic", "did you mean synthetic?")
        self.refused(self.program.run("data", "describe", "no.toml"), "no.toml")
        toy = self.folder / "toy.toml"
        toy.write_text('[data]\nname = "toy"\n[[phase]]\nalgorithm = "fed_avg"\nrounds = 1\n')
        for what in ("toy", toy):
            self.refused(self.program.run("data", "describe", what), "must have examples, but toy has none")
        environment = {k: v for k, v in os.environ.items() if k != "FEDEP_DATA"}
        self.refused(self.program.run("data", "describe", "femnist", env=environment), "femnist", "missing")
        self.refused(self.program.run("data"), "data")


class Import(TablesTest):
    def test_cuts_a_recipes_data_for_other_runs(self):
        self.recipe("trial", "fed_avg")
        recipe = self.recipes / "trial" / "fed_avg.toml"
        done = self.assert_succeeds(self.program.run("data", "import", recipe, "--out", "shards", cwd=self.folder))
        self.assertIn('name = "shards"', done.stdout)
        manifest = json.loads((self.folder / "shards" / "manifest.json").read_text())
        self.assertEqual(manifest["clients"], 6)
        self.assertEqual(sum(shard["train"] for shard in manifest["shards"]), manifest["train"])
        again = ["--set", "data.name=shards", "--set", f"data.path={self.folder / 'shards'}"]
        printed = [
            self.program.run("run", recipe, *more, cwd=self.folder).stdout
            for more in (["--out", "one"], ["--out", "two", *again])
        ]
        self.assertIn("accuracy", printed[0])
        self.assertEqual(printed[0], printed[1])
        self.refused(self.program.run("data", "import", recipe, "--out", "shards", cwd=self.folder), "shards", "empty")


if __name__ == "__main__":
    TablesTest.program = Program(sys.argv.pop(1))
    unittest.main()
