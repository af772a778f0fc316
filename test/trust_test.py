#!/usr/bin/env python3
"""Whether a run may be trusted: exit code 3, what is said, and runs that end once they have converged.

    trust_test.py PROGRAM
"""

import json
import random
import signal
import sys
import time
import unittest

from program import FolderTest, Program, contents, json_lines, log_lines

PROGRAM = None
# Exact inference: with all clients in a round, what is missing from q shrinks by 1 - damping.
EXACT = """
[data]
name = "toy"
clients = 6
dimension = 4
[server]
clients_per_round = 6
damping = 0.5
prior = { mean = 0, precision = 1 }
[[phase]]
algorithm = "fed_ep"
rounds = 40
factors = "flat"
[phase.inference]
name = "exact"
"""
TABLE = """
[data]
name = "tabular"
path = "stays.csv"
client_column = "hospital"
label_column = "died"
test_fraction = 0
[server]
clients_per_round = 3
prior = { mean = 0, precision = 1 }
[[phase]]
algorithm = "fed_ep"
rounds = 30
factors = "flat"
"""
SLOW = ("--set", "server.damping=0.05")  # windows of 20 rounds, each of which leaves 36 % of the way
DISTRUST = "the run is not to be trusted: "


class TrustTest(FolderTest):
    def recipe(self, text=EXACT, name="recipe.toml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def play(self, *extra, text=EXACT, out="run"):
        return PROGRAM.run("run", self.recipe(text), "--out", self.folder / out, "--data", self.folder, *extra)

    def assert_distrusted(self, done, *words):
        self.assertEqual(done.returncode, 3, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith(DISTRUST), last)
        for word in words:
            self.assertIn(word, last)


class Runs(TrustTest):
    def test_that_converged_end_with_0_and_no_word(self):
        done = self.assert_succeeds(self.play())
        self.assertNotIn("trust", done.stderr)
        self.assertNotIn("judged", done.stderr)

    def test_say_how_far_q_moved_in_log_and_progress(self):
        done = self.assert_succeeds(self.play())
        self.assertRegex(done.stderr, r"round 40/40 .* moved \S+ sd")
        rounds = json_lines(self.folder / "run" / "log.jsonl")[1:-1]
        self.assertEqual([line["round"] for line in rounds if "window" in line], list(range(0, 40, 2)))
        moved = [line["mean_moved"] for line in rounds if "mean_moved" in line]
        self.assertEqual(len(moved), 20)
        self.assertLess(moved[-1], 1e-5)
        self.assertGreater(moved[0], 0.5)

    def test_that_have_not_converged_end_with_3_and_the_key_to_change(self):
        self.assert_distrusted(self.play(*SLOW), "it has not converged: over the last window of 20 rounds q", "more rounds (phase.0.rounds)")

    def test_with_too_large_a_rate_diverged(self):
        self.assert_distrusted(self.play("--set", "server.optimizer.lr=5", "--rounds", 2), "it diverged", "not positive", "server.optimizer.lr")

    def test_that_are_short_are_not_judged(self):
        done = self.assert_succeeds(self.play("--rounds", 3))
        self.assertIn("the run was not judged: it has 3 rounds", done.stderr)
        self.assertIn("two windows of 2", done.stderr)

    def test_of_point_estimates_are_judged_for_divergence_alone(self):
        fed_avg = EXACT.replace("fed_ep", "fed_avg").replace('factors = "flat"\n', "")
        done = self.assert_succeeds(self.play("--rounds", 1, text=fed_avg))
        self.assertNotIn("judged", done.stderr)

    def test_of_a_table_are_exempt(self):
        self.assert_succeeds(self.play(*SLOW, text='table = "table9"\nrow = "slow"\n' + EXACT))

    def test_that_are_over_say_it_again(self):
        self.play(*SLOW)
        self.assert_distrusted(self.play(*SLOW, "--resume"), "it has not converged")

    def test_that_are_interrupted_end_with_130_whatever_they_are(self):
        slow = ("--set", "server.damping=0.00001", "--set", "phase.rounds=1000000", "--set", "evaluate.every=0")
        out = self.folder / "run"
        process = PROGRAM.start("run", self.recipe(), "--out", out, *slow)
        while not (out / "log.jsonl").exists() or len((out / "log.jsonl").read_bytes()) < 10000:
            time.sleep(0.02)
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        stderr = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, stderr)
        self.assertNotIn("trust", stderr)

    def test_that_are_refused_end_with_2_whatever_they_are(self):
        self.play(*SLOW)
        self.assertEqual(self.play(*SLOW).returncode, 2)

    def test_are_marked_in_red_on_the_page(self):
        self.play(*SLOW)
        self.play(out="good")
        page = self.folder / "report.html"
        self.assert_succeeds(PROGRAM.run("report", self.folder / "run", self.folder / "good", "--out", page))
        text = page.read_text()
        data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
        bad, good = data["runs"]
        self.assertEqual((bad["verdict"]["trust"], good["verdict"]["trust"]), ("no", "yes"))
        self.assertIn("it has not converged", bad["verdict"]["text"])
        self.assertIn("moved", bad["curves"])
        self.assertIn("moved", [metric["name"] for metric in data["metrics"]])
        self.assertIn("notice distrust", text)


def without_gaps(lines):
    """A log's lines, but for how far q is from its factors: that is looked at where a run ends, wherever it does."""
    return [{key: value for key, value in line.items() if not key.startswith("factor_gap")} for line in lines]


class StopConverged(TrustTest):
    STOP = ("--set", "stop.converged=0.01", "--set", "checkpoint.every=3")

    def test_ends_a_run_and_all_see_that_it_is_over(self):
        done = self.assert_succeeds(self.play(*self.STOP))
        lines = log_lines(self.folder / "run")
        rounds = lines[-1]["rounds"]
        self.assertLess(rounds, 40)
        self.assertEqual(lines[-2]["round"], rounds - 1)
        self.assertIn("distance", lines[-2])
        self.assertTrue((self.folder / "run" / f"checkpoint-{rounds}.safetensors").exists())
        before = contents(self.folder / "run")
        again = self.assert_succeeds(self.play(*self.STOP, "--resume"))
        self.assertEqual(contents(self.folder / "run"), before)
        self.assertEqual(again.stdout, done.stdout)

    def test_ends_in_the_same_round_on_threads_and_after_a_stop(self):
        for half in ((), ("--set", "server.clients_per_round=3")):
            name = f"half-{len(half)}"
            settings = (*self.STOP, *half)
            self.assert_succeeds(self.play(*settings, out=name))
            files, lines = contents(self.folder / name)
            self.assertLess(lines[-1]["rounds"], 40)
            self.assert_succeeds(self.play(*settings, "--threads", 3, out=name + "-threads"))
            self.assertEqual(contents(self.folder / (name + "-threads")), (files, lines))
            out = f"{name}-stopped"
            for rounds in (2, 5):
                resume = ["--resume"] if rounds > 2 else []
                self.assertIn(self.play(*settings, "--rounds", rounds, *resume, out=out).returncode, (0, 3))
            self.assert_succeeds(self.play(*settings, "--resume", out=out))
            found_files, found_lines = contents(self.folder / out)
            self.assertEqual(without_gaps(found_lines[1:]), without_gaps(lines[1:]))
            self.assertEqual(found_files, files)

    def test_can_be_given_up_and_the_run_goes_on(self):
        self.assert_succeeds(self.play(*self.STOP))
        self.assert_succeeds(self.play("--resume"))
        self.assert_succeeds(self.play(out="whole"))
        run, whole = (without_gaps(log_lines(self.folder / name)[1:]) for name in ("run", "whole"))
        self.assertEqual(run, whole)

    def test_cannot_be_loose(self):
        done = self.play("--set", "stop.converged=0.2")
        self.assert_one_line(done, 2, "stop.converged must be", "0.05")


class Posteriors(TrustTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        rows = ["hospital,age,score,died"]
        for hospital in ("north", "south", "west"):
            for _ in range(40):
                age, score = draw.gauss(60, 10), draw.gauss(0, 1)
                rows.append(f"{hospital},{age:.1f},{score:.3f},{int(draw.random() < 0.3 + 0.2 * (score > 0))}")
        (self.folder / "stays.csv").write_text("\n".join(rows) + "\n")

    def coefficients(self, *extra):
        return PROGRAM.run("coefficients", self.folder / "run", *extra)

    def test_of_a_run_that_converged_have_intervals(self):
        self.assert_succeeds(self.play(text=TABLE))
        done = self.assert_succeeds(self.coefficients())
        self.assertIn("95 % interval", done.stdout)
        self.assertNotIn("judged", done.stdout)
        table = json.loads(self.assert_succeeds(self.coefficients("--json")).stdout)
        self.assertEqual(table["run"], {"trust": "yes"})
        self.assert_succeeds(PROGRAM.run("predict", self.folder / "run", "--data", self.folder / "stays.csv"))

    def test_of_a_run_that_did_not_have_none_and_exit_code_3(self):
        self.assert_distrusted(self.play("--set", "server.damping=0.1", text=TABLE))
        done = self.coefficients()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertNotIn("interval ", done.stdout.split("\n\n")[1])
        self.assertIn("There are no intervals: the run is not to be trusted.", done.stdout)
        self.assertIn("Note: the run is not to be trusted: it has not converged", done.stdout)
        done = self.coefficients("--json")
        self.assertEqual(done.returncode, 3)
        table = json.loads(done.stdout)
        self.assertEqual(table["run"]["trust"], "no")
        self.assertIn("it has not converged", table["run"]["why"])
        self.assertIn("phase.0.rounds", table["run"]["helps"])
        self.assertTrue(all(row["sd"] is None and row["low"] is None for row in table["coefficients"]))
        done = PROGRAM.run("predict", self.folder / "run", "--data", self.folder / "stays.csv")
        self.assertEqual(done.returncode, 3)
        self.assertIn(DISTRUST, done.stderr)

    def test_of_a_short_run_say_that_it_was_not_judged(self):
        self.assert_succeeds(self.play("--rounds", 4, text=TABLE))
        done = self.assert_succeeds(self.coefficients())
        self.assertIn("95 % interval", done.stdout)
        self.assertIn("Note: the run was not judged: it has 4 rounds", done.stdout)
        table = json.loads(self.assert_succeeds(self.coefficients("--json")).stdout)
        self.assertEqual(table["run"]["trust"], "not judged")


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
