#!/usr/bin/env python3
"""evaluate, predict and export as a person runs them: what they print, keep and refuse.

    posterior_test.py PROGRAM
"""

import csv
import json
import random
import shutil
import struct
import sys
import unittest

from program import FolderTest, Program, state

PROGRAM = None

TABLE = """
seed = 1
[data]
name = "tabular"
path = "wards.csv"
client_column = "ward"
label_column = "grade"
label = "classes"
[client]
epochs = 3
batch = 20
optimizer = { name = "sgd", lr = 0.1 }
[server]
clients_per_round = 2
prior = { mean = 0.0, precision = 1.0 }
optimizer = { name = "sgd", lr = 0.99 }  # windows of three rounds: four are not judged
[[phase]]
algorithm = "fed_avg"
rounds = 2
[[phase]]
algorithm = "fed_ep"
rounds = 4
factors = "flat"
[phase.inference]
name = "laplace"
epochs = 1
[checkpoint]
every = 2
keep = 3
"""

IMAGES = """
[data]
name = "idx"
path = "digits"
partition = "iid"
clients = 3
[model]
name = "linear"
[client]
epochs = 5
optimizer = { name = "sgd", lr = 0.1 }
[server]
clients_per_round = 3
[[phase]]
algorithm = "fed_sep"
rounds = 5
[phase.inference]
name = "scaled_identity"
"""


def idx(values, *dimensions):
    return struct.pack(f">BBBB{len(dimensions)}I", 0, 0, 8, len(dimensions), *dimensions) + bytes(values)


class PosteriorTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.place = self.folder / "run"

    def make_run(self, recipe=TABLE, *options):
        draw = random.Random(1)
        lines = ["ward,grade,x,y"]
        for i in range(240):
            grade = draw.choice(["good", "fair", "bad"])
            x = draw.gauss({"good": -2, "fair": 0, "bad": 2}[grade], 1)
            lines.append(f"{'AB'[i % 2]},{grade},{x:.3f},{draw.gauss(5, 2):.3f}")
        (self.folder / "wards.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "recipe.toml").write_text(recipe)
        where = ("--data", self.folder, "--out", self.place)
        self.assert_finishes(PROGRAM.run("run", self.folder / "recipe.toml", *where, *options))

    def do(self, command, *arguments, run=None):
        return self.assert_finishes(PROGRAM.run(command, run or self.place, *arguments))

    def refused(self, command, *arguments, run=None):
        done = PROGRAM.run(command, run or self.place, *arguments)
        self.assert_one_line(done, 2)
        return done.stderr

    def test_evaluate_prints_and_keeps_scores(self):
        self.make_run()
        done = self.do("evaluate", "--data", self.folder, "--samples", 5, "--per-client")
        self.assertIn("marginal: mean prediction of 5 draws of all weights", done.stdout)
        self.assertIn("ece_equal_mass", done.stdout)
        kept = json.loads((self.place / "evaluation.json").read_text())
        self.assertEqual(len(kept["reliability"]["point"]), 15)
        self.assertAlmostEqual(sum(bin["weight"] for bin in kept["reliability"]["marginal"]), 1)
        self.assertEqual([row["client"] for row in kept["per_client"]], ["A", "B"])
        self.assertGreater(kept["metrics"]["accuracy_marginal"], 0.55)  # of three classes
        # The same again, as JSON, and of the last layer, which is all of a linear model.
        for option in ([], ["--last-layer"]):
            again = json.loads(self.do("evaluate", "--data", self.folder, "--samples", 5, "--json", *option).stdout)
            self.assertEqual(again["metrics"], kept["metrics"])
        self.assertEqual(again["layers"], "last")

    def test_draws_are_the_recipes_unless_others_are_asked_for(self):
        self.make_run(TABLE + "[evaluate]\nsamples = 7\n")
        new = self.folder / "new.csv"
        new.write_text("x,y\n1,5\n")
        # Predictions have intervals, which take more.
        for options, draws, for_intervals in ((), "7 draws", "500 draws"), (("--samples", 3), "3 draws", "3 draws"):
            self.assertIn(draws, self.do("evaluate", "--data", self.folder, *options).stdout)
            self.assertIn(for_intervals, self.do("predict", "--data", new, *options).stderr)
        kept = json.loads((self.place / "evaluation.json").read_text())
        self.assertEqual(kept["samples"], 3)
        self.assertIn("at the mean", self.do("predict", "--data", new, "--samples", 0).stderr)

    def test_evaluate_of_a_checkpoint_touches_no_run(self):
        self.make_run()
        before = state(self.place)
        earlier = self.place / "checkpoint-2.safetensors"
        done = self.do("evaluate", "--data", self.folder, run=earlier)
        self.assertIn("the run is not over: this is round 2 of 6", done.stderr)
        self.assertNotIn("marginal", done.stdout)  # FedAvg's
        self.assertEqual(state(self.place), before)
        self.do("evaluate", "--data", self.folder, "--out", self.folder / "here.json", run=earlier)
        self.assertEqual(json.loads((self.folder / "here.json").read_text())["round"], 2)

    def test_a_run_that_was_stopped_early_can_be_used(self):
        self.make_run()
        for path in self.place.glob("checkpoint-6*"):
            path.unlink()
        log = self.place / "log.jsonl"
        log.write_bytes(log.read_bytes()[:-30])  # as a crash leaves it
        done = self.do("evaluate", "--data", self.folder)
        self.assertIn("the run is not over: this is round 4 of 6", done.stderr)

    def test_predict_says_how_sure_it_is(self):
        self.make_run()
        (self.folder / "wards.csv").unlink()  # not needed any more
        new = self.folder / "new.csv"
        new.write_text("y,x,name\n5,-2,p1\n5,2,p2\n5,1,\"p,3\"\n5,99,p4\n")
        out = self.folder / "out.csv"
        self.do("predict", "--data", new, "--out", out)
        rows = list(csv.DictReader(out.read_text().splitlines()))
        self.assertEqual([row["prediction"] for row in rows[:2]], ["good", "bad"])
        for row in rows:
            self.assertAlmostEqual(sum(float(row[f"p_{name}"]) for name in ("bad", "fair", "good")), 1, places=4)
            self.assertGreaterEqual(float(row["entropy"]), float(row["mutual_information"]))
        self.assertGreater(float(rows[2]["entropy"]), float(rows[0]["entropy"]))
        self.assertEqual([row["out_of_distribution"] for row in rows], ["0", "0", "0", "1"])
        lines = self.do("predict", "--data", new, "--format", "jsonl").stdout.splitlines()
        self.assertEqual([json.loads(line)["prediction"] for line in lines], [row["prediction"] for row in rows])

    def test_predict_reads_images(self):
        digits = self.folder / "digits"
        digits.mkdir()
        draw = random.Random(2)
        for part, count in (("train", 90), ("t10k", 60)):
            labels = [i % 3 for i in range(count)]
            pixels = [min(255, int(200 * (j == label) + draw.uniform(0, 50))) for label in labels for j in range(9)]
            (digits / f"{part}-images-idx3-ubyte").write_bytes(idx(pixels, count, 3, 3))
            (digits / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels, count))
        self.make_run(IMAGES)
        same = digits / "t10k-images-idx3-ubyte"
        done = self.do("predict", "--data", same, "--training-data", self.folder)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual([row["prediction"] for row in rows], [str(i % 3) for i in range(60)])
        # The energy of held-out images: one in twenty exceeds what the others have.
        self.assertEqual(sum(row["out_of_distribution"] == "1" for row in rows), 3)
        black = self.folder / "black"
        black.write_bytes(idx([0] * 9, 1, 3, 3))
        row = next(csv.DictReader(self.do("predict", "--data", black, "--training-data", self.folder).stdout.splitlines()))
        self.assertEqual(row["out_of_distribution"], "1")
        black.write_bytes(idx([0] * 4, 1, 2, 2))
        self.assertIn("[3, 3, 1]", self.refused("predict", "--data", black, "--training-data", self.folder))

    def test_bad_rows_are_named_and_left_out(self):
        self.make_run()
        new, good, left_out = self.folder / "new.csv", self.folder / "good.csv", self.folder / "left_out.csv"
        new.write_text("who,x,y\na,1,2\nb,1,two\nc,3\nd,2,5\n")
        good.write_text("who,x,y\na,1,2\nd,2,5\n")
        done = self.do("predict", "--data", new, "--id", "who", "--left-out", left_out)
        self.assertIn("new.csv:3: row 2 (b) is left out: y is two, which is no number\n", done.stderr)
        self.assertIn("new.csv:4: row 3 is left out: it has not the header's 3 fields", done.stderr)
        self.assertIn("\n2 of 4 rows are left out\n", done.stderr)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual([(row["row"], row["id"]) for row in rows], [("1", "a"), ("4", "d")])
        self.assertEqual([row["row"] for row in csv.DictReader(left_out.read_text().splitlines())], ["2", "3"])
        alone = list(csv.DictReader(self.do("predict", "--data", good, "--id", "who").stdout.splitlines()))
        for with_bad, without in zip(rows, alone, strict=True):
            self.assertEqual({**with_bad, "row": ""}, {**without, "row": ""})

    def test_bad_tables_are_refused_with_their_line(self):
        self.make_run()
        new = self.folder / "new.csv"
        for text, words in (
            ("x,z\n1,2\n", "column y"),
            ("x,y\n1,two\n", "new.csv:2: expected a good row, but all 1 are bad: y is two, which is no number"),
            ("x,y\n1,2\n3\n3\n", "new.csv:3: expected records of 2 fields, but 2 of 3 are bad"),
            ("x,y\n", "only a header"),
            ("", "the file is empty"),
        ):
            new.write_text(text)
            self.assertIn(words, self.refused("predict", "--data", new))
        new.unlink()
        self.assertIn("new.csv", self.refused("predict", "--data", new))
        self.assertIn("did you mean csv?", self.refused("predict", "--data", new, "--format", "cvs"))

    def test_what_is_no_run_is_refused_by_every_command(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for command in (["evaluate"], ["predict", "--data", "x.csv"], ["export", "--out", self.folder / "out"]):
            self.assertIn("not there", self.refused(*command, run=self.folder / "none"))
            self.assertIn("neither recipe.toml nor checkpoints", self.refused(*command, run=empty))
        (empty / "recipe.toml").write_text(TABLE)
        (empty / "log.jsonl").write_text("")
        self.assertIn("must have a checkpoint, but has none", self.refused("evaluate", run=empty))

    def test_other_data_and_damaged_files_are_refused(self):
        self.make_run()
        other = self.folder / "other"
        other.mkdir()
        table = (self.folder / "wards.csv").read_text().splitlines()
        (other / "wards.csv").write_text("\n".join(line + (",z" if i == 0 else ",1") for i, line in enumerate(table)))
        self.assertIn("data must be those of the run", self.refused("evaluate", "--data", other))
        checkpoint = self.place / "checkpoint-6.safetensors"
        whole = checkpoint.read_bytes()
        checkpoint.write_bytes(whole[: len(whole) // 2])
        self.assertIn("checkpoint-6.safetensors", self.refused("evaluate", "--data", self.folder))
        self.assertIn("checkpoint-6.safetensors", self.refused("export", "--out", self.folder / "out"))

    def test_export_writes_files_and_says_which(self):
        self.make_run()
        out = self.folder / "out"
        done = self.do("export", "--out", out)
        self.assertEqual(done.stdout.split(), [str(out / "mean.safetensors"), str(out / "std.safetensors")])
        again = self.folder / "again"
        self.do("export", "--out", again)
        self.assertEqual(state(out), state(again))
        shutil.rmtree(again)
        done = self.do("export", "--out", again, run=self.place / "checkpoint-2.safetensors")
        self.assertIn("no std.safetensors", done.stderr)
        self.assertFalse((again / "std.safetensors").exists())
        self.assertIn("another safetensors file", self.refused("export", "--out", out, run=out / "mean.safetensors"))
        self.assertIn("format", self.refused("export", "--out", out, "--format", "onnx"))


if __name__ == "__main__":
    PROGRAM = Program(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
