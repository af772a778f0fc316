#!/usr/bin/env python3
"""Plants single faults, one at a time, and names those that the tests of their own folder do not notice.

  test/mutants/plant.py                  every fault of test/mutants/*.toml; `make mutants`
  test/mutants/plant.py 'round/* *grid*' those whose FOLDER/ID matches one of the patterns; `make mutants MUTANTS=…`
  test/mutants/plant.py --check          only whether every fault's text still stands once in its file
  test/mutants/plant.py --list           their names

A list is one folder's. A fault is a text that stands exactly once in a file and what a mistake would have made of it:

  [[fault]]
  id = "share-of-those-asked"
  file = "fedep/round/round_parts.cpp"
  before = 'double(population.examples())'
  after = 'examples_asked'
  tests = "MakeTasks.*"                   # who should notice; asked first, then all of the folder's tests
  why = "stochastic EP takes a client's part of everybody's data out of q, not of this round's"

Faults are planted in a copy of the working tree, build-mutants/tree, which has a build folder of its own; ends with 1 where one
survives or does not compile.
"""

import argparse
import fnmatch
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).resolve().parent
# From below to above, so that what a planted fault makes stale is not built yet.
FOLDERS = ["random", "message", "algorithm", "optim", "metric", "config", "round", "store", "data", "model", "inference", "sim",
           "page", "app"]
MEMORY = 16 << 30  # bytes that a test gone wild may ask for


@dataclass(frozen=True)
class Fault:
    folder: str
    id: str
    file: str
    before: str
    after: str
    tests: str
    why: str

    @property
    def name(self):
        return f"{self.folder}/{self.id}"


def read_faults():
    faults = []
    for folder in FOLDERS:
        with open(LISTS / f"{folder}.toml", "rb") as file:
            faults += [Fault(folder=folder, **{"tests": "", **entry}) for entry in tomllib.load(file)["fault"]]
    return faults


def wrong_with(faults, source):
    """What makes the lists untrue, a line each."""
    wrong = []
    for stray in sorted({path.stem for path in LISTS.glob("*.toml")} - set(FOLDERS)):
        wrong.append(f"{stray}.toml: no folder of that name has faults planted")
    seen = set()
    for fault in faults:
        if fault.name in seen:
            wrong.append(f"{fault.name}: stands twice")
        seen.add(fault.name)
        home = "app/" if fault.folder == "app" else f"fedep/{fault.folder}/"
        if not fault.file.startswith(home):
            wrong.append(f"{fault.name}: {fault.file} is not in {home}, whose tests would be asked")
        if fault.before == fault.after:
            wrong.append(f"{fault.name}: nothing would change")
        path = source / fault.file
        times = path.read_text().count(fault.before) if path.is_file() else None
        if times is None:
            wrong.append(f"{fault.name}: {fault.file} is missing")
        elif times != 1:
            wrong.append(f"{fault.name}: its text must stand once in {fault.file}, but stands {times} times: {fault.before!r}")
    return wrong


def copy_tree(source, tree):
    """What git knows or could know of, as it is now; files that did not change keep their times."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=source, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (source / name).is_file()}
    for path in tree.rglob("*"):
        inside = path.relative_to(tree)
        if inside.parts[0] != "build" and path.is_file() and str(inside) not in wanted:
            path.unlink()
    for name in wanted:
        to = tree / name
        if to.is_file() and to.read_bytes() == (source / name).read_bytes():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, to)


class Workshop:
    """The copy of the tree, its builds and its tests."""

    def __init__(self, source, jobs):
        self.tree = source / "build-mutants" / "tree"
        self.log = source / "build-mutants" / "log.txt"
        self.scratch = source / "build-mutants" / "scratch"
        self.jobs = jobs
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(self.scratch),
                            "FEDEP_DATA": str(source / "build" / "data")}
        self.tree.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        copy_tree(source, self.tree)
        if not (self.tree / "build" / "build.ninja").is_file():
            self._run(["cmake", "--preset", "release"], check=True)

    def _run(self, command, check=False):
        with open(self.log, "a") as log:
            return subprocess.run(["nice", "-n", "15", *command], cwd=self.tree, env=self.environment, stdout=log,
                                  stderr=subprocess.STDOUT, check=check).returncode

    def builds(self, folder):
        return self._run(["cmake", "--build", "build", "-j", str(self.jobs), "--target", f"fedep_{folder}_test"]) == 0

    def passes(self, folder, tests, seconds):
        """Whether all of these tests pass, within the time."""
        place = self.tree / "build" / ("app" if folder == "app" else f"fedep/{folder}")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        command = ["nice", "-n", "15", f"./fedep_{folder}_test", "--gtest_fail_fast", "--gtest_brief=1"]
        if tests:
            command.append(f"--gtest_filter={tests}")
        with open(self.log, "a") as log:
            child = subprocess.Popen(command, cwd=place, env=self.environment, stdout=log, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
            try:
                return child.wait(timeout=seconds) == 0
            except subprocess.TimeoutExpired:
                return False  # an endless loop is noticed by whoever waits for it
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)  # whatever it left running
                except ProcessLookupError:
                    pass
                child.wait()

    def note(self, text):
        with open(self.log, "a") as log:
            log.write(f"\n==== {text}\n")

    def verdict(self, fault, seconds):
        """caught, SURVIVED or DID NOT COMPILE; the text is afterwards what it was."""
        path = self.tree / fault.file
        text = path.read_text()
        self.note(fault.name)
        try:
            path.write_text(text.replace(fault.before, fault.after))
            if not self.builds(fault.folder):
                return "DID NOT COMPILE"
            if fault.tests and not self.passes(fault.folder, fault.tests, seconds):
                return "caught"
            return "SURVIVED" if self.passes(fault.folder, "", seconds) else "caught"
        finally:
            path.write_text(text)


def plant(faults, workshop):
    verdicts = {}
    for folder in FOLDERS:
        here = [fault for fault in faults if fault.folder == folder]
        if not here:
            continue
        workshop.note(f"{folder} without faults")
        if not workshop.builds(folder):
            sys.exit(f"{folder}: its tests do not compile without faults; {workshop.log} says why")
        start = time.monotonic()
        if not workshop.passes(folder, "", 3600):
            sys.exit(f"{folder}: its tests do not pass without faults; {workshop.log} says why")
        seconds = 60 + 10 * (time.monotonic() - start)
        for fault in here:
            begin = time.monotonic()
            verdicts[fault] = workshop.verdict(fault, seconds)
            print(f"{verdicts[fault]:<16}{fault.name:<52}{time.monotonic() - begin:6.0f} s", flush=True)
    return verdicts


def report(verdicts):
    print(f"\n{'folder':<12}{'planted':>9}{'caught':>9}")
    for folder in FOLDERS:
        here = [verdict for fault, verdict in verdicts.items() if fault.folder == folder]
        if here:
            print(f"{folder:<12}{len(here):>9}{here.count('caught'):>9}")
    caught = list(verdicts.values()).count("caught")
    print(f"{'all':<12}{len(verdicts):>9}{caught:>9}   {100 * caught / len(verdicts):.1f} %")
    for fault, verdict in verdicts.items():
        if verdict != "caught":
            print(f"\n{verdict}: {fault.name} ({fault.file})\n  {fault.before!r}\n  {fault.after!r}\n  {fault.why}")
    return 0 if caught == len(verdicts) else 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("patterns", nargs="?", default="*", help="of FOLDER/ID, as a shell has them, between blanks")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--list", action="store_true")
    arguments.add_argument("--jobs", type=int, default=1)
    given = arguments.parse_args()
    faults = read_faults()
    wrong = wrong_with(faults, SOURCE)
    print("\n".join(wrong), end="\n" if wrong else "")
    if given.check:
        print(f"{len(faults)} faults, {len(wrong)} of them untrue")
    if given.check or wrong:
        return 1 if wrong else 0
    chosen = [fault for fault in faults if any(fnmatch.fnmatchcase(fault.name, pattern) for pattern in given.patterns.split())]
    if given.list or not chosen:
        print("\n".join(f"{fault.name}: {fault.why}" for fault in chosen) or f"no fault matches {given.patterns}")
        return 0 if chosen else 1
    return report(plant(chosen, Workshop(SOURCE, given.jobs)))


if __name__ == "__main__":
    sys.exit(main())
