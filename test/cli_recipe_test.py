#!/usr/bin/env python3
"""A recipe with a mistake is refused by `fedep check` and `fedep run` alike, before anything is written; `fedep check`
prints the others with every setting.

    cli_recipe_test.py PROGRAM
"""

import sys
import unittest
from pathlib import Path

from cli import CliTest
from program import RECIPE, Program, scratch_folder


class Recipes(CliTest):
    def assert_refused(self, *words):
        """By check and by run alike, before anything is written."""
        self.assert_one_line(self.program.run("check", self.recipe), 2, *words)
        self.assert_one_line(self.run_recipe(), 2, *words)
        self.assertFalse(self.out.exists())

    def assert_change_refused(self, old, new, *words):
        with self.subTest(change=new):
            self.assertIn(old, RECIPE)
            self.recipe.write_text(RECIPE.replace(old, new))
            self.assert_refused(*words)

    def test_a_missing_file_is_named(self):
        self.recipe.unlink()
        self.assert_refused(self.recipe, "No such file")

    def test_a_directory_is_not_a_recipe(self):
        self.recipe.unlink()
        self.recipe.mkdir()
        self.assert_refused(self.recipe, "directory")

    def test_a_syntax_error_has_its_line(self):
        self.recipe.write_text("seed = 1\n[data\n")
        self.assert_refused(f"{self.recipe}:2:")
        self.recipe.write_bytes(b"\xff\xfe\x00")
        self.assert_refused(f"{self.recipe}:1:")
        self.recipe.write_text("")
        self.assert_refused(self.recipe, "missing")

    def test_a_misspelt_key_gets_a_suggestion(self):
        self.assert_change_refused("clients_per_round", "client_per_round", "did you mean server.clients_per_round?")
        self.assert_change_refused("rounds = 8", "round = 8", "phase.1.round", "did you mean phase.1.rounds?")
        self.assert_change_refused("[server]", "[sever]", "sever", "did you mean server?")
        self.assert_change_refused("lr = 0.5", "learning = 0.5", "server.optimizer.learning", f"{self.recipe}:11")

    def test_an_unknown_name_gets_a_suggestion(self):
        self.assert_change_refused('"fed_ep"', '"fed_eq"', "fed_eq", "did you mean fed_ep?")
        self.assert_change_refused('"sgd"', '"sdg"', "sdg", "did you mean sgd?")
        self.assert_change_refused('"exact"', '"exakt"', "exakt", "did you mean exact?")
        self.assert_change_refused('"toy"', '"tay"', "tay", "did you mean toy?")
        self.assert_change_refused("[server]", '[client]\noptimizer = { name = "adan" }\n[server]', "adan", "adam")
        self.assert_change_refused("every = 3", 'every = 3\nsites = "disc"', "disc", "did you mean disk?")

    def test_a_value_out_of_range_is_named(self):
        self.assert_change_refused("precision = 0.25", "precision = -0.25", "server.prior.precision", "-0.25")
        self.assert_change_refused("lr = 0.5", "lr = -0.5", "server.optimizer.lr", "positive", "-0.5")
        self.assert_change_refused("lr = 0.5", "lr = nan", "server.optimizer.lr", "finite", "nan")
        self.assert_change_refused("lr = 0.5", 'lr = "half"', "server.optimizer.lr", "a number", "half")
        self.assert_change_refused("momentum = 0.5", "momentum = 1", "server.optimizer.momentum")
        self.assert_change_refused("seed = 7", "seed = -7", "seed", "-7")
        self.assert_change_refused("rounds = 4", "rounds = 0", "phase.0.rounds", "at least 1")
        self.assert_change_refused("rounds = 4", "rounds = 1.5", "phase.0.rounds", "an integer", "1.5")
        self.assert_change_refused("clients_per_round = 4", "clients_per_round = 0", "server.clients_per_round")
        self.assert_change_refused("clients_per_round = 4", "clients_per_round = 10", "clients_per_round", "9", "10")
        self.assert_change_refused("every = 3", "every = -1", "checkpoint.every", "-1")
        self.assert_change_refused('name = "exact"', "", "phase.1.inference.name")
        self.assert_change_refused('[phase.inference]\nname = "exact"', "", "fed_ep", "inference")

    def test_a_partition_that_the_data_do_not_read_is_refused(self):
        self.assert_change_refused("clients = 9", 'clients = 9\npartition = "foo"', "unknown data.partition foo", "iid")
        self.assert_change_refused("clients = 9", 'clients = 9\npartition = "natura"', "did you mean natural?")
        self.assert_change_refused("clients = 9", 'clients = 9\npartition = "iid"', "toy must be natural, but is iid")
        self.assert_change_refused('"toy"', '"synthetic"\npartition = "given"', "synthetic must be natural, but is given")
        self.assert_change_refused('"toy"', '"eicu"\npartition = "dirichlett"', "did you mean dirichlet?")

    def test_fed_pa_without_samples_is_refused(self):
        self.recipe.write_text('[data]\nname = "synthetic"\n[[phase]]\nalgorithm = "fed_pa"\nrounds = 3\n')
        self.assert_refused("client.epochs", "greater than mixin_epochs (1)", "but is 1")
        self.assert_succeeds(self.program.run("check", self.recipe, "--set", "client.epochs=2"))
        self.assert_succeeds(self.program.run("check", self.recipe, "--set", "phase.0.inference.mixin_epochs=0"))
        self.recipe.write_text(RECIPE.replace('"fed_avg"', '"fed_pa"'))  # toy: exact samples
        self.assert_succeeds(self.program.run("check", self.recipe))

    def test_an_override_is_named_where_it_is_wrong(self):
        for override, *words in (
            ("seed", "section.key=value"),
            ("=3", "section.key=value"),
            ("seed=", "expected a value"),
            ("server.optimizer.lr=-1", "must be positive"),
            ("server.clients_per_rond=3", "did you mean server.clients_per_round?"),
            ("phase.2.rounds=3", "phases are 0 to 1"),
            ("seed.x=3", "not a table"),
            ("phase.1.algorithm=fed_epp", "did you mean fed_ep?"),
        ):
            with self.subTest(override=override):
                self.assert_one_line(self.run_recipe("--set", override), 2, f"--set {override}", *words)
                self.assertFalse(self.out.exists())

    def test_check_prints_every_setting_as_a_recipe_that_check_accepts(self):
        done = self.assert_succeeds(self.program.run("check", self.recipe, "--seed", 11, "--set", "checkpoint.keep=2"))
        for line in ("seed = 11", "clients_per_round = 4", "keep = 2", 'sites = "memory"', "grid_bits = 32"):
            self.assertIn(line, done.stdout.splitlines())
        self.assertIn("9 clients", done.stderr)
        printed = self.folder / "printed.toml"
        printed.write_text(done.stdout)
        self.assertEqual(self.assert_succeeds(self.program.run("check", printed)).stdout, done.stdout)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["printed.toml", "recipe.toml"])

    def test_lists_are_strings_or_arrays(self):
        for override, line in (
            ("data.features=age, sex", 'features = "age, sex"'),
            ('data.features=["age", "sex"]', 'features = "age, sex"'),
            ('data.features=["age", "weight, kg"]', 'features = ["age", "weight, kg"]'),
        ):
            with self.subTest(override=override):
                done = self.assert_succeeds(self.program.run("check", self.recipe, "--set", override))
                self.assertIn(line, done.stdout.splitlines())
                printed = self.folder / "printed.toml"
                printed.write_text(done.stdout)
                self.assertEqual(self.assert_succeeds(self.program.run("check", printed)).stdout, done.stdout)
        self.assert_change_refused("clients = 9", "clients = 9\nmissing = [-1]", f"{self.recipe}:", "data.missing.0 must be a string")

    def test_check_prints_what_a_run_writes_down(self):
        printed = self.assert_succeeds(self.program.run("check", self.recipe)).stdout
        self.assert_succeeds(self.run_recipe())
        self.assertEqual((self.out / "recipe.toml").read_text(), printed)

    def test_check_settings_prints_them_without_data(self):
        printed = self.assert_succeeds(self.program.run("check", self.recipe)).stdout
        done = self.assert_succeeds(self.program.run("check", self.recipe, "--settings"))
        self.assertEqual((done.stdout, done.stderr), (printed, ""))
        nowhere = ("--settings", "--set", "data.name=tabular", "data.path=nowhere.csv")
        self.assertIn('path = "nowhere.csv"', self.assert_succeeds(self.program.run("check", self.recipe, *nowhere)).stdout)

    def test_a_run_is_named_after_its_recipe_and_the_folders_below_recipe(self):
        for name, run in (("first.toml", "run/first"), ("mine/first.toml", "run/first"),
                          ("recipe/second.toml", "run/second"), ("recipe/table2/fed_ep_i.toml", "run/table2/fed_ep_i")):
            with self.subTest(recipe=name):
                with scratch_folder() as scratch:
                    (Path(scratch) / name).parent.mkdir(parents=True, exist_ok=True)
                    (Path(scratch) / name).write_text(RECIPE)
                    self.assert_succeeds(self.program.run("run", name, "--rounds", 1, cwd=scratch))
                    self.assertTrue((Path(scratch) / run / "recipe.toml").exists())


class Extends(CliTest):
    def setUp(self):
        super().setUp()
        self.base = self.folder / "base.toml"
        self.base.write_text(RECIPE)
        self.recipe.write_text('extends = "base.toml"\n[set]\nphase.1.rounds = 3\n')

    def test_a_run_keeps_its_recipe_whole_and_goes_on_without_its_base(self):
        whole = self.assert_succeeds(self.program.run("check", self.base, "--set", "phase.1.rounds=3")).stdout
        self.assert_succeeds(self.run_recipe())
        self.assertEqual((self.out / "recipe.toml").read_text(), whole)
        self.base.unlink()
        self.assert_one_line(self.program.run("check", self.recipe), 2, f"{self.recipe}:1: extends {self.base}", "No such file")
        own = self.folder / "own.toml"
        own.write_text(whole)
        self.recipe = own
        self.assert_succeeds(self.run_recipe("--resume", "--set", "phase.1.rounds=5"))

    def test_a_base_that_changed_is_another_recipe(self):
        self.assert_succeeds(self.run_recipe("--rounds", 5))
        self.base.write_text(RECIPE.replace("clients_per_round = 4", "clients_per_round = 5"))
        self.assert_last_line(self.run_recipe("--resume"), 2, "differs", "clients_per_round")

    def test_mistakes_are_named_with_their_file(self):
        self.base.write_text(RECIPE.replace("clients_per_round = 4", "clients_per_rond = 4"))
        mistake = (f"{self.base}:8: server.clients_per_rond", "did you mean server.clients_per_round?")
        self.assert_one_line(self.program.run("check", self.recipe), 2, *mistake)
        self.base.write_text(f'extends = "{self.recipe.name}"\n')
        self.assert_one_line(self.run_recipe(), 2, "leads back to itself", self.recipe, self.base)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    CliTest.program = Program(sys.argv.pop(1))
    unittest.main()
