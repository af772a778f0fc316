#!/usr/bin/env python3
"""The fedep program as a user meets it: whatever goes wrong ends in one clear line that names the thing, in the right
exit code (2 bad usage or input, 1 the world failed), and with nothing half-written.

    cli_test.py PROGRAM
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import RECIPE, ROUNDS, FolderTest, Program, contents, state

PROGRAM = None


class CliTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(RECIPE)
        self.out = self.folder / "run"

    def run_recipe(self, *extra, out=None, **options):
        return PROGRAM.run("run", self.recipe, "--out", out or self.out, *extra, **options)


class Usage(CliTest):
    def test_without_a_command_is_refused(self):
        self.assert_one_line(PROGRAM.run(), 2, "subcommand is required", "--help")

    def test_an_unknown_command_or_option_is_named(self):
        self.assert_one_line(PROGRAM.run("rum"), 2, "unknown command rum", "did you mean run?")
        self.assert_one_line(PROGRAM.run("frobnicate", self.recipe), 2, "frobnicate", "known: toy, check, run")
        self.assert_one_line(PROGRAM.run("--verison"), 2, "--verison", "--version")
        for command in ("toy", "check", "run", "list"):
            done = PROGRAM.run(command, "--frob")
            self.assert_one_line(done, 2, "fedep " + command + " --help")
        self.assert_one_line(PROGRAM.run("run", self.recipe, "--treads", 3), 2, "--treads")
        self.assert_one_line(PROGRAM.run("run", self.recipe, "another.toml"), 2, "another.toml")
        self.assert_one_line(PROGRAM.run("run"), 2, "recipe is required")

    def test_a_number_out_of_range_is_named(self):
        for option, value in (
            ("--threads", "0"),
            ("--threads", "-3"),
            ("--threads", "many"),
            ("--threads", "2.5"),
            ("--threads", "1000000000"),
            ("--rounds", "0"),
            ("--rounds", "-1"),
            ("--rounds", "99999999999999999999"),
            ("--seed", "-1"),
            ("--seed", "one"),
            ("--seed", "18446744073709551615"),
        ):
            with self.subTest(option=option, value=value):
                self.assert_one_line(self.run_recipe(f"{option}={value}"), 2, option, value)
                self.assertFalse(self.out.exists())
        self.assert_one_line(self.run_recipe("--threads"), 2, "--threads")

    def test_help_and_version_are_results(self):
        for arguments in (["--help"], ["run", "--help"], ["toy", "--help"]):
            done = self.assert_succeeds(PROGRAM.run(*arguments))
            self.assertIn("--help", done.stdout)
            self.assertEqual(done.stderr, "")
        done = self.assert_succeeds(PROGRAM.run("--version"))
        self.assertRegex(done.stdout, r"^fedep \d+\.\d+\.\d+ \(.*cores\)\n$")

    def test_lists_names_and_refuses_unknown_lists(self):
        everything = self.assert_succeeds(PROGRAM.run("list")).stdout
        for what, names in (
            ("algorithms", ("fed_avg", "fed_pa", "fed_ep", "fed_sep")),
            ("optimizers", ("sgd", "adagrad", "adam", "yogi")),
        ):
            listed = self.assert_succeeds(PROGRAM.run("list", what)).stdout
            self.assertIn(listed, everything)
            self.assertEqual(listed.splitlines()[0], what)
            self.assertEqual([line.split()[0] for line in listed.splitlines()[1:]], list(names))
        self.assert_one_line(PROGRAM.run("list", "algoritms"), 2, "algoritms", "did you mean algorithms?")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_results_that_cannot_be_printed_are_a_failure(self):
        for arguments in (["list"], ["toy", "--trials", "2", "--json"], ["check", self.recipe]):
            with open("/dev/full", "w") as full:
                done = subprocess.run(
                    [PROGRAM.path, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
                )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assert_says(done.stderr.splitlines()[-1], "standard output", "No space left")


class Recipes(CliTest):
    def assert_refused(self, *words):
        """By check and by run alike, before anything is written."""
        self.assert_one_line(PROGRAM.run("check", self.recipe), 2, *words)
        self.assert_one_line(self.run_recipe(), 2, *words)
        self.assertFalse(self.out.exists())

    def assert_change_refused(self, old, new, *words):
        with self.subTest(change=new):
            self.assertIn(old, RECIPE)
            self.recipe.write_text(RECIPE.replace(old, new))
            self.assert_refused(*words)

    def test_a_missing_file_is_named(self):
        self.recipe.unlink()
        self.assert_refused(self.recipe, "No such file")

    def test_a_directory_is_not_a_recipe(self):
        self.recipe.unlink()
        self.recipe.mkdir()
        self.assert_refused(self.recipe, "directory")

    def test_a_syntax_error_has_its_line(self):
        self.recipe.write_text("seed = 1\n[data\n")
        self.assert_refused(f"{self.recipe}:2:")
        self.recipe.write_bytes(b"\xff\xfe\x00")
        self.assert_refused(f"{self.recipe}:1:")
        self.recipe.write_text("")
        self.assert_refused(self.recipe, "missing")

    def test_a_misspelt_key_gets_a_suggestion(self):
        self.assert_change_refused("clients_per_round", "client_per_round", "did you mean server.clients_per_round?")
        self.assert_change_refused("rounds = 8", "round = 8", "phase.1.round", "did you mean phase.1.rounds?")
        self.assert_change_refused("[server]", "[sever]", "sever", "did you mean server?")
        self.assert_change_refused("lr = 0.5", "learning = 0.5", "server.optimizer.learning", f"{self.recipe}:11")

    def test_an_unknown_name_gets_a_suggestion(self):
        self.assert_change_refused('"fed_ep"', '"fed_eq"', "fed_eq", "did you mean fed_ep?")
        self.assert_change_refused('"sgd"', '"sdg"', "sdg", "did you mean sgd?")
        self.assert_change_refused('"exact"', '"exakt"', "exakt", "did you mean exact?")
        self.assert_change_refused('"toy"', '"tay"', "tay", "did you mean toy?")
        self.assert_change_refused("[server]", '[client]\noptimizer = { name = "adan" }\n[server]', "adan", "adam")
        self.assert_change_refused("every = 3", 'every = 3\nsites = "disc"', "disc", "did you mean disk?")

    def test_a_value_out_of_range_is_named(self):
        self.assert_change_refused("precision = 0.25", "precision = -0.25", "server.prior.precision", "-0.25")
        self.assert_change_refused("lr = 0.5", "lr = -0.5", "server.optimizer.lr", "positive", "-0.5")
        self.assert_change_refused("lr = 0.5", "lr = nan", "server.optimizer.lr", "finite", "nan")
        self.assert_change_refused("lr = 0.5", 'lr = "half"', "server.optimizer.lr", "a number", "half")
        self.assert_change_refused("momentum = 0.5", "momentum = 1", "server.optimizer.momentum")
        self.assert_change_refused("seed = 7", "seed = -7", "seed", "-7")
        self.assert_change_refused("rounds = 4", "rounds = 0", "phase.0.rounds", "at least 1")
        self.assert_change_refused("rounds = 4", "rounds = 1.5", "phase.0.rounds", "an integer", "1.5")
        self.assert_change_refused("clients_per_round = 4", "clients_per_round = 0", "server.clients_per_round")
        self.assert_change_refused("clients_per_round = 4", "clients_per_round = 10", "clients_per_round", "9", "10")
        self.assert_change_refused("every = 3", "every = -1", "checkpoint.every", "-1")
        self.assert_change_refused('name = "exact"', "", "phase.1.inference.name")
        self.assert_change_refused('[phase.inference]\nname = "exact"', "", "fed_ep", "inference")

    def test_an_override_is_named_where_it_is_wrong(self):
        for override, *words in (
            ("seed", "section.key=value"),
            ("=3", "section.key=value"),
            ("seed=", "expected a value"),
            ("server.optimizer.lr=-1", "must be positive"),
            ("server.clients_per_rond=3", "did you mean server.clients_per_round?"),
            ("phase.2.rounds=3", "phases are 0 to 1"),
            ("seed.x=3", "not a table"),
            ("phase.1.algorithm=fed_epp", "did you mean fed_ep?"),
        ):
            with self.subTest(override=override):
                self.assert_one_line(self.run_recipe("--set", override), 2, f"--set {override}", *words)
                self.assertFalse(self.out.exists())

    def test_check_prints_every_setting_as_a_recipe_that_check_accepts(self):
        done = self.assert_succeeds(PROGRAM.run("check", self.recipe, "--seed", 11, "--set", "checkpoint.keep=2"))
        for line in ("seed = 11", "clients_per_round = 4", "keep = 2", 'sites = "memory"', "grid_bits = 32"):
            self.assertIn(line, done.stdout.splitlines())
        self.assertIn("9 clients", done.stderr)
        printed = self.folder / "printed.toml"
        printed.write_text(done.stdout)
        self.assertEqual(self.assert_succeeds(PROGRAM.run("check", printed)).stdout, done.stdout)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["printed.toml", "recipe.toml"])

    def test_check_prints_what_a_run_writes_down(self):
        printed = self.assert_succeeds(PROGRAM.run("check", self.recipe)).stdout
        self.assert_succeeds(self.run_recipe())
        self.assertEqual((self.out / "recipe.toml").read_text(), printed)


class RunDirectories(CliTest):
    def assert_untouched(self, done, code, *words):
        """Refused with one line, and the directory is as `before` was taken."""
        self.assert_one_line(done, code, *words)
        self.assertEqual(state(self.out), self.before)

    def half_run(self):
        """A run that stopped after 7 of its rounds, with checkpoints of round 6 and 7."""
        self.assert_succeeds(self.run_recipe("--rounds", 7, "--set", "checkpoint.keep=2"))
        self.resume = ["--resume", "--set", "checkpoint.keep=2"]
        self.expected_out = self.folder / "whole"
        self.assert_succeeds(self.run_recipe("--set", "checkpoint.keep=2", out=self.expected_out))
        # A resumed run writes its recipe, with all its rounds, before it looks further.
        shutil.copy(self.expected_out / "recipe.toml", self.out / "recipe.toml")
        self.before = state(self.out)

    def test_a_run_leaves_what_it_says(self):
        done = self.assert_succeeds(self.run_recipe())
        self.assertRegex(done.stdout, r"^distance \S+\n$")
        self.assertIn(f"run is in {self.out}", done.stderr)
        files, lines = contents(self.out)
        self.assertEqual([n for n in files if "/" not in n], [f"checkpoint-{ROUNDS}.safetensors", "recipe.toml"])
        self.assertEqual([line["kind"] for line in lines], ["run"] + ["round"] * ROUNDS + ["end"])
        self.assertEqual([line["round"] for line in lines[1:-1]], list(range(ROUNDS)))
        self.assertEqual([line["phase"] for line in lines[1:-1]], ["fed_avg"] * 4 + ["fed_ep"] * 8)
        self.assertEqual([("distance" in line) for line in lines[1:-1]], [False, True] * 6)

    def test_a_directory_with_a_run_is_not_written_over(self):
        self.assert_succeeds(self.run_recipe())
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(), 2, self.out, "--resume", "--out")

    def test_a_file_is_not_a_directory(self):
        self.out.write_text("a file")
        self.assert_one_line(self.run_recipe(), 1, self.out, "Not a directory")
        self.assert_one_line(self.run_recipe("--resume"), 2, self.out)
        self.assertEqual(self.out.read_text(), "a file")

    def test_there_must_be_something_to_resume(self):
        self.assert_one_line(self.run_recipe("--resume"), 2, self.out, "recipe.toml")
        self.assertFalse(self.out.exists())
        self.out.mkdir()
        self.assert_one_line(self.run_recipe("--resume"), 2, self.out, "recipe.toml")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_another_recipe_does_not_resume_a_run(self):
        self.half_run()
        for change in ("seed=8", "server.optimizer.lr=0.25", "data.clients=10", "phase.0.rounds=5", "phase.1.clip=1"):
            with self.subTest(change=change):
                self.assert_untouched(self.run_recipe(*self.resume, "--set", change), 2, self.out, "differs")
        self.assert_untouched(self.run_recipe(*self.resume, "--rounds", 6), 2, self.out, "at most 6 rounds", "7")

    def test_a_damaged_recipe_does_not_resume(self):
        self.half_run()
        (self.out / "recipe.toml").write_text("seed = ")
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(*self.resume), 2, self.out / "recipe.toml")

    def check_damage(self, name, places):
        """Whatever byte is damaged, resuming names the file and touches nothing; with the file back, it ends right."""
        path = self.out / name
        content = path.read_bytes()
        damaged = []
        for place in places(len(content)):
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            damaged.append((f"byte {place}", bytes(flipped)))
        for length in (0, 1, 7, 8, len(content) // 2, len(content) - 1):
            damaged.append((f"cut to {length}", content[:length]))
        damaged.append(("longer", content + b"\0"))
        for what, bytes_there in damaged:
            with self.subTest(file=name, damage=what):
                path.write_bytes(bytes_there)
                self.before = state(self.out)
                self.assert_untouched(self.run_recipe(*self.resume), 2, path)
        path.unlink()
        self.before = state(self.out)
        return content

    def test_a_damaged_checkpoint_does_not_resume(self):
        self.half_run()
        name = "checkpoint-7.safetensors"
        content = self.check_damage(name, lambda size: [*range(0, 64, 5), *range(64, size, 61), size - 1])
        (self.out / name).write_bytes(content)
        self.assert_succeeds(self.run_recipe(*self.resume))
        self.assertEqual(contents(self.out)[0], contents(self.expected_out)[0])

    def test_a_checkpoint_of_another_model_does_not_resume(self):
        self.half_run()
        other = self.folder / "other"
        self.assert_succeeds(self.run_recipe("--rounds", 7, "--set", "data.dimension=5", out=other))
        shutil.copy(other / "checkpoint-7.safetensors", self.out)
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(*self.resume), 2, self.out / "checkpoint-7.safetensors", "model")

    def test_a_damaged_or_missing_site_does_not_resume(self):
        for sites in ("memory", "disk"):
            with self.subTest(sites=sites):
                self.out = self.folder / sites
                self.recipe.write_text(RECIPE + f'sites = "{sites}"\n')
                self.half_run()
                name = sorted(path.name for path in (self.out / "sites").glob("*-6.site"))[0]
                self.check_damage(f"sites/{name}", lambda size: range(0, size, 7))
                self.assert_untouched(self.run_recipe(*self.resume), 2, self.out / "sites" / name, "No such file")
                shutil.rmtree(self.expected_out)

    def test_a_damaged_log_does_not_resume(self):
        self.half_run()
        log = self.out / "log.jsonl"
        lines = log.read_text().splitlines(keepends=True)
        for what, text, *words in (
            ("a line that is not JSON", "".join(lines[:3] + ["{oops\n"] + lines[4:]), f"{log}:4"),
            ("a line without kind", "".join(lines[:3] + ["{}\n"] + lines[4:]), f"{log}:4"),
            ("a line of another type", "".join(lines[:3] + ["[1]\n"] + lines[4:]), f"{log}:4"),
            ("no header", "".join(lines[1:]), "header"),
            ("a missing round", "".join(lines[:3] + lines[4:]), "7 rounds"),
            ("nothing", "", "header"),
        ):
            with self.subTest(damage=what):
                log.write_text(text)
                self.before = state(self.out)
                self.assert_untouched(self.run_recipe(*self.resume), 2, log, *words)
        log.unlink()
        self.before = state(self.out)
        self.assert_untouched(self.run_recipe(*self.resume), 2, log, "No such file")

    def test_a_half_line_at_the_end_of_the_log_is_what_a_crash_leaves(self):
        self.half_run()
        with open(self.out / "log.jsonl", "a") as log:
            log.write('{"kind":"rou')
        self.assert_succeeds(self.run_recipe(*self.resume))
        self.assertEqual(contents(self.out)[0], contents(self.expected_out)[0])


class SmallDisk(CliTest):
    """On a file system of its own, that can be full or read-only even for root."""

    PAGE = 4096
    PAGES = 64

    def setUp(self):
        super().setUp()
        self.disk = Path(tempfile.mkdtemp(prefix="fedep-test-disk-"))
        self.addCleanup(self.disk.rmdir)
        self.mount("-t", "tmpfs", "-o", f"size={self.PAGES * self.PAGE}", "none", self.disk)
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        self.out = self.disk / "run"

    def mount(self, *arguments):
        try:
            done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, timeout=60)
        except FileNotFoundError:
            self.skipTest("needs a small file system, but there is no mount")
        if done.returncode != 0:
            self.skipTest(f"needs a small file system, but: {done.stderr.strip()}")

    def leave_free(self, pages):
        """Fills the disk until so many pages are free."""
        self.filler = self.disk / "filler"
        status = os.statvfs(self.disk)
        self.filler.write_bytes(b"x" * max(0, status.f_bavail * status.f_frsize - pages * self.PAGE))

    def test_a_full_disk_ends_a_run_that_finishes_once_there_is_room(self):
        for sites in ("memory", "disk"):
            self.recipe.write_text(RECIPE.replace("every = 3", "every = 1") + f'sites = "{sites}"\n')
            expected_out = self.folder / f"whole-{sites}"
            expected_output = self.assert_succeeds(self.run_recipe(out=expected_out)).stdout
            stopped_at = set()
            for pages in range(self.PAGES):
                self.leave_free(pages)
                done = self.run_recipe()
                if done.returncode == 0:
                    break
                with self.subTest(sites=sites, pages=pages):
                    self.assert_last_line(done, 1, self.out, "No space left on device")
                    stopped_at.add(self.stopped_file(done))
                    left = [path.name for path in self.disk.rglob("*.tmp")]
                    self.assertEqual(left, [], "an unfinished file is left")
                    self.filler.unlink()
                    self.assert_finishes(expected_out, expected_output)
                shutil.rmtree(self.out)
            self.assertEqual(done.returncode, 0)
            self.assertTrue({"checkpoint", "site", "log"} <= stopped_at, stopped_at)
            self.filler.unlink()
            shutil.rmtree(self.out)

    def stopped_file(self, done):
        line = done.stderr.splitlines()[-1]
        for kind in ("checkpoint-", ".site", "log.jsonl", "recipe.toml"):
            if kind in line:
                return kind.strip("-.").split(".")[0]
        return line

    def assert_finishes(self, expected_out, expected_output):
        extra = ["--resume"] if (self.out / "recipe.toml").exists() else []
        done = self.assert_succeeds(self.run_recipe(*extra))
        self.assertEqual(done.stdout, expected_output)
        self.assertEqual(contents(self.out), contents(expected_out))

    def test_a_full_disk_keeps_the_checkpoint_before(self):
        self.assert_succeeds(self.run_recipe("--rounds", 7))
        checkpoint = self.out / "checkpoint-7.safetensors"
        content = checkpoint.read_bytes()
        self.leave_free(0)
        self.assert_last_line(self.run_recipe("--resume"), 1, self.out, "No space left on device")
        self.assertEqual(checkpoint.read_bytes(), content)

    def test_a_read_only_disk_is_named(self):
        self.assert_succeeds(self.run_recipe("--rounds", 7))
        self.mount("-o", "remount,ro", self.disk)
        before = state(self.disk)
        self.assert_one_line(self.run_recipe("--resume"), 1, self.out, "Read-only file system")
        self.assert_one_line(self.run_recipe(out=self.disk / "new"), 1, self.disk / "new", "Read-only file system")
        figure = PROGRAM.run("toy", "--trials", 1, "--steps", 1, "--figure", self.disk / "toy")
        self.assert_one_line(figure, 1, self.disk / "toy", "Read-only file system")
        self.assertEqual(state(self.disk), before)

    def test_a_figure_that_does_not_fit_is_not_left_half_written(self):
        self.leave_free(1)
        done = PROGRAM.run("toy", "--trials", 2, "--steps", 3, "--figure", self.disk / "toy")
        self.assert_one_line(done, 1, self.disk / "toy", "No space left")
        self.assertEqual([path.name for path in self.disk.iterdir()], ["filler"])


class Toy(CliTest):
    def toy(self, *arguments):
        return PROGRAM.run("toy", *arguments)

    def test_options_out_of_range_are_named(self):
        for option, value in (
            ("--trials", "0"),
            ("--trials", "-5"),
            ("--trials", "many"),
            ("--trials", "99999999999"),
            ("--steps", "0"),
            ("--steps", "-1"),
            ("--steps", "1.5"),
            ("--seed", "-1"),
            ("--seed", "x"),
        ):
            with self.subTest(option=option, value=value):
                self.assert_one_line(self.toy(f"{option}={value}"), 2, option.strip("-"), value)

    def test_json_has_the_promised_shape(self):
        done = self.assert_succeeds(self.toy("--trials", 5, "--steps", 20, "--json"))
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(done.stdout.splitlines()), 1)
        result = json.loads(done.stdout)
        for method in ("fed_avg", "fed_pa", "fed_ep", "fed_ep_identity"):
            self.assertLessEqual({"mean", "std"}, set(result[method]))
            self.assertTrue(all(isinstance(value, float) and value >= 0 for value in result[method].values()))
        self.assertEqual(result["trials"], 5)
        self.assertLess(result["fed_ep"]["mean"], result["fed_pa"]["mean"])

    def test_the_same_seed_gives_the_same_text(self):
        text = [self.assert_succeeds(self.toy("--trials", 3, "--seed", seed, "--json")).stdout for seed in (1, 1, 2)]
        self.assertEqual(text[0], text[1])
        self.assertNotEqual(json.loads(text[0])["fed_avg"], json.loads(text[2])["fed_avg"])

    def test_figure_writes_both_pictures(self):
        prefix = self.folder / "pictures" / "toy"
        done = self.assert_succeeds(self.toy("--trials", 3, "--steps", 5, "--figure", prefix))
        names = sorted(path.name for path in prefix.parent.iterdir())
        self.assertEqual(names, ["toy-contours.svg", "toy-distance.svg"])
        for name in names:
            text = (prefix.parent / name).read_text()
            self.assertTrue(text.startswith("<svg") and text.rstrip().endswith("</svg>"))
            self.assertIn(name, done.stderr)
        self.assertIn("FedEP", done.stdout)


if __name__ == "__main__":
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
