#!/usr/bin/env python3
"""Kill and resume, interrupt and resume, and repeat: the same recipe and seed always end in the same bytes.

    resume_test.py PROGRAM SIGNAL_AT_LIBRARY
"""

import os
import signal
import sys
import time
import unittest
from pathlib import Path

from program import LABELLED, RECIPE, ROUNDS, SHARED_MEANS, FolderTest, Program, contents, log_lines

PROGRAM = LIBRARY = None
LABELS = LABELLED + """
[client]
batch = 10
[server]
clients_per_round = 3
[[phase]]
algorithm = "fed_sep"
rounds = 4
[phase.inference]
name = "scaled_identity"
"""
# checkpoint.every, checkpoint.sites, --threads
SETTINGS = [(every, sites, threads) for every in (1, 3, 5) for sites in ("memory", "disk") for threads in (1, 3)]


def at_call(call, number):
    """The environment of a program that gets the signal at its call-th change of a file (signal_at.cpp)."""
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARY),
        "SIGNAL_AT": str(call),
        "SIGNAL": str(int(number)),
        # The sanitizer insists on being the first library; it need not be.
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
    }


def without_gap(line):
    return {key: value for key, value in line.items() if not key.startswith("factor_gap")}


class RunTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(RECIPE)
        self.runs = 0

    def new_run(self):
        self.runs += 1
        return self.folder / f"run-{self.runs}"

    def arguments(self, out, every=3, sites="memory", threads=1, extra=()):
        return [
            "run",
            self.recipe,
            "--out",
            out,
            "--threads",
            threads,
            "--set",
            f"checkpoint.every={every}",
            "--set",
            f"checkpoint.sites={sites}",
            *extra,
        ]

    def play(self, out, *settings, extra=(), **options):
        return PROGRAM.run(*self.arguments(out, *settings, extra=extra), **options)

    def finish(self, out, *settings):
        """Resumes, or starts again where nothing had begun; gives what it printed."""
        extra = ["--resume"] if (out / "recipe.toml").exists() else []
        return self.assert_succeeds(self.play(out, *settings, extra=extra)).stdout

    def uninterrupted(self, *settings):
        out = self.new_run()
        done = self.assert_succeeds(self.play(out, *settings))
        return contents(out), done.stdout

    def assert_ends_like(self, expected, out, *settings):
        files, lines = expected[0]
        printed = self.finish(out, *settings)
        found_files, found_lines = contents(out)
        self.assertEqual(sorted(found_files), sorted(files))
        for name, content in files.items():
            self.assertEqual(found_files[name], content, f"{name} differs")
        self.assertEqual(found_lines, lines)
        self.assertEqual(printed, expected[1])


class Kill(RunTest):
    def calls(self, *settings):
        count = self.folder / "calls"
        self.assert_succeeds(self.play(self.new_run(), *settings, env={**at_call(0, 0), "SIGNAL_LOG": str(count)}))
        return int(count.read_text())

    def check_kills(self, settings, first, stride):
        expected = self.uninterrupted(*settings)
        calls = self.calls(*settings)
        self.assertGreater(calls, ROUNDS)
        for call in range(first, calls + 1, stride):
            with self.subTest(every=settings[0], sites=settings[1], threads=settings[2], call=call):
                out = self.new_run()
                killed = self.play(out, *settings, env=at_call(call, signal.SIGKILL))
                self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
                self.assert_ends_like(expected, out, *settings)

    def test_at_any_change_of_a_file_resumes_to_the_same_bytes(self):
        for sites in ("memory", "disk"):
            self.check_kills((3, sites, 1), 1, 1)

    def test_of_factors_on_the_servers_clock_resumes_to_the_same_bytes(self):
        self.recipe.write_text(RECIPE.replace("rounds = 8\n", 'rounds = 8\nfactor_clock = "round"\n'))
        for sites in ("memory", "disk"):
            self.check_kills((3, sites, 1), 5, 9)

    def test_of_factors_that_refer_to_means_resumes_to_the_same_bytes(self):
        self.recipe.write_text(SHARED_MEANS)
        for sites in ("memory", "disk"):
            self.check_kills((3, sites, 1), 3, 5)

    def test_in_every_round_resumes_to_the_same_bytes_whatever_the_settings(self):
        for place, settings in enumerate(SETTINGS):
            self.check_kills(settings, 1 + place % 7, 7)

    def test_again_and_again_still_ends_in_the_same_bytes(self):
        for sites in ("memory", "disk"):
            settings = (1, sites, 1)
            expected = self.uninterrupted(*settings)
            out = self.new_run()
            killed = self.play(out, *settings, env=at_call(60, signal.SIGKILL))
            kills = 1
            # Each attempt gets a checkpoint further, so that 60 calls at a time are enough.
            while killed.returncode == -signal.SIGKILL and kills < 2 * ROUNDS:
                killed = self.play(out, *settings, extra=["--resume"], env=at_call(60, signal.SIGKILL))
                kills += 1
            self.assert_succeeds(killed)
            self.assertGreater(kills, 4)
            self.assert_ends_like(expected, out, *settings)

    def test_from_outside_resumes_to_the_same_bytes(self):
        for settings in ((1, "disk", 3), (5, "memory", 1)):
            expected = self.uninterrupted(*settings)
            for lines in range(1, ROUNDS + 2):
                with self.subTest(settings=settings, lines=lines):
                    out = self.new_run()
                    self.kill_when_log_has(lines, out, settings)
                    self.assert_ends_like(expected, out, *settings)

    def kill_when_log_has(self, lines, out, settings):
        log = out / "log.jsonl"
        process = PROGRAM.start(*self.arguments(out, *settings))
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if log.exists() and log.read_bytes().count(b"\n") >= lines:
                break
        process.kill()
        process.communicate()

    def test_between_the_last_line_and_the_evaluation_resumes_to_the_same_bytes(self):
        self.recipe.write_text(LABELS)
        expected = self.uninterrupted()
        self.assertIn("evaluation.json", expected[0][0])
        calls = self.calls()
        found = 0
        for call in range(calls - 9, calls + 1):
            with self.subTest(call=call):
                out = self.new_run()
                killed = self.play(out, env=at_call(call, signal.SIGKILL))
                self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
                last = (out / "log.jsonl").read_text().splitlines(keepends=True)[-1]
                over = last.startswith('{"kind":"end"') and last.endswith("}\n")
                found += over and not (out / "evaluation.json").exists()
                self.assert_ends_like(expected, out)
        self.assertGreater(found, 0)

    def test_after_the_last_round_resumes_to_the_same_bytes(self):
        expected = self.uninterrupted()
        out = self.new_run()
        self.finish(out)
        for _ in range(2):
            self.assert_ends_like(expected, out)


class Begun(RunTest):
    def test_where_a_default_was_another_one_goes_on_with_that(self):
        """Factors of a first phase with a prior once began around the mean, and the run's recipe says so."""
        ep = RECIPE[: RECIPE.index("[[phase]]")] + RECIPE[RECIPE.index('[[phase]]\nalgorithm = "fed_ep"') :]
        self.recipe.write_text(ep.replace("rounds = 8\n", 'rounds = 8\nfactors = "carry_mean"\n'))
        expected = self.uninterrupted()
        out = self.new_run()
        self.assertEqual(self.play(out, env=at_call(40, signal.SIGINT)).returncode, 130)
        self.recipe.write_text(ep)
        self.assertIn('factors = "flat"', PROGRAM.run("check", self.recipe, "--settings").stdout)
        self.assert_ends_like(expected, out)


class Interrupt(RunTest):
    def test_stops_at_the_end_of_the_round_and_resumes_to_the_same_bytes(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for settings in ((3, "memory", 1), (5, "disk", 3)):
                expected = self.uninterrupted(*settings)
                for call in range(20, 120, 13):
                    with self.subTest(signal=number, settings=settings, call=call):
                        out = self.new_run()
                        stopped = self.play(out, *settings, env=at_call(call, number))
                        self.assertEqual(stopped.returncode, 130, stopped.stderr)
                        played = log_lines(out)[-1]["round"] + 1
                        last = stopped.stderr.splitlines()[-1]
                        self.assertEqual(last, f"stopped after round {played}; go on with --resume")
                        self.assertEqual(stopped.stdout, "")
                        # Nothing has to be played again.
                        self.assertTrue((out / f"checkpoint-{played}.safetensors").exists())
                        self.assert_ends_like(expected, out, *settings)

    def test_is_heard_where_whoever_started_the_run_had_blocked_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(signal=number):
                block = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {number})
                stopped = self.play(self.new_run(), env=at_call(40, number), preexec_fn=block)
                self.assertEqual(stopped.returncode, 130, stopped.stderr)

    def test_says_where_it_goes_on_if_checkpoints_are_without_factors(self):
        self.recipe.write_text(RECIPE + "factors = false\n")
        expected = self.uninterrupted()
        begins = 4  # FedEP, which has factors
        stopped_in = set()
        for call in range(20, 60, 3):
            with self.subTest(call=call):
                out = self.new_run()
                stopped = self.play(out, env=at_call(call, signal.SIGTERM))
                self.assertEqual(stopped.returncode, 130, stopped.stderr)
                played = log_lines(out)[-1]["round"] + 1
                loss = f" (from round {begins}: checkpoint.factors = false)" if played > begins else ""
                last = stopped.stderr.splitlines()[-1]
                self.assertEqual(last, f"stopped after round {played}; go on with --resume{loss}")
                self.assert_ends_like(expected, out)
                stopped_in.add(played > begins)
        self.assertEqual(stopped_in, {False, True})

    def test_twice_stops_at_once_and_resumes_to_the_same_bytes(self):
        settings = (3, "memory", 1)
        expected = self.uninterrupted(*settings)
        for call in range(20, 160, 13):
            with self.subTest(call=call):
                out = self.new_run()
                environment = {**at_call(call, signal.SIGINT), "SIGNAL_TIMES": "2"}
                stopped = self.play(out, *settings, env=environment)
                self.assertEqual(stopped.returncode, 130, stopped.stderr)
                self.assertIn("once more to stop at once", stopped.stderr)
                self.assertNotIn("stopped after round", stopped.stderr)
                self.assert_ends_like(expected, out, *settings)


class Repeat(RunTest):
    def test_of_the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads(self):
        expected = self.uninterrupted()
        for threads in (1, 2, 4, 7):
            self.assertEqual(self.uninterrupted(3, "memory", threads), expected)

    def test_with_another_seed_gives_others(self):
        one, other = self.new_run(), self.new_run()
        self.assert_succeeds(self.play(one))
        self.assert_succeeds(self.play(other, extra=["--seed", 8]))
        self.assertNotEqual(log_lines(one)[1:], log_lines(other)[1:])
        name = f"checkpoint-{ROUNDS}.safetensors"
        self.assertNotEqual((one / name).read_bytes(), (other / name).read_bytes())

    def test_on_disk_gives_what_it_gives_in_memory(self):
        (memory, memory_log), (disk, disk_log) = (self.uninterrupted(3, s)[0] for s in ("memory", "disk"))
        sites = {name for name in memory if name.startswith("sites/")}
        self.assertGreater(len(sites), 4)
        self.assertEqual({n: memory[n] for n in sites}, {n: c for n, c in disk.items() if n.startswith("sites/")})
        # Factors on disk are not read again only to hold q against their product.
        self.assertTrue(any("factor_gap_eta" in line for line in memory_log))
        self.assertFalse(any("factor_gap_eta" in line for line in disk_log))
        memory_log = [without_gap(line) for line in memory_log]
        self.assertEqual(memory_log[1:], disk_log[1:])


class SharedMeans(RunTest):
    def test_must_stay_what_they_were_until_their_phase_is_over(self):
        self.recipe.write_text(SHARED_MEANS)
        for kept, asked in (("true", "false"), ("false", "true")):
            out = self.new_run()
            self.assert_succeeds(self.play(out, extra=["--set", f"checkpoint.sparse={kept}", "--rounds", 7]))
            sites = {path.name: path.read_bytes() for path in (out / "sites").iterdir()}
            resumed = self.play(out, extra=["--set", f"checkpoint.sparse={asked}", "--resume"])
            self.assertEqual(resumed.returncode, 2)
            self.assertIn(f"checkpoint.sparse must be {kept}", resumed.stderr)
            self.assertEqual({path.name: path.read_bytes() for path in (out / "sites").iterdir()}, sites)
            self.assert_succeeds(self.play(out, extra=["--set", f"checkpoint.sparse={kept}", "--resume"]))


class Longer(RunTest):
    def test_runs_go_on_from_shorter_ones_to_the_same_bytes(self):
        expected = self.uninterrupted()
        for rounds in (3, 4, 5, 11):  # in the first phase, at its end, in the second
            with self.subTest(rounds=rounds):
                out = self.new_run()
                self.assert_succeeds(self.play(out, extra=["--rounds", rounds]))
                self.assertEqual(log_lines(out)[-1], {"kind": "end", "rounds": rounds})
                self.assert_ends_like_rounds(expected, out)

    def assert_ends_like_rounds(self, expected, out):
        # The shorter run evaluated in its last round and wrote its recipe into the log's header.
        files, lines = expected[0]
        self.finish(out)
        found_files, found_lines = contents(out)
        self.assertEqual(found_files, files)
        self.assertEqual([line.get("round") for line in found_lines], [line.get("round") for line in lines])


if __name__ == "__main__":
    LIBRARY = Path(sys.argv.pop(2)).resolve()
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
