#!/usr/bin/env python3
"""The crash laboratory: calls that fail or kill at any point, and power cuts at any point. Afterwards --resume gives
the bits of the run that was not interrupted.

    crash_test.py PROGRAM LIBRARY           a sample, for every day
    crash_test.py PROGRAM LIBRARY --all     every call, and 900 power cuts (make crash)
"""

import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import unittest

from disk import CUTS, Disk
from laboratory import SAME, SETTINGS, Laboratory

from program import FolderTest, contents

PROGRAM = LIBRARY = None
ALL = False
FIGURES = collections.Counter()
WHAT_FAILS = {"EIO": "Input/output error", "ENOSPC": "No space left on device", "short": "Input/output error|No space left"}


class Crash(FolderTest):
    def in_each_laboratory(self, experiment, sample=("memory",)):
        """One after another, each in a folder of its own; with all settings, or those of the sample."""
        for number, (name, settings) in enumerate(SETTINGS.items()):
            if not ALL and name not in sample:
                continue
            folder = self.folder / name.replace(" ", "-")
            folder.mkdir()
            with self.subTest(settings=name):
                experiment(Laboratory(PROGRAM, LIBRARY, folder, settings), number)
            shutil.rmtree(folder)

    def check(self, what, verdicts):
        """`verdicts`: (where it broke, what came of it)."""
        bad = []
        for where, verdict in verdicts:
            FIGURES[what] += 1
            FIGURES[f"{what}: {verdict.split(':')[0]}"] += 1
            if verdict != SAME:
                bad.append(f"{where}: {verdict}")
        self.assertEqual(bad[:20], [], f"{len(bad)} went wrong")


class BrokenCalls(Crash):
    """Every call that opens, writes, truncates, syncs, renames, removes or makes a folder breaks once."""

    def broken(self, laboratory, half, stride, first):
        """Of a start from `half`, which is an empty place or one with a run that stopped."""
        calls = laboratory.calls(laboratory.copy_of(half))
        self.assertGreater(calls, 30)
        hows = ["EIO", "ENOSPC", "short", "before", "after"]
        points = [(call, how) for call in range(1, calls + 1) for how in hows]
        for call, how in points[first::stride]:
            place = laboratory.copy_of(half)
            done = laboratory.again(place, at=call, how=how)
            yield f"call {call} {how}", self.ends_well(how, done) or laboratory.verdict(place)
            shutil.rmtree(place)

    def ends_well(self, how, done):
        """Nothing if it died as it was killed, came through, or said in one line what failed."""
        if how in ("before", "after"):
            return "" if done.returncode == -9 else f"not killed: {done.returncode}"
        if done.returncode == 0:
            return ""
        errors = [line for line in done.stderr.splitlines() if line.startswith("fedep: ")]
        is_clear = len(errors) == 1 and str(self.folder) in errors[0] and re.search(WHAT_FAILS[how], errors[0])
        return "" if done.returncode == 1 and is_clear else f"unclear: {done.returncode} {done.stderr.splitlines()[-3:]}"

    def test_of_a_start_leave_a_run_that_ends_in_the_same_bits(self):
        def experiment(laboratory, _):
            some = (1, 0) if ALL else (7, 3)
            self.check("broken calls of a start", self.broken(laboratory, laboratory.place(), *some))

        self.in_each_laboratory(experiment)

    def test_of_a_resume_leave_a_run_that_ends_in_the_same_bits(self):
        def experiment(laboratory, _):
            half = laboratory.place()
            calls = laboratory.calls(laboratory.place())
            laboratory.again(half, at=calls * 2 // 3, how="before")
            some = (1, 0) if ALL else (11, 5)
            self.check("broken calls of a resume", self.broken(laboratory, half, *some))

        self.in_each_laboratory(experiment)


class TwoStarts(Crash):
    def test_on_one_new_folder_leave_the_run_of_one(self):
        def experiment(laboratory, _):
            expected = {}
            for seed in (7, 8):
                place = laboratory.place()
                self.assert_succeeds(laboratory.play(place, "--seed", seed))
                expected[seed] = contents(place / "run")
            calls = laboratory.calls(laboratory.place())
            for call in range(1, calls, 3) if ALL else range(1, 20):
                with self.subTest(call=call):
                    FIGURES["two starts on one new folder"] += 1
                    self.check_two(laboratory, call, expected)

        self.in_each_laboratory(experiment)

    def check_two(self, laboratory, call, expected):
        """One start stops before a call, another comes in between, and the first goes on."""
        place = laboratory.place()
        first = laboratory.start(place, "--seed", 7, at=call, how="stop")
        os.waitid(os.P_PID, first.pid, os.WSTOPPED)
        second = laboratory.start(place, "--seed", 8)
        try:
            second.wait(timeout=3)  # one that waits for the other does not come to an end
        except subprocess.TimeoutExpired:
            pass
        first.send_signal(signal.SIGCONT)
        errors = {7: first.communicate()[1], 8: second.communicate()[1]}
        won = [seed for seed, process in ((7, first), (8, second)) if process.returncode == 0]
        self.assertEqual(len(won), 1, errors)
        self.assertEqual({first.returncode, second.returncode}, {0, 2}, errors)
        self.assertEqual(contents(place / "run"), expected[won[0]])


class PowerCuts(Crash):
    def cuts(self, laboratory, disk, lines, number, seed):
        """So many cuts while these calls were made, spread over them, of every kind in turn."""
        draw = random.Random(seed)
        points = sorted(draw.randrange(len(lines) + 1) for _ in range(number))
        done = 0
        promised = Promised()
        for index, point in enumerate(points):
            for line in lines[done:point]:
                promised.see(line)
                disk.apply(line)
            done = point
            how = list(CUTS)[index % len(CUTS)]
            place = laboratory.place()
            disk.cut(draw, how).write_to(place)
            kept = latest_checkpoint(place)
            late = f"lost: checkpoint {promised.round}, only {kept} is there" if kept < promised.round else ""
            yield f"after call {point} {how}", late or laboratory.verdict(place)
            shutil.rmtree(place)

    def test_while_a_run_is_played_cost_no_run_and_no_bit(self):
        def experiment(laboratory, number):
            place = laboratory.place()
            disk = Disk(place)
            lines = laboratory.recorded(place)
            self.check("power cuts of a start", self.cuts(laboratory, disk, lines, 120 if ALL else 35, number))

        self.in_each_laboratory(experiment, ("memory", "disk"))

    def test_while_a_run_is_resumed_cost_no_run_and_no_bit(self):
        """After a cut before, so that all that is there is on the disk."""

        def experiment(laboratory, number):
            half = laboratory.place()
            laboratory.again(half, at=laboratory.calls(laboratory.place()) // 2, how="before")
            disk = Disk(half)
            lines = laboratory.recorded(half)
            self.check("power cuts of a resume", self.cuts(laboratory, disk, lines, 40 if ALL else 14, number))

        self.in_each_laboratory(experiment)

    def test_after_a_kill_and_while_a_run_is_resumed_cost_no_run_and_no_bit(self):
        """What the killed process did not bring to the disk is not there either."""

        def experiment(laboratory, number):
            calls = laboratory.calls(laboratory.place())
            for killed_at in range(5, calls, calls // (8 if ALL else 3)):
                place = laboratory.place()
                disk = Disk(place)
                for line in laboratory.recorded(place, at=killed_at, how="after"):
                    disk.apply(line)
                disk.restart()
                lines = laboratory.recorded(place)
                cuts = self.cuts(laboratory, disk, lines, 7, 100 * number + killed_at)
                self.check("power cuts of a resume after a kill", cuts)

        self.in_each_laboratory(experiment)

    def test_after_the_end_cost_nothing_at_all(self):
        def experiment(laboratory, _):
            place = laboratory.place()
            disk = Disk(place)
            for line in laboratory.recorded(place):
                disk.apply(line)
            for how in CUTS:
                after = laboratory.place()
                disk.cut(random.Random(1), how).write_to(after)
                self.assertEqual(laboratory.missing(after), "", how)
                self.check("power cuts after the end", [(how, laboratory.verdict(after))])

        self.in_each_laboratory(experiment)


class Promised:
    """The newest checkpoint that a run relied on: it logged a round behind it."""

    def __init__(self):
        self.round = self.written = -1
        self.log = None

    def see(self, line):
        call, *rest = line.split("\t")
        if call == "open" and rest[2].endswith("/log.jsonl"):
            self.log = rest[0]
        if call == "rename" and (found := re.search(r"/checkpoint-(\d+)\.safetensors$", rest[1])):
            self.written = int(found[1])
        if call == "write" and rest[0] == self.log:
            self.round = self.written


def latest_checkpoint(place):
    files = (place / "run").glob("checkpoint-*.safetensors")
    return max((int(file.stem.removeprefix("checkpoint-")) for file in files), default=-1)


class Records(Crash):
    def test_tell_all_that_a_run_did_to_its_files(self):
        def experiment(laboratory, _):
            place = laboratory.place()
            disk = Disk(place)
            for line in laboratory.recorded(place):
                disk.apply(line)
            replayed = laboratory.place()
            disk.cut(random.Random(1), "everything").write_to(replayed)
            files = {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
            found = {path.relative_to(replayed): path.read_bytes() for path in replayed.rglob("*") if path.is_file()}
            self.assertEqual(found, files)
            self.assertEqual(laboratory.difference(replayed), "")

        self.in_each_laboratory(experiment, SETTINGS)


if __name__ == "__main__":
    if "--all" in sys.argv:
        ALL = True
        sys.argv.remove("--all")
    LIBRARY = sys.argv.pop(2)
    PROGRAM = sys.argv.pop(1)
    done = unittest.main(exit=False)
    for what, number in sorted(FIGURES.items()):
        print(f"{number:6} {what}")
    sys.exit(not done.result.wasSuccessful())
