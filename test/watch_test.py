#!/usr/bin/env python3
"""`fedep run --watch` from end to end: what it serves, to whom, and what it refuses.

    watch_test.py PROGRAM
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

from program import Program, json_lines
from reports import ReportTest


class Watch(ReportTest):
    def start(self, rounds="100000", recipe="synthetic.toml", **options):
        """A run that goes on until it is stopped; gives it and its port."""
        run = self.program.start("run", recipe, "--out", "live", "--watch", "0", "--set", f"phase.1.rounds={rounds}",
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
        self.assertIn(run.wait(timeout=60), (0, 3))

    def test_of_a_run_that_goes_on_has_the_rounds_before(self):
        slow = ("--set", "client.epochs=100")  # so that there is a point for every round when we look
        self.play("live", "synthetic.toml", "--rounds", "10", *slow)
        run = self.program.start("run", "synthetic.toml", "--out", "live", "--watch", "0", "--resume", "--set", "phase.1.rounds=100000",
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
            done = self.program.run("run", "synthetic.toml", "--out", "never", "--watch", port, cwd=self.folder)
        self.refused(done, f"--watch: port {port} of 127.0.0.1 must be free, but is not")
        self.assertFalse((self.folder / "never").exists())
        _, port = self.start()  # and one of our own
        done = self.program.run("run", "synthetic.toml", "--out", "never", "--watch", port, cwd=self.folder)
        self.refused(done, f"port {port}")

    def test_refuses_what_is_no_port(self):
        done = self.program.run("run", "synthetic.toml", "--watch", "70000", cwd=self.folder)
        self.refused(done, "must be a whole number from 0 to 65535")

    def test_changes_nothing_about_the_run(self):
        plain = self.play("plain")
        watched = self.play("watched", "synthetic.toml", "--watch", "0")
        for name in ("checkpoint-15.safetensors", "evaluation.json", "recipe.toml"):
            self.assertEqual((plain / name).read_bytes(), (watched / name).read_bytes())


if __name__ == "__main__":
    ReportTest.program = Program(sys.argv.pop(1))
    unittest.main()
