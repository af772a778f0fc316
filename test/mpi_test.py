#!/usr/bin/env python3
"""Runs over MPI: the same bytes whatever the number of ranks, and whatever becomes of them.

    mpi_test.py PROGRAM CRASH_AT_LIBRARY [--cycles N] [--all]

Starts ranks on this machine with Open MPI's mpirun. N: how often a run loses a random rank (default 8). With --all every recipe
is played by 1, 2, 3, 4 and 7 ranks of one and two threads; else each by one such number in turn.
"""

import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from program import RECIPE, SHARED_MEANS, FolderTest, Program, contents, json_lines

PROGRAM = LIBRARY = None
# Launchers inherit what is blocked here, and would not hear what these tests send them.
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1})
CYCLES = 8
EVERY = '"$OMPI_COMM_WORLD_RANK"'  # rank, where a program differs on one
ALL = False
NUMBERS = [*((ranks, threads) for threads in (1, 2) for ranks in (3, 2, 7, 4)), (1, 2)]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Containers may forbid that one process reads another one's memory; ranks that wait make room for those that work.
QUIET = {
    **os.environ,
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}

# Clients of very different sizes; {} is the part that differs.
UNEVEN = """
seed = 3
[data]
name = "synthetic"
clients = 12
dimension = 6
examples = 300
calibration_fraction = 0.1
[client]
batch = 10
epochs = 2
optimizer = {{ name = "sgd", lr = 0.02, momentum = 0.9 }}
[server]
clients_per_round = 5
{server}
[[phase]]
algorithm = "fed_avg"
rounds = 2
[[phase]]
algorithm = "{algorithm}"
rounds = 5
{phase}
[evaluate]
every = 2
samples = 2
[checkpoint]
every = 2
keep = 3
{checkpoint}
"""
LAPLACE = '[phase.inference]\nname = "laplace"\nalpha = 0.02'


def uneven(algorithm, phase="", server="", checkpoint=""):
    return UNEVEN.format(algorithm=algorithm, phase=phase, server=server, checkpoint=checkpoint)


def inferred(name, **settings):
    return f'[phase.inference]\nname = "{name}"\n' + "\n".join(f"{key} = {value}" for key, value in settings.items())


# A few numbers for each client, for methods that have no chains.
TABLE = """
seed = 5
[data]
name = "regression"
clients = 7
dimension = 3
examples = 20
[server]
clients_per_round = 4
prior = {{ mean = 0.0, precision = 1.0 }}
[[phase]]
algorithm = "{algorithm}"
rounds = 4
guard = "back_off"
[phase.inference]
name = "{method}"
family = "full"
[evaluate]
samples = 3
[checkpoint]
every = 2
"""
# Exact: what is missing from q shrinks by a half in every round.
UNTIL_CONVERGED = """
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
inference = { name = "exact" }
[stop]
converged = 0.01
"""
SPARSE = SHARED_MEANS + "every = 2\nkeep = 2\n"
MOMENTUM = 'optimizer = { name = "sgd", lr = 0.5, momentum = 0.9 }'
PRIOR = "prior = { mean = 0.0, precision = 1.0 }\ndamping = \"1/K\""
AVERAGE = "average = { rounds = 3 }\n"
IVON = inferred("ivon", initial_scale=0.1, decay=0.95, samples=2)

# Every algorithm and method, both memories of factors, both grids; "toy" has exact moments. `fedep list` says whether that is so.
METHODS = {
    "scaled_identity": {"alpha": 0.02},
    "sample_moments": {"shrinkage": 0.001, "rho": 0.01, "mixin_epochs": 1},
    "laplace": {"alpha": 0.02},
    "ngvi": {"alpha": 0.02},
}
RECIPES = {
    "toy": RECIPE,
    "toy_identity": RECIPE.replace('"exact"', '"exact_identity"'),
    "fed_avg": uneven("fed_avg"),
    "fed_pa": uneven("fed_pa", "[phase.inference]\nrho = 0.01\nmixin_epochs = 1"),
    "fed_sep_laplace": uneven("fed_sep", inferred("laplace", alpha=0.02)),
    "fed_ep_full": uneven("fed_ep", inferred("laplace", family='"full"'), server="prior = { mean = 0, precision = 1 }"),
    "fed_ep_32_bits": uneven("fed_ep", LAPLACE, server="grid_bits = 32"),
    "fed_ep_on_disk": uneven("fed_ep", LAPLACE, checkpoint='sites = "disk"'),
    "fed_ep_not_saved": uneven("fed_ep", LAPLACE, checkpoint="factors = false"),
    "fed_ep_momentum": uneven("fed_ep", LAPLACE, server=MOMENTUM),
    "fed_ep_factor_clock": uneven("fed_ep", 'factor_clock = "round"\n' + LAPLACE, server=MOMENTUM),
    "fed_ep_average": uneven("fed_ep", AVERAGE + 'hand_over = "average"\n' + LAPLACE).replace("rounds = 2\n", "rounds = 2\n" + AVERAGE),
    "fed_ep_curvature": uneven("fed_ep", 'curvature = "full"\n' + LAPLACE),
    **{f"fed_ep_{name}": uneven("fed_ep", inferred(name, **settings)) for name, settings in METHODS.items()},
    "fed_prox": uneven("fed_prox", "mu = 0.1"),
    "fed_dyn": uneven("fed_dyn", "mu = 0.1"),
    "pvi": uneven("pvi", inferred("ngvi", alpha=0.02), server=PRIOR),
    "fed_lap": uneven("fed_lap", inferred("map"), server=PRIOR),
    "fed_lap_cov": uneven("fed_lap_cov", 'guard = "back_off"\n' + inferred("laplace", alpha=0.02), server=PRIOR),
    "bayes_admm": uneven("bayes_admm", 'penalty = 1.0\ndual_rate = 0.3\nguard = "back_off"\n' + IVON, server=PRIOR),
    "fed_ivon": uneven("fed_ivon", IVON, server=PRIOR),
    "fed_ep_ivon": uneven("fed_ep", 'guard = "back_off"\n' + IVON, server=PRIOR),
    "fed_ep_quadrature": TABLE.format(algorithm="fed_ep", method="quadrature"),
    "fed_ep_hmc": TABLE.format(algorithm="fed_ep", method="hmc"),
    "fed_sep_full_ngvi": TABLE.format(algorithm="fed_sep", method="ngvi"),
    "until_converged": UNTIL_CONVERGED,
    "shared_means": SPARSE,
    "shared_means_on_disk": SPARSE + 'sites = "disk"\n',
    "sparse_laplace": SPARSE.replace('inference = { name = "scaled_identity"', 'factors = "flat"\ninference = { name = "laplace"'),
}


def play(ranks, *arguments, program=None, env=QUIET, **options):
    return subprocess.run(over(ranks, *arguments, program=program), capture_output=True, text=True, timeout=300, env=env, **options)


def over(ranks, *arguments, program=None):
    return [*MPIRUN, "-n", str(ranks), str(program or PROGRAM.path), *map(str, arguments)]


def own_lines(done):
    """What the program said of an error, not its launcher."""
    return [line for line in done.stderr.splitlines() if line.startswith("fedep: ")]


def wait_for(test, happened, launcher):
    end = time.monotonic() + 120
    while not happened():
        test.assertIsNone(launcher.poll(), "the run ended first")
        test.assertLess(time.monotonic(), end)
        time.sleep(0.01)


def text_in(file):
    return file.read_text() if file.exists() else ""


class RanksTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.runs = 0

    def assert_stops(self, launcher, number):
        """The launcher passes a signal on, and all ranks stop after their round. Leaves none behind."""
        launcher.send_signal(number)
        try:
            _, errors = launcher.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            launcher.kill()
            _, errors = launcher.communicate()
            self.fail(f"the run went on for two minutes: {errors}")
        self.assertEqual(launcher.returncode, 130, errors)
        return errors

    def ranks_of(self, launcher):
        """Process ids of what a launcher started."""
        found = []
        for task in Path(f"/proc/{launcher.pid}/task").iterdir():
            found += [int(pid) for pid in (task / "children").read_text().split()]
        return [pid for pid in found if str(PROGRAM.path) in Path(f"/proc/{pid}/cmdline").read_text()]

    def recipe(self, text):
        file = self.folder / "recipe.toml"
        file.write_text(text)
        return file

    def new_run(self):
        self.runs += 1
        return self.folder / f"run-{self.runs}"

    def alone(self, recipe, *more):
        out = self.new_run()
        self.assert_finishes(PROGRAM.run("run", recipe, "--out", out, *more))
        return contents(out)

    def differing(self, script, rank=1):
        """A program that does something else on one rank."""
        file = self.folder / "fedep"
        file.write_text(f'#!/bin/bash\nif [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then\n{script}\nfi\nexec {PROGRAM.path} "$@"\n')
        file.chmod(0o755)
        return file

    def crashing(self, out, rank, **settings):
        """A program whose calls below a folder crash_at.cpp counts or breaks, on one rank."""
        exported = " ".join(f"CRASH_{name}={value}" for name, value in {"FOLDER": out, **settings}.items())
        return self.differing(f"export {exported} LD_PRELOAD={LIBRARY}", rank)

    def resume(self, ranks, recipe, out, *more):
        """Goes on, or begins again where nothing had begun."""
        arguments = ["run", recipe, "--out", out, *more, *(["--resume"] if (out / "recipe.toml").exists() else [])]
        return PROGRAM.run(*arguments) if ranks == 1 else play(ranks, *arguments)

    def assert_told_at_once_and_in_the_end(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        at_once, in_the_end = own_lines(done)
        self.assert_says(at_once, *words)
        self.assertEqual(at_once, in_the_end + "; other runs are left alone")

    def assert_refused(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(own_lines(done)), 1, done.stderr)
        self.assert_says(own_lines(done)[0], *words)


class SameBits(RanksTest):
    def check(self, name, ranks, threads):
        with self.subTest(recipe=name, ranks=ranks, threads=threads):
            out = self.new_run()
            done = play(ranks, "run", self.recipe(RECIPES[name]), "--out", out, "--threads", threads)
            self.assert_finishes(done)
            self.assertEqual(contents(out), self.expected[name])
            self.assertEqual(done.stderr.count("run is in"), 1, "one rank speaks")
            shutil.rmtree(out)

    def assert_recipes_are_what_they_are_called(self):
        self.assertLess(self.expected["until_converged"][1][-1]["rounds"], 40)
        self.assertIn("curvature.safetensors", self.expected["fed_ep_curvature"][0])
        self.assertIn("nll_average", self.expected["fed_ep_average"][1][-2])
        self.assertFalse(any(name.endswith(".site") for name in self.expected["fed_ep_not_saved"][0]))
        # The sites are 12 clients' at most; what is more are means.
        sites = {name: sum(file.endswith(".site") for file in files) for name, (files, _) in self.expected.items()}
        self.assertLessEqual(sites["sparse_laplace"], 2 * 12)
        self.assertGreater(sites["shared_means"], sites["sparse_laplace"])

    def test_whatever_the_number_of_ranks_and_threads(self):
        self.expected = {"fed_ep_laplace": self.alone(self.recipe(RECIPES["fed_ep_laplace"]))}
        self.assertTrue(any(name.endswith(".site") for name in self.expected["fed_ep_laplace"][0]))
        for ranks in (1, 2, 3, 4, 7):
            for threads in (1, 2):
                self.check("fed_ep_laplace", ranks, threads)

    def test_whatever_is_played(self):
        self.expected = {name: self.alone(self.recipe(text)) for name, text in RECIPES.items()}
        self.assert_recipes_are_what_they_are_called()
        for i, name in enumerate(RECIPES):
            for ranks, threads in [(1, 1), *NUMBERS] if ALL else NUMBERS[i % len(NUMBERS) :][:1]:
                self.check(name, ranks, threads)

    def test_every_algorithm_and_method_is_played(self):
        listed = PROGRAM.run("list").stdout
        played = "\n".join(RECIPES.values())
        for kind in ("algorithms", "inference"):
            names = re.search(rf"(?ms)^{kind}[^\n]*\n((?:  [^\n]*\n)+)", listed)[1]
            for name in re.findall(r"(?m)^  (\w+)", names):
                self.assertIn(f'"{name}"', played)

    def test_with_a_folder_that_need_not_outlive_the_job(self):
        scratch = self.folder / "scratch"
        scratch.mkdir()
        for name in ("shared_means_on_disk", "fed_ep_on_disk"):
            recipe = self.recipe(RECIPES[name])
            expected = self.alone(recipe)
            for ranks in (1, 3):
                with self.subTest(recipe=name, ranks=ranks):
                    out = self.new_run()
                    arguments = ["run", recipe, "--out", out, "--scratch", scratch]
                    self.assert_finishes(play(ranks, *arguments) if ranks > 1 else PROGRAM.run(*arguments))
                    self.assertEqual(contents(out), expected)
                    self.assertEqual(list(scratch.iterdir()), [])
        done = play(2, "run", recipe, "--out", self.new_run(), "--scratch", self.folder / "nowhere")
        self.assert_refused(done, 2, "rank 0", "--scratch", "must be a folder to write to")


# What is lost with a rank differs with where factors are and what they hold: recipes, whether with --scratch, and what makes
# the run long enough to be killed in the middle. Means of q are shared by more clients than there are rounds.
LONG = ("phase.1.rounds=60", "checkpoint.every=5", "checkpoint.keep=2")
MANY = ("data.clients=300", "phase.1.rounds=200", *LONG[1:])
KILLED = [
    ("fed_ep_laplace", False, LONG),
    ("fed_ep_on_disk", False, LONG),
    ("fed_ep_not_saved", False, LONG),
    ("shared_means", False, MANY),
    ("fed_ep_factor_clock", False, LONG),
    ("fed_ep_full", False, LONG),
    ("fed_ep_on_disk", True, LONG),
    ("shared_means_on_disk", True, MANY),
]


class Lost(RanksTest):
    """Runs that end before their time, and go on with another number of ranks or with none."""

    def begin(self, ranks, recipe, out, *more):
        return subprocess.Popen(
            over(ranks, "run", recipe, "--out", out, *more),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET,
        )

    def assert_gone(self, pids):
        end = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            self.assertLess(time.monotonic(), end, "a rank is left behind")
            time.sleep(0.05)

    def rounds_in(self, out):
        log = out / "log.jsonl"
        return log.read_text().count('"round"') if log.exists() else 0

    def long_recipe(self):
        return self.recipe(
            uneven("fed_ep", LAPLACE).replace("rounds = 5", "rounds = 60").replace("every = 2\nkeep = 3", "every = 5\nkeep = 2")
        )

    def test_ranks_that_are_killed_lose_nothing_that_was_saved(self):
        dice = random.Random(21)
        expected = {}
        for cycle in range(CYCLES):
            name, scratch, settings = KILLED[cycle % len(KILLED)]
            recipe, out = self.recipe(RECIPES[name]), self.new_run()
            more = [word for setting in settings for word in ("--set", setting)]
            if name not in expected:
                expected[name] = self.alone(recipe, *more)
            more += ["--scratch", self.scratch()] if scratch else []
            ranks, threads, after = dice.choice((2, 3, 4)), dice.choice((1, 2)), dice.randrange(1, 50)
            other = dice.choice([n for n in (1, 2, 3, 5) if n != ranks])
            with self.subTest(cycle=cycle, recipe=name, scratch=scratch, ranks=ranks, threads=threads, after=after, then=other):
                launcher = self.begin(ranks, recipe, out, *more, "--threads", threads)
                wait_for(self, lambda: self.rounds_in(out) >= after, launcher)
                victims = self.ranks_of(launcher)
                self.assertEqual(len(victims), ranks)
                os.kill(dice.choice(victims), signal.SIGKILL)
                launcher.communicate(timeout=60)
                self.assertNotEqual(launcher.returncode, 0)
                self.assert_gone(victims)
                self.assert_finishes(self.resume(other, recipe, out, *more))
                self.assertEqual(contents(out), expected[name])
            shutil.rmtree(out)

    def test_a_rank_that_dies_in_any_of_its_calls_loses_nothing_that_was_saved(self):
        """Rank 0 writes log and checkpoints, the others the factors that they have."""
        some = ("fed_ep_laplace", "fed_ep_on_disk", "shared_means")
        for name in [name for name, scratch, _ in KILLED if not scratch] if ALL else some:
            recipe = self.recipe(RECIPES[name])
            expected = self.alone(recipe)
            for rank in (0, 1):
                calls = self.calls_of(rank, recipe)
                kills = 20 if ALL else 2
                for i, call in enumerate(sorted({1 + calls * (2 * k + 1) // (2 * kills) for k in range(kills)})):
                    how, then = ("after", "before")[i % 2], (1, 2, 4)[(i + rank) % 3]
                    with self.subTest(recipe=name, rank=rank, call=call, of=calls, how=how, then=then):
                        out = self.new_run()
                        done = play(3, "run", recipe, "--out", out, program=self.crashing(out, rank, AT=call, HOW=how))
                        self.assertNotIn(done.returncode, (0, 3), "nobody died")
                        self.assert_finishes(self.resume(then, recipe, out))
                        self.assertEqual(contents(out), expected)
                        shutil.rmtree(out)

    def calls_of(self, rank, recipe):
        """By which one of three ranks changes files of a run's directory, or opens them; two less than that, since which rank
        makes a folder is a matter of chance."""
        out, count = self.new_run(), self.folder / "calls"
        self.assert_finishes(play(3, "run", recipe, "--out", out, program=self.crashing(out, rank, COUNT=count)))
        calls = int(count.read_text()) - 2
        self.assertGreater(calls, 0)
        return calls

    def scratch(self):
        folder = self.folder / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def test_a_signal_stops_all_after_a_round_and_a_second_changes_nothing(self):
        recipe = self.long_recipe()
        expected = self.alone(recipe)
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                out = self.new_run()
                launcher = self.begin(3, recipe, out)
                wait_for(self, lambda: self.rounds_in(out) >= 3, launcher)
                one = self.ranks_of(launcher)[2]
                os.kill(one, number)
                try:
                    os.kill(one, number)
                except ProcessLookupError:
                    pass  # it was that fast
                _, errors = launcher.communicate(timeout=60)
                self.assertEqual(launcher.returncode, 130, errors)
                self.assertIn("stopped after round", errors)
                self.assertLess(self.rounds_in(out), 62)
                self.assert_finishes(play(2, "run", recipe, "--out", out, "--resume"))
                self.assertEqual(contents(out), expected)

    def test_a_launcher_that_dies_leaves_no_rank_behind(self):
        recipe = self.long_recipe()
        out = self.new_run()
        launcher = self.begin(2, recipe, out)
        wait_for(self, lambda: self.rounds_in(out) >= 2, launcher)
        ranks = self.ranks_of(launcher)
        launcher.kill()
        launcher.communicate(timeout=60)
        self.assert_gone(ranks)
        self.assert_finishes(PROGRAM.run("run", recipe, "--out", out, "--resume"))
        self.assertEqual(contents(out), self.alone(recipe))


class TableTest(RanksTest):
    """A table of three rows, two of which share their burn-in."""

    ROW = """
table = "trial"
row = "{row}"
[data]
name = "synthetic"
clients = 6
dimension = 5
examples = 30
[server]
clients_per_round = 4
[[phase]]
algorithm = "fed_avg"
rounds = 6
{more}
[checkpoint]
every = 4
"""
    SECOND = '[[phase]]\nalgorithm = "fed_ep"\nrounds = 5\n[phase.inference]\nname = "laplace"\nalpha = 0.02'

    # Its round of curvature takes far longer than all else.
    CURVED = """
[data]
name = "synthetic"
clients = 300
dimension = 60
examples = 100
[server]
clients_per_round = 4
prior = { mean = 0.0, precision = 1.0 }
[[phase]]
algorithm = "fed_ep"
rounds = 1
curvature = "full"
[phase.inference]
name = "laplace"
family = "diagonal"
"""

    def setUp(self):
        super().setUp()
        recipes = self.folder / "recipe"
        recipes.mkdir()
        for row in ("fed_avg", "fed_ep_a", "fed_ep_b"):
            text = self.ROW.format(row=row, more="" if row == "fed_avg" else self.SECOND)
            (recipes / f"{row}.toml").write_text(text.replace("0.02", "0.03") if row == "fed_ep_b" else text)

    def play_table(self, folder, ranks, *more, program=None):
        (folder / "result").mkdir(parents=True, exist_ok=True)
        results = folder / "result/results.jsonl"
        where = ["--recipes", "../recipe", "--out", folder / "run", "--results", results]
        arguments = ["reproduce", "trial", *where, "--seeds", "1,2", *more]
        return play(ranks, *arguments, cwd=folder, program=program) if ranks else PROGRAM.run(*arguments, cwd=folder)

    def reproduce(self, name, ranks=0, *more):
        folder = self.folder / name
        done = self.play_table(folder, ranks, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in (folder / "result/results.jsonl").read_text().splitlines()]
        for line in lines:
            for key in ("seconds", "device", "date"):
                line.pop(key)
        runs = sorted(path for path in (folder / "run").iterdir() if path.name != "burn-in")
        self.assertTrue(any((folder / "run/burn-in").iterdir()), "rows share their burn-in")
        return done, sorted(lines, key=str), {run.name: contents(run)[0] for run in runs}

    def scores(self, done):
        """The printed table without what it says of the machine and its time."""
        return [line.split(" | ")[:-1] for line in done.stdout.splitlines()]


class Dealt(TableTest):
    """Runs that have nothing to do with each other: tables and sweeps."""

    def test_a_table_has_the_bytes_and_lines_of_one_process(self):
        alone, lines, runs = self.reproduce("alone")
        self.assertEqual(len(lines), 6)
        for ranks, more in ((3, ()), (4, ("--ranks-per-run", 2)), (3, ("--ranks-per-run", 2))):
            with self.subTest(ranks=ranks, more=more):
                done, told, played = self.reproduce(f"ranks-{ranks}-{len(more)}", ranks, *more)
                self.assertEqual(played, runs)
                self.assertEqual(told, lines)
                self.assertEqual(self.scores(done), self.scores(alone))
                # What is there is neither played nor added again.
                again, told, played = self.reproduce(f"ranks-{ranks}-{len(more)}", ranks, *more)
                self.assertEqual((told, played, self.scores(again)), (lines, runs, self.scores(alone)))
                self.assertNotIn("rounds/s", again.stderr)

    def test_a_sweep_has_the_numbers_of_one_process(self):
        arguments = ["sweep", self.recipe(RECIPES["fed_ep_laplace"]), "--grid", "client.epochs=1,2", "--seeds", "1,2,3", "--json"]
        def numbers(done):
            self.assertEqual(done.returncode, 0, done.stderr)
            table = json.loads(done.stdout)
            for cell in table["cells"]:
                for run in cell["runs"]:
                    run.pop("run")
            return table
        alone = numbers(PROGRAM.run(*arguments, "--out", self.new_run()))
        self.assertEqual(numbers(play(4, *arguments, "--out", self.new_run())), alone)
        self.assertEqual(numbers(play(4, *arguments, "--ranks-per-run", 3, "--out", self.new_run())), alone)
        done = play(2, *arguments, "--ranks-per-run", 3, "--out", self.new_run())
        self.assert_refused(done, 2, "--ranks-per-run must be at most 2")

    def test_runs_that_are_stopped_go_on(self):
        recipe = self.recipe(uneven("fed_ep", LAPLACE).replace("rounds = 5", "rounds = 150"))
        arguments = ["sweep", recipe, "--seeds", "1,2,3,4", "--json"]
        alone = self.new_run()
        self.assertEqual(PROGRAM.run(*arguments, "--out", alone).returncode, 0)
        out = self.new_run()
        launcher = subprocess.Popen(
            over(2, *arguments, "--out", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET
        )
        wait_for(self, lambda: len(list(out.rglob("log.jsonl"))) >= 2, launcher)
        self.assert_stops(launcher, signal.SIGUSR1)
        self.assertFalse((out / "sweep.json").exists())
        self.assertEqual(play(3, *arguments, "--out", out).returncode, 0)
        logs = sorted(alone.rglob("log.jsonl"))
        self.assertEqual(len(logs), 4)
        for log in logs:
            self.assertEqual(contents(out / log.parent.relative_to(alone)), contents(log.parent))

    def test_a_run_that_fails_leaves_the_others_alone(self):
        arguments = ["sweep", self.recipe(RECIPES["fed_ep_laplace"]), "--seeds", "1,2,3,4,5", "--json"]
        alone, out = self.new_run(), self.new_run()
        self.assertEqual(PROGRAM.run(*arguments, "--out", alone).returncode, 0)
        runs = {log.parent.name: contents(log.parent) for log in alone.rglob("log.jsonl")}
        program = self.crashing(out / "seed-2", EVERY, AT=20, HOW="ENOSPC")
        done = play(2, *arguments, "--out", out, program=program)
        self.assert_told_at_once_and_in_the_end(done, 1, "rank ", "recipe, seed 2: ", "No space left on device")
        self.assertEqual(done.stdout, "")
        self.assertFalse((out / "sweep.json").exists())
        for seed in (1, 3, 4, 5):
            self.assertEqual(contents(out / f"seed-{seed}"), runs[f"seed-{seed}"])
        self.assertEqual(play(2, *arguments, "--out", out).returncode, 0)
        self.assertEqual(contents(out / "seed-2"), runs["seed-2"])

    def test_a_run_that_fails_for_one_of_a_group_ends_all(self):
        out = self.new_run()
        arguments = ["sweep", self.recipe(RECIPES["fed_ep_laplace"]), "--seeds", "1,2,3", "--out", out, "--ranks-per-run", 2]
        done = play(2, *arguments, program=self.crashing(out / "seed-2/sites", 1, AT=3, HOW="ENOSPC"))
        self.assert_refused(done, 1, "rank 1 on", "No space left on device")
        self.assertTrue((out / "seed-2").exists())
        self.assertFalse((out / "seed-3").exists())
        self.assertEqual(play(2, *arguments).returncode, 0)

    def test_a_row_that_fails_leaves_the_others_alone(self):
        _, lines, runs = self.reproduce("alone")
        folder = self.folder / "failed"
        row = next(name for name in runs if "fed_ep_a" in name)
        done = self.play_table(folder, 2, program=self.crashing(folder / "run" / row, EVERY, AT=20, HOW="EIO"))
        self.assert_told_at_once_and_in_the_end(done, 1, "rank ", "fed_ep_a, seed ", "Input/output error")
        results = folder / "result/results.jsonl"
        self.assertEqual(len(json_lines(results)), 5)
        _, told, played = self.reproduce(folder.name, 3)
        self.assertEqual(played, runs)
        self.assertEqual(told, lines)

    def test_a_rank_that_is_told_by_itself_to_stop_stops_alone(self):
        recipe = self.recipe(uneven("fed_ep", LAPLACE).replace("rounds = 5", "rounds = 300"))
        arguments = ["sweep", recipe, "--seeds", "1,2", "--out", self.new_run()]
        launcher = subprocess.Popen(over(2, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET)
        logs = [arguments[-1] / f"seed-{seed}/log.jsonl" for seed in (1, 2)]
        wait_for(self, lambda: all(text_in(log).count('"round"') >= 3 for log in logs), launcher)
        os.kill(self.ranks_of(launcher)[0], signal.SIGUSR1)
        _, errors = launcher.communicate(timeout=120)
        self.assertEqual(launcher.returncode, 130, errors)
        self.assertEqual(sum('"kind":"end"' in log.read_text() for log in logs), 1)
        self.assertEqual(play(2, *arguments).returncode, 0)

    def test_a_group_that_is_stopped_in_the_round_of_curvature_stops_together(self):
        recipe = self.recipe(self.CURVED)
        arguments = ["sweep", recipe, "--seeds", "1,2", "--ranks-per-run", "2"]
        out = self.new_run()
        launcher = subprocess.Popen(
            over(2, *arguments, "--out", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET
        )
        first = out / "seed-1"
        wait_for(self, lambda: '"end"' in text_in(first / "log.jsonl"), launcher)
        self.assertIn("stopped after round 1", self.assert_stops(launcher, signal.SIGUSR1))
        self.assertFalse((first / "curvature.safetensors").exists(), "it was stopped there")
        self.assertFalse((out / "seed-2").exists(), "no run begins after that")
        self.assertEqual(play(2, *arguments, "--out", out).returncode, 0)
        self.assertEqual(len(list(out.rglob("curvature.safetensors"))), 2)

    def test_lines_of_results_that_were_cut_off_are_added_in_the_end(self):
        """Rank 0 has no locks, so that its lines are there first; what another rank then does to them is done here."""
        folder = self.folder / "results"
        results = folder / "result/results.jsonl"
        results.parent.mkdir(parents=True)
        program = self.differing(f"export CRASH_NO_LOCKS=1 LD_PRELOAD={LIBRARY}", rank=0)
        arguments = ["reproduce", "trial", "--recipes", "../recipe", "--seeds", "1,2", "--out", "run", "--no-shared-burn-in"]
        with open(results, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            launcher = subprocess.Popen(
                over(2, *arguments, program=program), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET
            )
            wait_for(self, lambda: results.read_text().count("\n") == 3, launcher)
            os.truncate(results, 0)
        _, errors = launcher.communicate(timeout=120)
        self.assertEqual(launcher.returncode, 0, errors)
        rows = [(line["row"], line["seed"]) for line in json_lines(results)]
        self.assertEqual(sorted(rows), [(row, seed) for row in ("fed_avg", "fed_ep_a", "fed_ep_b") for seed in (1, 2)])


class Repeated(TableTest):
    """Commands that are given again: after a kill, and where nothing is left to do."""

    def test_a_run_that_is_over_stays_as_it_is(self):
        for name in ("fed_ep_laplace", "shared_means_on_disk", "fed_ep_curvature", "until_converged"):
            recipe, out = self.recipe(RECIPES[name]), self.new_run()
            first = play(2, "run", recipe, "--out", out)
            self.assert_finishes(first)
            there = contents(out)[0], (out / "log.jsonl").read_bytes()
            for ranks in (3, 1, 2):
                with self.subTest(recipe=name, ranks=ranks):
                    again = self.resume(ranks, recipe, out)
                    self.assertEqual((again.returncode, again.stdout), (first.returncode, first.stdout), again.stderr)
                    self.assertEqual((contents(out)[0], (out / "log.jsonl").read_bytes()), there)

    def test_a_table_whose_ranks_were_killed_ends_in_its_bytes_and_lines(self):
        alone, lines, runs = self.reproduce("alone")
        kills = [(3, 1, 30, 2, ()), (2, 0, 60, 3, ()), (4, 2, 45, 0, ("--ranks-per-run", 2)), (4, 1, 12, 3, ("--ranks-per-run", 2))]
        for number, (ranks, rank, call, then, more) in enumerate(kills):
            with self.subTest(ranks=ranks, rank=rank, call=call, then=then, more=more):
                folder = self.folder / f"killed-{number}"
                program = self.crashing(folder, rank, AT=call, HOW=("before", "after")[number % 2])
                self.assertNotIn(self.play_table(folder, ranks, *more, program=program).returncode, (0, 3), "nobody died")
                done, told, played = self.reproduce(folder.name, then, *(more if then else ()))
                self.assertEqual(played, runs)
                self.assertEqual(told, lines)
                self.assertEqual(self.scores(done), self.scores(alone))

    def test_a_table_killed_while_a_line_is_added_has_each_line_once(self):
        _, lines, runs = self.reproduce("alone")
        for rank, call, how in ((0, 2, "before"), (1, 2, "before"), (1, 2, "after"), (0, 3, "after")):
            with self.subTest(rank=rank, call=call, how=how):
                folder = self.folder / f"line-{rank}-{call}-{how}"
                program = self.crashing(folder / "result", rank, AT=call, HOW=how)
                self.assertNotIn(self.play_table(folder, 3, program=program).returncode, (0, 3), "nobody died")
                _, told, played = self.reproduce(folder.name, 2)
                self.assertEqual(played, runs)
                self.assertEqual(told, lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("--cycles", type=int, default=CYCLES)
    parser.add_argument("--all", action="store_true")
    known, rest = parser.parse_known_args()
    PROGRAM, LIBRARY = Program(known.program), known.library.resolve()
    CYCLES, ALL = known.cycles, known.all
    unittest.main(argv=[sys.argv[0], *rest])
