#!/usr/bin/env python3
"""Run directories: what a run leaves in one, and what is not written over or resumed. Damage to any file in it is
found and named, and nothing is touched.

    cli_run_directory_test.py PROGRAM
"""

import shutil
import sys
import time
import unittest

from cli import CliTest
from program import LABELLED, RECIPE, ROUNDS, Program, contents, state


class RunDirectories(CliTest):
    def assert_untouched(self, done, code, *words):
        """Refused with one line, and the directory is as `before` was taken."""
        self.assert_one_line(done, code, *words)
        self.assertEqual(state(self.out), self.before)

    def half_run(self):
        """A run that stopped after 7 of its rounds, with checkpoints of round 6 and 7."""
        self.assert_succeeds(self.run_recipe("--rounds", 7, "--set", "checkpoint.keep=2"))
        self.resume = ["--resume", "--set", "checkpoint.keep=2"]
        self.expected_out = self.folder / "whole"
        self.assert_succeeds(self.run_recipe("--set", "checkpoint.keep=2", out=self.expected_out))
        # A resumed run writes its recipe, with all its rounds, before it looks further.
        shutil.copy(self.expected_out / "recipe.toml", self.out / "recipe.toml")
        self.before = state(self.out)

    def test_a_run_leaves_what_it_says(self):
        done = self.assert_succeeds(self.run_recipe())
        self.assertRegex(done.stdout, r"^distance \S+\n$")
        self.assertIn(f"run is in {self.out}", done.stderr)
        files, lines = contents(self.out)
        self.assertEqual([n for n in files if "/" not in n], [f"checkpoint-{ROUNDS}.safetensors", "recipe.toml"])
        self.assertEqual([line["kind"] for line in lines], ["run"] + ["round"] * ROUNDS + ["end"])
        self.assertEqual([line["round"] for line in lines[1:-1]], list(range(ROUNDS)))
        self.assertEqual([line["phase"] for line in lines[1:-1]], ["fed_avg"] * 4 + ["fed_ep"] * 8)
        self.assertEqual([("distance" in line) for line in lines[1:-1]], [False, True] * 6)

    def test_answers_that_are_refused_are_told(self):
        self.assertNotIn("refused", self.assert_succeeds(self.run_recipe("--rounds", 2)).stderr)
        self.recipe.write_text(LABELLED + """
            [client]
            epochs = 5
            weight_decay = 1
            optimizer = { name = "sgd", lr = 1e20 }
            [server]
            clients_per_round = 1
            [[phase]]
            algorithm = "fed_avg"
            rounds = 3""")
        done = self.assert_finishes(self.run_recipe(out=self.folder / "diverging"))
        self.assertRegex(done.stderr, "round 1: answers of 1 of 1 clients refused: .*docs/stability.md")
        self.assertRegex(done.stderr, r"round 3/3 .*  1 of 1 refused  ")
        self.assertIn("refused in 3 of 3 rounds\n", done.stderr)
        _, lines = contents(self.folder / "diverging")
        self.assertEqual([line["outside_grid"] for line in lines[1:-1]], [1] * 3)
        self.assertEqual([line["diverged"] for line in lines[1:-1]], [1] * 3)

    def test_a_pull_that_clients_do_not_bear_is_told_before_they_diverge(self):
        for alpha, diverges in ((0.02, False), (20, True)):
            self.recipe.write_text(LABELLED + f"""
                [client]
                epochs = 50
                batch = 5
                optimizer = {{ name = "sgd", lr = 0.1 }}
                [server]
                clients_per_round = 2
                [[phase]]
                algorithm = "fed_avg"
                rounds = 1
                [[phase]]
                algorithm = "fed_sep"
                rounds = 2
                inference = {{ name = "scaled_identity", alpha = {alpha} }}""")
            told = self.assertRegex if diverges else self.assertNotRegex
            told(self.assert_succeeds(self.program.run("check", self.recipe)).stderr, r"phase\.1 .*will diverge")
            out = self.folder / f"run-{alpha}"
            done = self.assert_finishes(self.run_recipe(out=out))
            told(done.stderr, r"phase\.1 \(fed_sep\): steps of 6 clients will diverge, .*docs/stability.md")
            told(done.stderr, r"refused in 2 of 3 rounds\n")
            done = self.assert_finishes(self.run_recipe("--resume", "--set", "phase.1.rounds=3", out=out))
            told(done.stderr, r"refused in 3 of 4 rounds\n")

    def test_clients_that_diverge_slowly_are_told_by_their_loss(self):
        """NGVI whose precisions grow past what steps bear, but for some time not past what a grid takes."""
        self.recipe.write_text("""
            [data]
            name = "synthetic"
            [client]
            epochs = 5
            batch = 10
            optimizer = { name = "sgd", lr = 0.05, momentum = 0.5 }
            [[phase]]
            algorithm = "fed_avg"
            rounds = 2
            [[phase]]
            algorithm = "fed_ep"
            rounds = 30
            inference = { name = "ngvi", alpha = 0.02, scale = 100, epochs = 1 }""")
        for scale, diverges in ((1, False), (1000, True)):
            out = self.folder / f"run-{scale}"
            done = self.assert_finishes(self.run_recipe("--set", f"phase.1.inference.scale={scale}", out=out))
            told = self.assertRegex if diverges else self.assertNotRegex
            told(done.stderr, r"round \d+: clients' training loss is \S+, and was \S+ in round 1: ")

    def write_table(self, *more):
        rows = [f"{'ABC'[i % 3]},{'yes' if i % 4 else 'no'},{i * 7 % 50},{i % 11}" for i in range(90)]
        (self.folder / "wards.csv").write_text("\n".join(["ward,died,age,stay", *rows, *more]) + "\n")
        self.recipe.write_text("""
            [data]
            name = "tabular"
            path = "wards.csv"
            client_column = "ward"
            label_column = "died"
            label_positive = "yes"
            [model]
            name = "linear"
            [server]
            clients_per_round = 3
            [[phase]]
            algorithm = "fed_avg"
            rounds = 2""")
        return "--data", self.folder

    def test_what_will_not_end_as_one_thinks_is_told(self):
        data = self.write_table("A,yes,>90,3", "A,no,old,4")
        for command in ("check", "run"):
            done = self.assert_succeeds(self.program.run(command, self.recipe, *data, cwd=self.folder))
            why = '2 bad records were left out; the first: line 92: age is ">90", which is no number'
            self.assertIn(why, done.stderr)
        done = self.assert_succeeds(self.program.run("check", self.recipe, *self.write_table()))
        said = "steps a visit: .*\na run needs about .*\n3 clients, .* ready to run\n"
        self.assertRegex(done.stderr, f"^{said}$")
        done = self.assert_succeeds(self.run_recipe(*data, "--set", "data.test_fraction=0"))
        self.assertIn("no examples are held out", done.stderr)
        self.assertNotIn("nan", done.stdout + done.stderr)
        self.assertFalse((self.out / "evaluation.json").exists(), "nothing was scored, so there is no calibration to show")
        sampler = ("--set", "phase.0.inference.label_sampler=softmax_index")
        self.assert_one_line(self.program.run("check", self.recipe, *data, *sampler), 2, "label_sampler must be model")
        few = ("--set", "client.batch=1000", "--set", "client.remainder=drop")
        done = self.assert_succeeds(self.program.run("check", self.recipe, *data, *few))
        self.assertIn("phase.0 (fed_avg): no client has the 1000 examples of a batch", done.stderr)
        # FedAvg pools its epochs: 24 rows fifty times are a batch of 1000.
        done = self.assert_succeeds(self.program.run("check", self.recipe, *data, *few, "--set", "client.epochs=50"))
        self.assertNotIn("no client has", done.stderr)

    def test_two_processes_do_not_play_one_run(self):
        long = ("--set", "phase.1.rounds=1000000")
        first = self.program.start("run", self.recipe, "--out", self.out, *long)
        try:
            deadline = time.monotonic() + 60
            while not (self.out / "log.jsonl").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assert_one_line(self.run_recipe("--resume", *long), 2, "another process plays it")
        finally:
            first.kill()
            first.communicate()
        self.assert_finishes(self.run_recipe("--resume", "--set", "phase.1.rounds=3000"))

    def test_other_data_do_not_resume_a_run(self):
        data = self.write_table()
        self.assert_succeeds(self.run_recipe(*data))
        self.before = state(self.out)
        self.write_table("A,yes,30,3")
        for rounds in (2, 4):
            more = ("--resume", "--set", f"phase.0.rounds={rounds}")
            self.assert_untouched(self.run_recipe(*data, *more), 2, "data must be those that the run began with")
        self.write_table()
        self.assert_succeeds(self.run_recipe(*data, "--resume", "--set", "phase.0.rounds=4"))

    def test_a_directory_with_a_run_is_not_written_over(self):
        self.assert_succeeds(self.run_recipe())
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(), 2, self.out, "--resume", "--out")

    def test_a_file_is_not_a_directory(self):
        self.out.write_text("a file")
        self.assert_one_line(self.run_recipe(), 1, self.out, "Not a directory")
        self.assert_one_line(self.run_recipe("--resume"), 2, self.out)
        self.assertEqual(self.out.read_text(), "a file")

    def test_there_must_be_something_to_resume(self):
        self.assert_one_line(self.run_recipe("--resume"), 2, self.out, "recipe.toml")
        self.assertFalse(self.out.exists())
        self.out.mkdir()
        self.assert_one_line(self.run_recipe("--resume"), 2, self.out, "recipe.toml")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_another_recipe_does_not_resume_a_run(self):
        self.half_run()
        for change, told in (
            ("seed=8", "differs: seed = 7 there, and now seed = 8"),
            ("server.optimizer.lr=0.25", "[server.optimizer] lr = 0.5 there, and now [server.optimizer] lr = 0.25"),
            ("data.clients=10", "[data] clients = 9 there, and now [data] clients = 10"),
            ("phase.0.rounds=5", "[[phase]] rounds = 4 there, and now [[phase]] rounds = 5"),
            ("phase.1.clip=1", "[[phase]] clip = 0.0 there, and now [[phase]] clip = 1.0"),
        ):
            with self.subTest(change=change):
                self.assert_untouched(self.run_recipe(*self.resume, "--set", change), 2, self.out, told)
        self.assert_untouched(self.run_recipe(*self.resume, "--rounds", 6), 2, self.out, "at most 6 rounds", "7")

    def test_another_seed_is_named_also_where_data_depend_on_it(self):
        self.recipe.write_text(LABELLED + '[server]\nclients_per_round = 2\n[[phase]]\nalgorithm = "fed_avg"\nrounds = 2')
        self.assert_succeeds(self.run_recipe())
        self.before = state(self.out)
        told = "recipe to resume must be the run's own, but differs: seed = 1 there, and now seed = 2"
        self.assert_untouched(self.run_recipe("--resume", "--set", "seed=2"), 2, self.out, told)

    def test_a_damaged_recipe_does_not_resume(self):
        self.half_run()
        (self.out / "recipe.toml").write_text("seed = ")
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(*self.resume), 2, self.out / "recipe.toml")

    def check_damage(self, name, places):
        """Whatever byte is damaged, resuming names the file and touches nothing; with the file back, it ends right."""
        path = self.out / name
        content = path.read_bytes()
        damaged = []
        for place in places(len(content)):
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            damaged.append((f"byte {place}", bytes(flipped)))
        for length in (0, 1, 7, 8, len(content) // 2, len(content) - 1):
            damaged.append((f"cut to {length}", content[:length]))
        damaged.append(("longer", content + b"\0"))
        for what, bytes_there in damaged:
            with self.subTest(file=name, damage=what):
                path.write_bytes(bytes_there)
                self.before = state(self.out)
                self.assert_untouched(self.run_recipe(*self.resume), 2, path)
        path.unlink()
        self.before = state(self.out)
        return content

    def test_a_damaged_checkpoint_does_not_resume(self):
        self.half_run()
        name = "checkpoint-7.safetensors"
        content = self.check_damage(name, lambda size: [*range(0, 64, 5), *range(64, size, 61), size - 1])
        (self.out / name).write_bytes(content[:100])
        self.before = state(self.out)
        told = "without this file the run goes on from round 6"
        self.assert_untouched(self.run_recipe(*self.resume), 2, name, told)
        (self.out / name).write_bytes(content)
        self.assert_succeeds(self.run_recipe(*self.resume))
        self.assertEqual(contents(self.out)[0], contents(self.expected_out)[0])

    def test_a_checkpoint_of_another_model_does_not_resume(self):
        self.half_run()
        other = self.folder / "other"
        self.assert_succeeds(self.run_recipe("--rounds", 7, "--set", "data.dimension=5", out=other))
        shutil.copy(other / "checkpoint-7.safetensors", self.out)
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(*self.resume), 2, self.out / "checkpoint-7.safetensors", "model")

    def test_a_damaged_or_missing_site_does_not_resume(self):
        for sites in ("memory", "disk"):
            with self.subTest(sites=sites):
                self.out = self.folder / sites
                self.recipe.write_text(RECIPE + f'sites = "{sites}"\n')
                self.half_run()
                name = sorted(path.name for path in (self.out / "sites").glob("*-6.site"))[0]
                self.check_damage(f"sites/{name}", lambda size: range(0, size, 7))
                self.assert_untouched(self.run_recipe(*self.resume), 2, self.out / "sites" / name, "No such file")
                shutil.rmtree(self.expected_out)

    def test_a_damaged_log_does_not_resume(self):
        self.half_run()
        log = self.out / "log.jsonl"
        lines = log.read_text().splitlines(keepends=True)
        for what, text, *words in (
            ("a line that is not JSON", "".join(lines[:3] + ["{oops\n"] + lines[4:]), f"{log}:4"),
            ("a line without kind", "".join(lines[:3] + ["{}\n"] + lines[4:]), f"{log}:4"),
            ("a line of another type", "".join(lines[:3] + ["[1]\n"] + lines[4:]), f"{log}:4"),
            ("no header", "".join(lines[1:]), "header"),
            ("a missing round", "".join(lines[:3] + lines[4:]), "7 rounds"),
            ("nothing", "", "header"),
        ):
            with self.subTest(damage=what):
                log.write_text(text)
                self.before = state(self.out)
                self.assert_untouched(self.run_recipe(*self.resume), 2, log, *words)
        log.unlink()
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(*self.resume), 2, log, "No such file")

    def test_a_half_line_at_the_end_of_the_log_is_what_a_crash_leaves(self):
        self.half_run()
        with open(self.out / "log.jsonl", "a") as log:
            log.write('{"kind":"rou')
        self.assert_succeeds(self.run_recipe(*self.resume))
        self.assertEqual(contents(self.out)[0], contents(self.expected_out)[0])


if __name__ == "__main__":
    CliTest.program = Program(sys.argv.pop(1))
    unittest.main()
