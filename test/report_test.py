#!/usr/bin/env python3
"""`fedep report` and `fedep run --watch` from end to end: what the page holds, what is refused and how.

    report_test.py PROGRAM
"""

import http.client
import json
import math
import os
import re
import resource
import shutil
import socket
import sys
import time
import unittest
from pathlib import Path

from program import RECIPE, FolderTest, Program, json_lines

PROGRAM = None
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
    def setUp(self):
        super().setUp()
        (self.folder / "synthetic.toml").write_text(SYNTHETIC)
        (self.folder / "toy.toml").write_text(RECIPE)

    def play(self, name, recipe="synthetic.toml", *options):
        self.assert_succeeds(PROGRAM.run("run", recipe, "--out", name, *options, cwd=self.folder))
        return self.folder / name

    def report(self, *arguments):
        return PROGRAM.run("report", *arguments, cwd=self.folder)

    def refused(self, done, *words):
        self.assert_one_line(done, 2, *words)


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
        self.assert_succeeds(PROGRAM.run("reproduce", "table2", "--report", "page.html", cwd=self.folder))
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
                PROGRAM.run("reproduce", "table2", "--recipes", ".", "--seeds", seed, cwd=self.folder)
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


class Names(ReportTest):
    """Names that a file gives to things stay names, wherever they come up."""

    HOSTILE = "/../../../owned\0"

    def with_score(self, run, name, value="0.5"):
        """A run whose log has a score of this name, besides its own."""
        log = run / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if line["kind"] == "round":
                line[name] = float(value)
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return run

    def files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}

    def test_of_scores_name_no_file_elsewhere(self):
        deep = self.folder / "a" / "b" / "c"
        deep.mkdir(parents=True)
        self.with_score(self.play("a/b/c/run"), self.HOSTILE)
        outside = self.folder / "owned"
        outside.write_text("mine")
        before = self.files()
        done = self.assert_succeeds(PROGRAM.run("report", "run", "--figure", "f", cwd=deep))
        self.assertEqual(outside.read_text(), "mine")
        new = self.files() - before
        self.assertTrue(all(re.fullmatch(r"a/b/c/f-[\w%.-]+\.svg", name) for name in new), new)
        self.assertIn("a/b/c/f-%2F..%2F..%2F..%2Fowned%00.svg", new)
        self.assertIn("f-%2F..%2F..%2F..%2Fowned%00.svg", done.stdout.splitlines())

    def test_of_rows_and_tables_are_no_folders_elsewhere(self):
        for key in ("row", "table"):
            names = {"table": "mine", "row": "first", key: "../../../x"}
            head = "".join(f'{name} = "{value}"\n' for name, value in names.items())
            (self.folder / "deep" / "recipe").mkdir(parents=True, exist_ok=True)
            (self.folder / "deep" / "recipe" / "one.toml").write_text(head + SYNTHETIC)
            before = self.files()
            done = PROGRAM.run("reproduce", names["table"], cwd=self.folder / "deep")
            self.refused(done, f"one.toml: {key} must be", "../../../x")
            self.assertEqual(self.files(), before)

    def test_are_only_shown_by_a_terminal(self):
        run = self.with_score(self.play("run"), "\x1b[31mred\u202e\n")
        done = self.assert_succeeds(PROGRAM.run("compare", run))
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("\\x1b[31mred\\u202e\\x0a", done.stdout.splitlines()[0])
        self.assertEqual(len(done.stdout.splitlines()), 2)
        self.refused(PROGRAM.run("check", "\x1b[31mred.toml", cwd=self.folder), "\\x1b[31mred.toml")

    def test_scores_that_hardly_differ_are_drawn(self):
        run = self.play("run")
        lines = json_lines(run / "log.jsonl")
        for line in lines:
            if line["kind"] == "round":
                line["close"] = math.nextafter(0.5, 1) if line["round"] % 2 else 0.5
        (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assert_succeeds(self.report("run", "--figure", "f", "--score", "close"))
        self.assertLess((self.folder / "f-close.svg").stat().st_size, 20000)


class Watch(ReportTest):
    def start(self, rounds="100000", recipe="synthetic.toml", **options):
        """A run that goes on until it is stopped; gives it and its port."""
        run = PROGRAM.start("run", recipe, "--out", "live", "--watch", "0", "--set", f"phase.1.rounds={rounds}",
                            cwd=self.folder, **options)  # fmt: skip

        def stop():
            if run.poll() is None:
                run.kill()
            run.communicate()

        self.addCleanup(stop)
        first = run.stderr.readline()
        match = re.fullmatch(r"watch the run at http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/\n", first)
        self.assertTrue(match, first)
        self.token = match[2]
        return run, int(match[1])

    def ask(self, port, path, host=None, token=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request(method, f"/{token or self.token}{path}", headers={"Host": host or f"127.0.0.1:{port}"})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def played(self, port):
        runs = json.loads(self.ask(port, "/data.json")[1])["runs"]
        return runs[0]["played"] if runs else 0

    def wait_for(self, what):
        deadline = time.monotonic() + 60
        while not what() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(what())

    def test_serves_the_page_and_newer_data_while_the_run_goes_on(self):
        run, port = self.start()
        answer, page = self.ask(port, "/")
        self.assertEqual(answer.status, 200)
        self.assertIn("text/html", answer.headers["Content-Type"])
        self.assertEqual(answer.headers["Referrer-Policy"], "no-referrer")
        self.assertIn("connect-src 'self'", page)
        first = self.played(port)
        self.wait_for(lambda: self.played(port) > first)
        data = json.loads(self.ask(port, "/data.json?now")[1])
        self.assertEqual((data["live"], data["runs"][0]["status"]), (True, "running"))
        self.assertEqual(self.ask(port, "/log.jsonl")[0].status, 404)
        self.assertEqual(self.ask(port, "/data.json", method="POST")[0].status, 405)
        run.terminate()
        run.wait(timeout=60)
        self.assertEqual(run.returncode, 130)

    def test_says_nothing_to_whoever_does_not_know_its_token(self):
        _, port = self.start()
        wrong = ("0" if self.token[0] != "0" else "1") + self.token[1:]
        for token, path in ((wrong, "/"), (wrong, "/data.json"), (self.token[:-1], "/"), ("..", f"/{self.token}/"), ("", "")):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", f"/{token}{path}")
            answer = connection.getresponse()
            self.assertEqual(answer.status, 403, token + path)
            self.assertLess(len(answer.read()), 200)
            connection.close()
        self.assertEqual(self.ask(port, "/")[0].status, 200)

    def test_has_another_token_every_time(self):
        run, _ = self.start()
        first = self.token
        run.kill()
        run.wait()
        shutil.rmtree(self.folder / "live", ignore_errors=True)  # not made yet, if the run was killed at once
        self.start()
        self.assertNotEqual(self.token, first)

    def stall(self, port, count, said=b"GET / HT"):
        """Connections that begin a request and say no more."""
        stalled = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            self.addCleanup(connection.close)
            connection.sendall(said)
            stalled.append(connection)
        return stalled

    def test_answers_at_once_whoever_else_is_silent(self):
        run, port = self.start()
        self.wait_for(lambda: self.played(port) > 0)
        self.stall(port, 300)
        self.stall(port, 20, b"")
        for path in ("/", "/data.json", "/data.json"):
            began = time.monotonic()
            self.assertEqual(self.ask(port, path)[0].status, 200)
            self.assertLess(time.monotonic() - began, 2)  # 5 s for a silent one; half a second, and a busy machine

    def test_keeps_a_bounded_number_of_connections(self):
        run, port = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)))
        self.stall(port, 300)
        self.assertEqual(self.ask(port, "/")[0].status, 200)
        self.assertLess(len(os.listdir(f"/proc/{run.pid}/fd")), 90)  # a quarter of what there is, and its own

    def test_gives_up_on_the_silent_and_on_those_who_never_stop(self):
        _, port = self.start()
        silent = self.stall(port, 1)[0]
        endless = self.stall(port, 1, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 2000)[0]
        self.assertIn(b"431", endless.recv(100))
        noise = self.stall(port, 1, b"\x16\x03\x01 hello\r\n\r\n")[0]
        self.assertIn(b"400", noise.recv(100))
        silent.settimeout(30)
        self.assertEqual(silent.recv(100), b"")  # closed, after five seconds

    def test_shows_a_long_run_in_bounded_space(self):
        run, port = self.start(rounds="1000000", recipe="toy.toml")
        self.wait_for(lambda: self.played(port) > 5000)
        text = self.ask(port, "/data.json")[1]
        self.assertLess(len(text), 300_000)
        shown = json.loads(text)["runs"][0]
        points = len(shown["curves"]["distance"])
        self.assertLessEqual(points, 2048)
        self.assertGreater(points, 1000)
        self.assertEqual(points, math.ceil(shown["played"] / shown["rounds_each"]))
        self.assertEqual(len(shown["seconds"]), points)
        self.assertGreater(shown["rounds_each"], 1)

    def test_answers_this_machine_and_no_other_name(self):
        _, port = self.start()
        self.assertEqual(self.ask(port, "/", "evil.example")[0].status, 403)
        self.assertEqual(self.ask(port, "/data.json", f"evil.example:{port}")[0].status, 403)
        self.assertEqual(self.ask(port, "/data.json", f"localhost:{port}")[0].status, 200)
        listening = Path("/proc/net/tcp").read_text()
        self.assertRegex(listening, f"0100007F:{port:04X} 00000000:0000 0A")
        self.assertNotRegex(listening, f"00000000:{port:04X} 00000000:0000 0A")

    def test_shows_the_end_to_a_page_that_is_open(self):
        run, port = self.start(rounds="300")
        seen = {"status": "running"}
        while seen["status"] != "finished" and run.poll() is None:
            runs = json.loads(self.ask(port, "/data.json")[1])["runs"]
            seen = runs[0] if runs else seen
        self.assertEqual((seen["status"], seen["played"]), ("finished", 304))
        self.assertTrue(seen["reliability"]["point"])
        self.assertEqual(run.wait(timeout=60), 0)

    def test_of_a_run_that_goes_on_has_the_rounds_before(self):
        slow = ("--set", "client.epochs=100")  # so that there is a point for every round when we look
        self.play("live", "synthetic.toml", "--rounds", "10", *slow)
        run = PROGRAM.start("run", "synthetic.toml", "--out", "live", "--watch", "0", "--resume", "--set", "phase.1.rounds=100000",
                            *slow, cwd=self.folder)  # fmt: skip
        self.addCleanup(lambda: (run.kill(), run.communicate()))
        _, port, self.token, _ = re.split(r"127\.0\.0\.1:|/(?=[0-9a-f]{32})|/$", run.stderr.readline().strip())
        self.wait_for(lambda: self.played(int(port)) > 10)
        shown = json.loads(self.ask(int(port), "/data.json")[1])["runs"][0]
        self.assertEqual(shown["rounds_each"], 1)
        accuracy = [line["accuracy"] for line in json_lines(self.folder / "live" / "log.jsonl")[1:11]]
        for value, logged in zip(shown["curves"]["accuracy"], accuracy):
            self.assertAlmostEqual(value, logged, places=6)
        self.assertEqual(sum(shown["participation"]["counts"]), 4 * shown["played"])

    def test_refuses_a_port_in_use_before_the_run_begins(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = PROGRAM.run("run", "synthetic.toml", "--out", "never", "--watch", port, cwd=self.folder)
        self.refused(done, f"--watch: port {port} of 127.0.0.1 must be free, but is not")
        self.assertFalse((self.folder / "never").exists())
        _, port = self.start()  # and one of our own
        done = PROGRAM.run("run", "synthetic.toml", "--out", "never", "--watch", port, cwd=self.folder)
        self.refused(done, f"port {port}")

    def test_refuses_what_is_no_port(self):
        done = PROGRAM.run("run", "synthetic.toml", "--watch", "70000", cwd=self.folder)
        self.refused(done, "must be a whole number from 0 to 65535")

    def test_changes_nothing_about_the_run(self):
        plain = self.play("plain")
        watched = self.play("watched", "synthetic.toml", "--watch", "0")
        for name in ("checkpoint-15.safetensors", "evaluation.json", "recipe.toml"):
            self.assertEqual((plain / name).read_bytes(), (watched / name).read_bytes())


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
