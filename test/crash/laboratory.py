"""Runs of a tiny recipe under crash_at.cpp: broken at a call, or written down; and what became of them.

    laboratory = Laboratory(program, library, folder)
    broken = laboratory.play(out, at=17, how="EIO")
    laboratory.verdict(out)       # SAME, or what is lost or wrong
"""

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from program import LABELLED, Program, contents  # noqa: E402

# Two phases, the second with clients' factors; a checkpoint in each, one where a phase begins, and one at the end,
# where there is a round of curvature too.
RECIPE = "seed = 7" + LABELLED + """
[client]
batch = 10
[server]
clients_per_round = 3
optimizer = { name = "sgd", lr = 0.5, momentum = 0.5 }
[[phase]]
algorithm = "fed_avg"
rounds = 3
[[phase]]
algorithm = "fed_ep"
rounds = 4
curvature = "full"
[phase.inference]
name = "scaled_identity"
[evaluate]
every = 2
[checkpoint]
every = 2
"""
ROUNDS = 7
SAME = "the same bits"
# By name: what runs are played with.
SETTINGS = {
    "memory": (),
    "disk": ("checkpoint.sites=disk",),
    "two": ("checkpoint.keep=2", "checkpoint.every=1"),
    "no factors": ("checkpoint.factors=false", "checkpoint.every=1"),
}


class Laboratory:
    def __init__(self, program, library, folder, settings):
        self.program, self.library = Program(program), Path(library).resolve()
        self.folder = Path(folder)
        self.settings = [word for setting in settings for word in ("--set", setting)]
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(RECIPE)
        self.made = 0
        self.expected = self.uninterrupted()

    def place(self):
        """A new folder; runs are played into the folder "run" below it, which they make."""
        self.made += 1
        place = self.folder / f"place-{self.made}"
        place.mkdir()
        return place

    def arguments(self, place, *extra):
        return ["run", self.recipe, "--out", place / "run", *self.settings, *extra]

    def environment(self, place, at=0, how="", record=None, count=None):
        return {
            **os.environ,
            "LD_PRELOAD": str(self.library),
            "CRASH_FOLDER": str(place),
            "CRASH_AT": str(at),
            "CRASH_HOW": how,
            "CRASH_RECORD": str(record or ""),
            "CRASH_COUNT": str(count or ""),
            # The sanitizer insists on being the first library; it need not be.
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }

    def play(self, place, *extra, **crash):
        return self.program.run(*self.arguments(place, *extra), env=self.environment(place, **crash))

    def start(self, place, *extra, **crash):
        return self.program.start(*self.arguments(place, *extra), env=self.environment(place, **crash))

    def again(self, place, **crash):
        """Resumes, or starts again where nothing had begun."""
        extra = ["--resume"] if (place / "run" / "recipe.toml").exists() else []
        return self.play(place, *extra, **crash)

    def uninterrupted(self):
        place = self.place()
        done = self.play(place)
        assert done.returncode == 0, done.stderr
        return contents(place / "run"), done.stdout

    def recorded(self, place, **crash):
        """What a start, or another, did to the files below its place, call by call."""
        record = self.folder / "record"
        self.again(place, record=record, **crash)
        lines = record.read_text().splitlines()
        record.unlink()
        return lines

    def calls(self, place):
        """How many calls a start, or another, has that can be broken."""
        count = self.folder / "count"
        done = self.again(place, count=count)
        assert done.returncode == 0, done.stderr
        return int(count.read_text())

    def copy_of(self, place):
        copy = self.place()
        shutil.copytree(place, copy, dirs_exist_ok=True)
        return copy

    def verdict(self, place):
        """Goes on to the end, with nothing in the way, and compares with the run that was not interrupted."""
        done = self.again(place)
        if done.returncode != 0:
            return f"lost: {done.stderr.splitlines()[-1:]}"
        return self.difference(place) or (SAME if done.stdout == self.expected[1] else "wrong: other scores printed")

    def difference(self, place):
        """From the run that was not interrupted; nothing if there is none."""
        left = sorted(contents_of(place)[0].keys() - self.expected[0][0].keys())
        return self.missing(place) or (f"wrong: {left[0]} is left" if left else "")

    def missing(self, place):
        """What is missing or differs; more files may be there: what was removed can come back with a power cut."""
        (files, lines), (found, found_lines) = self.expected[0], contents_of(place)
        for name, content in files.items():
            if name not in found:
                return f"wrong: {name} is missing"
            if found[name] != content:
                return f"wrong: {name} differs"
        return "" if found_lines == lines else "wrong: log.jsonl differs"


def contents_of(place):
    run = place / "run"
    return contents(run) if (run / "log.jsonl").exists() else ({}, [])
