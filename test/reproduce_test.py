#!/usr/bin/env python3
"""Tables from end to end: `fedep reproduce` on a folder of tiny recipes, results.jsonl, and the pages made of it.

    reproduce_test.py PROGRAM
"""

import json
import os
import re
import signal
import sys
import unittest

from program import Program, contents, json_lines, state
from tables import ROUNDS, TablesTest

HEADER = "| row | measure | paper | ours | difference | runs |"
FIGURE = "| row | accuracy by 500R, % | accuracy by 1000R, % | accuracy by 1500R, % | accuracy, last round, % | runs |"


class Reproduce(TablesTest):
    def setUp(self):
        super().setUp()
        self.recipe("trial", "fed_avg")
        self.recipe("trial", "fed_sep_i", "fed_sep")
        self.recipe("other", "fed_avg")

    def test_runs_every_row_and_seed_once_and_writes_a_line_for_each(self):
        done = self.succeeds("trial", "--seeds", "1,2")
        self.assertEqual(
            [(line["table"], line["row"], line["seed"], line["rounds"]) for line in self.lines()],
            [("trial", row, seed, ROUNDS) for row in ("fed_avg", "fed_sep_i") for seed in (1, 2)],
        )
        for line in self.lines():
            names = ["table", "row", "seed", "rounds", "metrics", "seconds", "device", "date", "version", "curve"]
            self.assertEqual(list(line), names)
            self.assertGreater(line["seconds"], 0)
            self.assertRegex(line["device"], r"^cpu: .*, 1 thread$")
            self.assertRegex(line["date"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertEqual(line["version"], self.program.run("--version").stdout.split()[1])
            *_, last, _ = log = json_lines(self.run_folder(f"{line['row']}-seed{line['seed']}") / "log.jsonl")
            self.assertEqual(line["metrics"], {name: last[name] for name in line["metrics"]})
            accuracy = [played["accuracy"] for played in log if played["kind"] == "round"][:10]
            self.assertAlmostEqual(line["curve"]["accuracy"][0], sum(accuracy) / len(accuracy), delta=1e-4)
            self.assertIn("accuracy", line["metrics"])
        self.assertEqual(done.stdout.splitlines()[0].split(" | ")[:2], ["| row", "accuracy"])
        self.assertIn("| fed_avg | 0.", done.stdout)
        self.assertIn(f"2 seeds, {ROUNDS} rounds", done.stdout)

    def test_skips_what_is_finished_and_plays_it_no_second_time(self):
        first = self.succeeds("trial")
        before, lines = contents(self.run_folder("fed_avg-seed1")), self.results.read_text()
        again = self.succeeds("trial")
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual(again.stderr.count("finished already"), 2)
        self.assertEqual(self.results.read_text(), lines)
        self.assertEqual(contents(self.run_folder("fed_avg-seed1")), before)

    def test_writes_the_line_that_a_kill_left_out(self):
        self.succeeds("trial", "--threads", 2)
        lines = self.lines()
        self.results.unlink()
        self.succeeds("trial")
        self.assertEqual(self.lines(), lines)

    def test_plays_nothing_for_other_scores_and_checkpoints_of_a_finished_run(self):
        self.succeeds("trial", "--rows", "fed_sep_i", "--threads", 2)
        lines, log = self.lines(), self.run_folder("fed_sep_i-seed1") / "log.jsonl"
        before = log.read_bytes()
        os.utime(log, (1580000000, 1580000000))
        recipe = self.recipes / "trial" / "fed_sep_i.toml"
        recipe.write_text(recipe.read_text().replace("samples = 3", "samples = 4"))
        self.succeeds("trial", "--rows", "fed_sep_i")
        self.assertEqual(log.read_bytes(), before)
        self.assertEqual(self.lines(), lines)
        recipe.write_text(recipe.read_text().replace("every = 5", "every = 6"))
        self.results.unlink()
        self.succeeds("trial", "--rows", "fed_sep_i")
        self.assertEqual(self.lines(), [lines[0] | {"date": "2020-01-26T00:53:20Z"}])

    def test_writes_the_evaluation_that_a_kill_left_out(self):
        first = self.succeeds("trial")
        run, results = self.run_folder("fed_sep_i-seed1"), self.results.read_text()
        before = state(run)
        (run / "evaluation.json").unlink()
        again = self.succeeds("trial")
        self.assertEqual(again.stderr.count("finished already"), 2)
        self.assertEqual(again.stderr.count("evaluation.json was missing"), 1)
        self.assertEqual((again.stdout, self.results.read_text()), (first.stdout, results))
        self.assertEqual(state(run), before)
        (run / "evaluation.json").unlink()
        self.assert_succeeds(self.program.run("run", self.recipes / "trial" / "fed_sep_i.toml", "--out", run, "--resume"))
        self.assertEqual((run / "evaluation.json").read_bytes(), before["evaluation.json"])

    def test_says_that_the_evaluation_cannot_be_written_without_the_checkpoint(self):
        first = self.succeeds("trial")
        run = self.run_folder("fed_sep_i-seed1")
        (run / "evaluation.json").unlink()
        (run / f"checkpoint-{ROUNDS}.safetensors").unlink()
        before = state(run)
        again = self.succeeds("trial")  # the log has the row
        self.assertEqual(again.stdout, first.stdout)
        told = [line for line in again.stderr.splitlines() if "evaluation.json" in line]
        self.assertEqual(len(told), 1, again.stderr)
        self.assertIn("is missing and cannot be written", told[0])
        self.assertIn(f"checkpoint-{ROUNDS}.safetensors", told[0])
        done = self.program.run("run", self.recipes / "trial" / "fed_sep_i.toml", "--out", run, "--resume")
        self.assert_one_line(done, 2, run, "is over", f"checkpoint-{ROUNDS}.safetensors")
        self.assertEqual(state(run), before)

    def test_resumes_an_unfinished_run_to_the_same_numbers(self):
        self.recipe("trial", "fed_sep_i", "fed_sep", rounds=400)
        self.succeeds("trial", "--rows", "fed_sep_i")
        expected = contents(self.run_folder("fed_sep_i-seed1"))
        whole = self.lines()[0]
        out = self.folder / "elsewhere"
        process = self.program.start("reproduce", "trial", "--rows", "fed_sep_i", "--out", out, cwd=self.folder)
        log = out / "fed_sep_i-seed1" / "log.jsonl"
        while process.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") > 20):
            pass
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
        self.assertEqual(process.returncode, 130, stderr)
        self.assertEqual(stdout, "")
        self.assertIn("the same command goes on", stderr.splitlines()[-1])
        self.assertEqual(len(self.lines()), 1)
        self.succeeds("trial", "--rows", "fed_sep_i", "--out", out)
        self.assertEqual(contents(out / "fed_sep_i-seed1"), expected)
        resumed = self.lines()[1]
        self.assertEqual(resumed["metrics"], whole["metrics"])
        self.assertEqual(resumed["rounds"], 400)

    def test_a_shortened_run_says_so_and_stays_out_of_the_results(self):
        done = self.succeeds("trial", "--rounds", 3)
        self.assertFalse(self.results.exists())
        self.assertIn("only 3 rounds: not added", done.stderr)
        self.assertIn("1 seed, 3 rounds", done.stdout)
        kept = self.folder / "trials.jsonl"
        self.succeeds("trial", "--rounds", 3, "--results", kept)
        self.assertEqual([line["rounds"] for line in self.lines(kept)], [3, 3])
        self.assertFalse(self.results.exists())
        self.succeeds("trial")  # which the short one does not hinder
        self.assertEqual([line["rounds"] for line in self.lines()], [ROUNDS, ROUNDS])

    def test_keeps_the_lines_of_all_who_run_at_the_same_time(self):
        started = [
            self.program.start("reproduce", "trial", "--seeds", seed, "--out", f"at-once-{seed}", cwd=self.folder)
            for seed in range(1, 7)
        ]
        for process in started:
            stderr = process.communicate()[1]
            self.assertEqual(process.returncode, 0, stderr)
        self.assertEqual(
            sorted((line["row"], line["seed"]) for line in self.lines()),
            [(row, seed) for row in ("fed_avg", "fed_sep_i") for seed in range(1, 7)],
        )

    def test_goes_on_behind_a_line_that_a_crash_cut_off(self):
        self.succeeds("trial", "--rows", "fed_avg")
        whole = self.results.read_text()
        self.results.write_text(whole + whole[:60])
        done = self.succeeds("trial", "--rows", "fed_sep_i")
        self.assertIn("results.jsonl:2: the line was not written to its end", done.stderr)
        self.assertEqual([line["row"] for line in self.lines()], ["fed_avg", "fed_sep_i"])
        self.results.write_text(whole.rstrip("\n"))
        self.succeeds("trial", "--rows", "fed_sep_i")
        self.assertEqual([line["row"] for line in self.lines()], ["fed_avg", "fed_sep_i"])

    def test_names_what_is_wrong(self):
        self.refused(self.reproduce("trail"), "unknown table trail", "did you mean trial?")
        self.refused(self.reproduce("trial", "--rows", "fed_avg,fed_sepi"), "fed_sepi", "did you mean fed_sep_i?")
        self.refused(self.reproduce("table4"), "fedep toy")
        self.refused(self.reproduce("figure2", "--recipes", "nowhere"), "fedep report run/table2/* --figure figure2")
        self.refused(self.reproduce(), "table")
        self.refused(self.reproduce("trial", "--device", "gpu"), "unknown device gpu", "cpu")
        self.refused(self.reproduce("trial", "--precision", "half"), "unknown precision half", "float32")
        self.refused(self.reproduce("trial", "--recipes", "nowhere"), "nowhere")
        self.refused(self.reproduce("trial", "--seeds", "1,x"), "seeds")
        self.results.parent.mkdir()
        self.results.write_text("{}\n")
        self.refused(self.reproduce("trial"), "results.jsonl:1")
        self.assertFalse((self.folder / "run").exists())

    def test_plays_nothing_if_its_end_cannot_be_good(self):
        (self.folder / "file").write_text("no folder")
        readme = self.folder / "README.md"
        readme.write_text("<!-- other -->\n<!-- end -->\n")
        unended = self.folder / "unended.md"
        unended.write_text("<!-- trial -->\n")
        faults = (
            (("--results", "nowhere/x.jsonl"), "nowhere/x.jsonl"),
            (("--results", "recipe"), "recipe: must be a file"),
            (("--report", "file/page.html"), "file/page.html"),
            (("--report", "recipe"), "recipe: must be a file"),
            (("--readme", readme), f"{readme}: must have a place <!-- trial -->"),
            (("--readme", unended), "<!-- end -->"),
        )
        for options, *words in faults:
            with self.subTest(options):
                self.refused(self.reproduce("trial", *options), *words)
        self.recipe("trial", "zzz")
        last = self.recipes / "trial" / "zzz.toml"
        sound = last.read_text()
        last.write_text(sound.replace("clients_per_round = 3", "clients_per_round = 99"))
        self.refused(self.reproduce("trial"), "row zzz: server.clients_per_round")
        self.refused(
            self.reproduce("trial", "--results", "nowhere/x.jsonl", "--report", "file/page.html"),
            *("nowhere/x.jsonl", "file/page.html", "clients_per_round"),
        )
        # Found without reading the data again, which the rows before it share.
        without_samples = ("[evaluate]", "[phase.inference]\nmixin_epochs = 9\n[evaluate]")
        last.write_text(sound.replace('"fed_avg"', '"fed_pa"').replace(*without_samples))
        self.refused(self.reproduce("trial"), "row zzz: ", "mixin_epochs")
        last.write_text(sound.replace('name = "synthetic"', 'name = "femnist"\npath = "femnist"'))
        self.refused(self.reproduce("trial", "--data", "nowhere"), "femnist", "is missing")
        self.assertFalse((self.folder / "run").exists())
        self.succeeds("trial", "--rows", "fed_avg", "--report", "new/folder/page.html")
        self.assertTrue((self.folder / "new/folder/page.html").exists())

    def test_does_not_mix_two_recipes_in_one_run(self):
        self.succeeds("trial", "--rows", "fed_avg")
        changed = (self.recipes / "trial" / "fed_avg.toml").read_text().replace("lr = 0.05", "lr = 0.5")
        (self.recipes / "trial" / "fed_avg.toml").write_text(changed)
        self.refused(self.reproduce("trial", "--rows", "fed_avg"), "fed_avg-seed1", "differs")
        (self.recipes / "copy.toml").write_text(changed)
        self.refused(self.reproduce("trial"), "row fed_avg of trial")


class PaperTables(TablesTest):
    def test_have_their_measures_and_stand_beside_the_paper(self):
        self.recipe("table2", "fed_ep_i", "fed_ep", rounds=120)
        done = self.succeeds("table2")
        metrics = self.lines()[0]["metrics"]
        self.assertEqual(list(metrics), ["accuracy_1000", "accuracy_1500", "rounds_to_45", "rounds_to_50"])
        self.assertIsNone(metrics["accuracy_1000"])  # of 120 rounds
        self.assertIn("| FedEP (I) | accuracy by 1000R, % | 48.7 ± 0.4 | – | – | 1 seed, 120 rounds; ", done.stdout)

    def test_of_figures_read_sparse_evaluations(self):
        self.recipe("figure4", "small_i", rounds=500, every=10)
        self.succeeds("figure4")
        metrics = self.lines()[0]["metrics"]
        log = self.lines(self.run_folder("small_i-seed1", "figure4") / "log.jsonl")
        curve = [line["accuracy"] for line in log if "accuracy" in line]
        self.assertEqual(len(curve), 50)
        best = max(sum(curve[i : i + 10]) / 10 for i in range(41))
        self.assertAlmostEqual(metrics["accuracy_500"], best, 12)
        self.assertIsNone(metrics["accuracy_1000"])
        self.assertEqual(metrics["accuracy_final"], curve[-1])

    def test_have_no_running_means_where_scores_became_more_frequent(self):
        self.recipe("figure4", "small_i", rounds=120, every=10)
        self.succeeds("figure4")
        self.recipe("figure4", "small_i", rounds=600, every=1)
        done = self.succeeds("figure4")
        self.assertIn("evaluate.every = 1", done.stderr)
        metrics = self.lines()[1]["metrics"]
        self.assertIsNone(metrics["accuracy_500"])
        self.assertIsInstance(metrics["accuracy_final"], float)

    def test_of_calibration_are_read_off_the_runs_of_table_2(self):
        self.recipe("table2", "fed_ep_i", "fed_ep")
        self.succeeds("table2")
        done = self.succeeds("table5")
        self.assertIn("finished already", done.stderr)
        self.assertEqual([line["table"] for line in self.lines()], ["table2", "table5"])
        metrics = self.lines()[1]["metrics"]
        self.assertEqual(list(metrics), ["accuracy", "accuracy_marginal", "ece", "ece_marginal"])
        self.assertTrue(all(isinstance(value, float) for value in metrics.values()), metrics)


    def test_of_hyperparameters_show_runs_of_table_2_as_their_rows(self):
        self.recipe("table2", "fed_ep_i", "fed_ep")
        self.recipe("table8", "fed_ep_i_alpha_5e-2", "fed_ep")
        self.recipe("table8", "fed_ep_i_alpha_6e-2", "fed_ep", rounds=ROUNDS + 1)
        self.succeeds("table8", "--report", "page.html")
        self.assertTrue(self.run_folder("fed_ep_i-seed1", "table2").exists())
        page = (self.folder / "page.html").read_text()
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
        own = data["tables"][0]
        self.assertEqual(own["title"], "table8: CIFAR-100, hyperparameters")
        self.assertEqual(
            [row[0] for row in own["rows"] if row[0]], ["FedEP (I), alpha 5e-2", "FedEP (I), alpha 6e-2"]
        )
        self.assertRegex(own["rows"][0][-1], r"1 seed, \d+ rounds; [\d.]+ s; cpu: .*, 1 thread, 20\d\d-\d\d-\d\d$")
        self.assertEqual([table["title"] for table in data["tables"][1:]], [own["title"]])  # the results that are kept


class Readme(TablesTest):
    def setUp(self):
        super().setUp()
        self.recipe("figure4", "small_i")
        self.readme = self.recipes / "README.md"

    def test_is_made_where_there_is_none(self):
        self.succeeds("figure4", "--readme", self.readme)
        text = self.readme.read_text()
        self.assertIn("<!-- figure4 -->\n\n" + FIGURE, text)
        self.assertRegex(text, rf"(?m)^\| small_i \| – \| – \| – \| \d+\.\d \| 1 seed, {ROUNDS} rounds; \d+\.\d s; cpu: .*, 1 thread, 20[-0-9]+ \|$")

    def test_keeps_what_was_written_by_hand(self):
        self.succeeds("figure4")
        self.readme.write_text(
            "# Recipes\nby hand\n<!-- figure4 -->\nold\n<!-- end -->\nmore\n<!-- table6 -->\n<!-- end -->\n"
        )
        self.succeeds("--readme", "recipe/README.md")
        text = self.readme.read_text()
        self.assertTrue(text.startswith("# Recipes\nby hand\n<!-- figure4 -->\n\n" + FIGURE))
        self.assertIn("<!-- end -->\nmore\n<!-- table6 -->\n", text)
        self.assertNotIn("old", text)
        self.assertIn("<!-- table6 -->\n\n" + HEADER, text)
        self.assertIn("| FedPA | accuracy by 300R, % | 85.9 | – | – | not run |", text)
        self.succeeds("--readme", "recipe/README.md")
        self.assertEqual(self.readme.read_text(), text)

    def test_may_be_a_folder_of_pages(self):
        self.succeeds("figure4")
        index, page = (self.results.parent / name for name in ("README.md", "figure4.md"))
        index.write_text("an index\n")
        self.refused(self.reproduce("figure4", "--readme", "result"), "must have a place <!-- figure4 -->")
        page.write_text("by hand\n<!-- figure4 -->\nold\n<!-- end -->\n")
        self.assertNotIn("no place", self.succeeds("figure4", "--readme", "result").stderr)
        self.assertTrue(page.read_text().startswith("by hand\n<!-- figure4 -->\n\n" + FIGURE))
        self.assertEqual(index.read_text(), "an index\n")
        (self.folder / "empty").mkdir()
        self.refused(self.reproduce("--readme", "empty"), "empty: folder must have pages")

    def test_says_which_results_have_no_place(self):
        self.succeeds("figure4")
        self.readme.write_text("nothing\n")
        self.assertIn("<!-- figure4 -->", self.succeeds("--readme", self.readme).stderr)
        self.assertEqual(self.readme.read_text(), "nothing\n")
        self.readme.write_text("<!-- figure4 -->\n")
        self.refused(self.reproduce("--readme", self.readme), "README.md", "<!-- end -->")


if __name__ == "__main__":
    TablesTest.program = Program(sys.argv.pop(1))
    unittest.main()
