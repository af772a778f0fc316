#!/usr/bin/env python3
"""`fedep report` from end to end: what the page and the pictures hold, what is refused and how.

    report_test.py PROGRAM
"""

import json
import os
import re
import sys
import unittest

from program import Program, json_lines
from reports import SYNTHETIC, ReportTest, data_of


class Page(ReportTest):
    def test_is_one_file_that_loads_nothing(self):
        self.play("a")
        done = self.report("a")
        self.assertEqual((done.returncode, done.stdout), (0, "report.html\n"), done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a", "report.html", "synthetic.toml", "toy.toml"])
        text = (self.folder / "report.html").read_text()
        self.assertEqual(set(re.findall(r"https?://[^\s\"'<>)]*", text)), {"http://www.w3.org/2000/svg"})
        self.assertNotRegex(text, r"<(img|iframe|object|embed)\b|\ssrc=|@import|url\((?!#)")
        self.assertEqual(re.findall(r"<link[^>]*>", text), ['<link rel="icon" href="data:,">'])
        self.assertIn("connect-src 'none'", text)

    def test_has_what_the_log_the_checkpoint_and_the_evaluation_say(self):
        run = self.play("a")
        self.assert_succeeds(self.report("a", "--out", "deep/page.html"))
        data = data_of(self.folder / "deep" / "page.html")
        shown = data["runs"][0]
        lines = json_lines(run / "log.jsonl")
        accuracy = [line["accuracy"] for line in lines if line["kind"] == "round"]
        self.assertEqual(len(shown["curves"]["accuracy"]), 15)
        for value, logged in zip(shown["curves"]["accuracy"], accuracy):
            self.assertAlmostEqual(value, logged, places=6)
        self.assertEqual(shown["status"], "finished")
        self.assertEqual(sum(shown["participation"]["counts"]), 4 * 15)
        self.assertEqual(len(shown["participation"]["counts"]), 8)
        self.assertEqual([layer["name"] for layer in shown["posterior"]["layers"]], ["weight", "bias"])
        for layer in shown["posterior"]["layers"]:
            self.assertEqual(sum(layer["counts"]) + layer["improper"], layer["weights"])
        # The bins give the ECE that the log has.
        for which, key in (("point", "ece"), ("marginal", "ece_marginal")):
            bins = [b for b in shown["reliability"][which] if b["weight"] > 0]
            self.assertEqual(len(shown["reliability"][which]), 15)
            ece = sum(b["weight"] * abs(b["confidence"] - b["accuracy"]) for b in bins)
            self.assertAlmostEqual(ece, lines[-2][key], places=9)

    def test_groups_runs_that_differ_in_their_seed(self):
        for seed in (1, 2):
            self.play(f"sep-seed{seed}", "synthetic.toml", "--seed", seed)
        self.play("other", "synthetic.toml", "--set", "client.epochs=1")
        self.report("sep-seed1", "sep-seed2", "other")
        data = data_of(self.folder / "report.html")
        self.assertEqual([(g["name"], g["runs"]) for g in data["groups"]], [("sep", [0, 1]), ("other", [2])])
        self.assertEqual(data["diff"]["keys"], ["seed", "client.epochs"])
        self.assertEqual(data["tables"][0]["columns"][0], "run")

    def test_treats_names_as_text(self):
        run = self.play("a").rename(self.folder / "<b>'\"&")
        self.assert_succeeds(self.report(run, "--out", "page.html"))
        text = (self.folder / "page.html").read_text()
        self.assertNotIn("<b>'", text)
        self.assertEqual(text.count("</script>"), 2)
        self.assertEqual(data_of(self.folder / "page.html")["runs"][0]["name"], "<b>'\"&")

    def test_shows_the_results_beside_the_paper(self):
        line = {"table": "table2", "row": "fed_avg", "seed": 1, "rounds": 1500, "metrics": {"accuracy_1000": 0.45},
                "seconds": 1, "device": "", "date": "", "version": ""}  # fmt: skip
        (self.folder / "results.jsonl").write_text(json.dumps(line) + "\n")
        self.assert_succeeds(self.report("--results", "results.jsonl"))
        table = data_of(self.folder / "report.html")["tables"][0]
        self.assertEqual(table["columns"], ["row", "measure", "paper", "ours", "difference", "runs"])
        self.assertIn(["FedAvg", "accuracy by 1000R, %", "44.7 ± 0.2", "45.0", "+0.3", "1 seed, 1500 rounds; 1.0 s"], table["rows"])

    def test_comes_with_a_reproduced_table(self):
        (self.folder / "recipe").mkdir()
        (self.folder / "recipe" / "table2_fed_avg.toml").write_text('table = "table2"\nrow = "fed_avg"\n' + SYNTHETIC)
        self.assert_succeeds(self.program.run("reproduce", "table2", "--report", "page.html", cwd=self.folder))
        data = data_of(self.folder / "page.html")
        self.assertEqual([run["name"] for run in data["runs"]], ["fed_avg-seed3"])
        titles = [table["title"] for table in data["tables"]]
        self.assertEqual(titles, ["table2: CIFAR-100", "table5: CIFAR-100, calibration", "table2: CIFAR-100"])
        self.assertEqual(len(data["tables"][0]["rows"]), 4)  # this page's row
        self.assertEqual(len(data["tables"][2]["rows"]), 40)  # all of results.jsonl beside all of the paper's

    def test_of_a_toy_run_has_its_distance(self):
        self.play("toy", "toy.toml")
        self.assert_succeeds(self.report("toy"))
        data = data_of(self.folder / "report.html")
        self.assertEqual(data["metrics"][0]["name"], "distance")
        self.assertIsNone(data["runs"][0]["reliability"])


class Pictures(ReportTest):
    def test_are_one_per_score_with_mean_and_band(self):
        for seed in (1, 2):
            self.play(f"sep-seed{seed}", "synthetic.toml", "--seed", seed)
        done = self.assert_succeeds(self.report("sep-seed1", "sep-seed2", "--figure", "figure/two", "--window", "5"))
        files = done.stdout.splitlines()
        self.assertIn("figure/two-accuracy.svg", files)
        self.assertIn("figure/two-nll.svg", files)
        picture = (self.folder / "figure/two-accuracy.svg").read_text()
        self.assertEqual((picture.count("<polyline"), picture.count("<polygon")), (1, 1))
        self.assertIn("mean ± 2 deviations, 2 seeds, means over 5 rounds<", picture)
        self.assertIn("burn-in ends", picture)
        self.assertFalse((self.folder / "report.html").exists())
        self.assert_succeeds(self.report("sep-seed1", "--figure", "figure/one", "--marginal"))
        picture = (self.folder / "figure/one-accuracy.svg").read_text()
        self.assertEqual((picture.count("<polyline"), picture.count("<polygon")), (1, 1))  # a line and a diamond
        self.assertIn("one seed; ◇ averaged over draws<", picture)

    def test_say_of_how_many_seeds_and_rounds_they_are(self):
        for seed in (1, 2):
            self.play(f"sep-seed{seed}", "synthetic.toml", "--seed", seed)
        self.play("other", "synthetic.toml", "--set", "client.epochs=1")
        runs = ("sep-seed1", "sep-seed2", "other")
        self.assert_succeeds(self.report(*runs, "--figure", "all", "--window", 5, "--marginal"))
        self.assertIn(
            "mean ± 2 deviations, 1 to 2 seeds, means over 5 rounds; ◇ averaged over draws, of one round<",
            (self.folder / "all-accuracy.svg").read_text(),
        )

    def test_without_scores_averaged_over_draws_say_so(self):
        self.play("plain", "synthetic.toml", "--set", "evaluate.samples=0")
        done = self.assert_succeeds(self.report("plain", "--figure", "plain", "--marginal"))
        self.assertIn("no run has scores averaged over draws", done.stderr)
        self.assertEqual(self.assert_succeeds(self.report("plain", "--figure", "plain")).stderr, "")

    def test_of_kept_results_have_a_run_of_ones_own_beside_them(self):
        row = "[data]", 'table = "table2"\nrow = "fed_sep_l"\n[data]'
        (self.folder / "row.toml").write_text(SYNTHETIC.replace(*row))
        for seed in (1, 2):
            self.assert_succeeds(
                self.program.run("reproduce", "table2", "--recipes", ".", "--seeds", seed, cwd=self.folder)
            )
        kept = ("--results", "result/results.jsonl", "--table", "table2", "--figure", "figure/kept", "--score", "accuracy")
        done = self.assert_succeeds(self.report(*kept))
        self.assertEqual(done.stdout.split(), ["figure/kept-accuracy.svg"])
        picture = (self.folder / "figure/kept-accuracy.svg").read_text()
        self.assertEqual(picture.count("<polyline"), 1)
        self.assertIn("means over 10 rounds", picture)
        self.assertIn(">fed_sep_l<", picture)
        self.play("mine", "synthetic.toml")
        self.assert_succeeds(self.report("mine", *kept))
        picture = (self.folder / "figure/kept-accuracy.svg").read_text()
        self.assertEqual(picture.count("<polyline"), 2)
        self.assertIn(">mine<", picture)
        self.refused(self.report(*kept, "--rows", "fed_sep_v"), "curves of fed_sep_v must be there")
        self.refused(self.report(*kept[:-1], "speed"), "--score must be one of", "but is speed")
        self.refused(self.report(*kept[:4]), "--table needs")


class BadInput(ReportTest):
    def test_options_of_pictures_without_pictures(self):
        self.play("a")
        self.refused(self.report("a", "--marginal"), "--marginal", "needs --figure")
        self.refused(self.report("a", "--window", 10), "--window", "needs --figure")
        self.assertFalse((self.folder / "report.html").exists())

    def test_nothing_named(self):
        self.refused(self.report(), "a run directory or --results must be named")

    def test_a_folder_that_is_no_run(self):
        (self.folder / "empty").mkdir()
        self.refused(self.report("empty"), "empty: must be a run directory, but has no recipe.toml")
        self.refused(self.report("nowhere"), "nowhere: must be a run directory, but is not there")
        self.refused(self.report("toy.toml"), "but is a file")
        self.assertFalse((self.folder / "report.html").exists())

    def test_a_run_without_rounds(self):
        run = self.play("a")
        (run / "log.jsonl").write_text((run / "log.jsonl").read_text().splitlines()[0] + "\n")
        self.refused(self.report("a"), "a: run must have played a round, but has not")
        (run / "log.jsonl").unlink()
        self.refused(self.report("a"), "has not begun")

    def test_a_truncated_log_is_shown_up_to_there(self):
        run = self.play("a")
        text = (run / "log.jsonl").read_text()
        (run / "log.jsonl").write_text(text[: len(text) // 2])
        os.utime(run / "log.jsonl", (0, 0))
        self.assert_succeeds(self.report("a"))
        shown = data_of(self.folder / "report.html")["runs"][0]
        self.assertGreater(shown["played"], 0)
        self.assertLess(shown["played"], 15)
        self.assertEqual(shown["status"], "stopped")
        self.assertEqual(shown["rounds"], 15)
        self.assertEqual(len(shown["faults"]), 1)
        self.assertIn("cut off within the line", shown["faults"][0])

    def test_a_truncated_checkpoint_is_named(self):
        run = self.play("a")
        checkpoint = sorted(run.glob("checkpoint-*.safetensors"))[-1]
        os.truncate(checkpoint, checkpoint.stat().st_size - 1)
        done = self.assert_succeeds(self.report("a"))
        self.assertRegex(done.stderr, f"not shown of a: .*{checkpoint.name}: ")
        self.assertIn(checkpoint.name, data_of(self.folder / "report.html")["runs"][0]["faults"][0])

    def test_a_run_that_goes_on_is_marked(self):
        run = self.play("a")
        lines = (run / "log.jsonl").read_text().splitlines(keepends=True)
        (run / "log.jsonl").write_text("".join(lines[:8]))
        self.assert_succeeds(self.report("a"))
        shown = data_of(self.folder / "report.html")["runs"][0]
        self.assertEqual((shown["status"], shown["played"], shown["rounds"]), ("running", 7, 15))

    def test_what_cannot_be_shown_is_named_beside_what_can(self):
        self.play("a")
        (self.folder / "empty").mkdir()
        done = self.assert_succeeds(self.report("a", "empty"))
        self.assertIn("not shown: empty: must be a run directory", done.stderr)
        data = data_of(self.folder / "report.html")
        self.assertEqual(len(data["runs"]), 1)
        self.assertIn("empty: must be a run directory", data["notices"][0])

    def test_results_that_are_none(self):
        self.refused(self.report("--results", "nowhere.jsonl"), "file with results must exist")
        (self.folder / "bad.jsonl").write_text("{}\n")
        self.refused(self.report("--results", "bad.jsonl"), "bad.jsonl:1:")
        (self.folder / "none.jsonl").write_text("")
        self.refused(self.report("--results", "none.jsonl"), "must hold a result")

    def test_a_place_where_nothing_can_be_written(self):
        self.play("a")
        self.assert_last_line(self.report("a", "--out", "toy.toml/page.html"), 1, "toy.toml/page.html")


if __name__ == "__main__":
    ReportTest.program = Program(sys.argv.pop(1))
    unittest.main()
