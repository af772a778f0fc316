#!/usr/bin/env python3
"""Every recipe in recipe/ is one the program accepts, has the paper's numbers where it is a row of the paper, and
plays all its phases; result/ says what the results do. Data are read where $FEDEP_DATA has them; elsewhere a recipe must
fail for want of them only. Settings are those that the program prints, what a recipe extends included.

    recipes_test.py PROGRAM RECIPE_FOLDER
"""

import difflib
import functools
import os
import re
import sys
import unittest
from pathlib import Path

from program import Program, scratch_folder, skip
from recipe_settings import name_of, recipe_files, settings_of, settings_text

PROGRAM = None
FOLDER = None

METHODS = {"i": "scaled_identity", "m": "sample_moments", "l": "laplace", "v": "ngvi"}
STATELESS = ["fed_avg", "fed_pa"] + [f"fed_sep_{letter}" for letter in METHODS]
STATEFUL = [f"fed_ep_{letter}" for letter in METHODS]
HYPERPARAMETERS = (
    [f"i_alpha_{value}" for value in ("4e-2", "5e-2", "6e-2")]
    + [f"m_shrinkage_{value}" for value in ("5e-5", "1e-4", "5e-4")]
    + [f"{letter}_epochs_{value}" for letter in "lv" for value in (5, 10)]
)
ROWS = {
    "table2": STATELESS + STATEFUL,
    "table3": STATELESS,
    "table6": STATELESS,
    "table8": [f"{algorithm}_{row}" for algorithm in ("fed_ep", "fed_sep") for row in HYPERPARAMETERS],
    "figure4": [f"{size}_{letter}" for size in ("small", "large") for letter in "iv"],
    "figure6": [f"epochs_{epochs}" for epochs in range(1, 11)],
}

# Table 7, with what the reference's code adds to it.
TASKS = {
    "table2": {"rounds": 1500, "burn_in": 401, "alpha": 0.05, "shrinkage": 1e-4, "laplace": 5, "ngvi": (5, 5)},
    "table3": {"rounds": 1500, "burn_in": 801, "alpha": 1e-8, "shrinkage": 1e-6, "laplace": 5, "ngvi": (10, 10)},
    "table6": {"rounds": 500, "burn_in": 201, "alpha": 5e-3, "shrinkage": 1e-4, "laplace": 5, "ngvi": (5, 5)},
}
STARTS = {"table2": 0, "table3": 1e-4, "table6": 5e-3}  # lambda_0
CLIENT = {"table2": (10, 20, 0.01, 1e-4), "table3": (5, 100, 50.0, 0.0), "table6": (20, 20, 0.01, 0.0)}
SERVER = {"table2": (20, "sgd", 0.5, 0.9), "table3": (10, "adagrad", 5.0, 0.0), "table6": (100, "sgd", 0.5, 0.9)}
CLIPS = {"i": 100, "m": 300, "l": 6500, "v": 2000}


def table_of(recipe):
    """Rows of Table 3 on titles are ours alone, so they are taken for a table of their own."""
    return "titles" if recipe["row"].startswith("titles_") else recipe["table"]


@functools.cache
def all_recipes():
    return {name_of(path, FOLDER): settings_of(PROGRAM, path) for path in recipe_files(FOLDER)}


def recipes(*tables):
    """(name, recipe) of all recipes, or of those tables' alone."""
    return [(name, recipe) for name, recipe in all_recipes().items() if not tables or table_of(recipe) in tables]


def letter_of(row):
    """Of its method, as the paper's tables abbreviate it; None where there is none."""
    match = re.match(r"fed_s?ep_(.)", row)
    return match and match[1]


def without(recipe, *keys):
    return {key: value for key, value in recipe.items() if key not in keys}


def sgd(optimizer):
    """Rate and momentum."""
    assert optimizer["name"] == "sgd"
    return optimizer["lr"], optimizer["momentum"]


def last_inference(recipe):
    """Of the last phase, where that infers a distribution; None of FedAvg and FedPA."""
    phase = recipe["phase"][-1]
    return phase["inference"] if phase["algorithm"] in ("fed_ep", "fed_sep") else None


class EveryRecipe(unittest.TestCase):
    def check(self, name, *extra, data=None):
        environment = {key: value for key, value in os.environ.items() if key != "FEDEP_DATA"}
        if data:
            environment["FEDEP_DATA"] = str(data)
        return PROGRAM.run("check", FOLDER / f"{name}.toml", *extra, env=environment)

    def test_is_accepted_but_for_data_that_are_not_there(self):
        """Without any data: tasks made up on the spot need none, every other recipe names what is missing."""
        with scratch_folder() as empty:
            for name, recipe in recipes():
                with self.subTest(recipe=name):
                    done = self.check(name, data=empty)
                    if recipe["data"]["name"] in ("toy", "synthetic", "random_images", "random_tags"):
                        self.assertEqual(done.returncode, 0, done.stderr)
                    else:
                        self.assertEqual(done.returncode, 2, done.stderr)
                        self.assertIn("is missing", done.stderr)
                        self.assertIn(str(Path(empty) / recipe["data"].get("path", "")), done.stderr)

    def test_is_ready_to_run_where_its_data_are(self):
        data = os.environ.get("FEDEP_DATA")
        if not data:
            skip("FEDEP_DATA names no folder with data")
        seen = set()
        for name, recipe in recipes():
            # Rows of a table differ in their phases, which need no data; one of each data set and model will do.
            kind = (recipe["data"]["name"], recipe.get("model", {}).get("name"))
            if not (Path(data) / recipe["data"].get("path", "")).is_dir() or kind in seen:
                continue
            seen.add(kind)
            with self.subTest(recipe=name):
                done = self.check(name, data=data)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("ready to run", done.stderr)

    def test_of_a_linear_model_plays_a_round_where_its_data_are(self):
        data = os.environ.get("FEDEP_DATA")
        if not data or not (Path(data) / "cifar100").is_dir():
            skip("FEDEP_DATA names no folder with cifar100")
        for name in ("figure4/small_v", "figure4/large_i"):
            with self.subTest(recipe=name), scratch_folder() as scratch:
                done = PROGRAM.run("run", FOLDER / f"{name}.toml", "--rounds", 1, "--out", Path(scratch) / "run")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"accuracy 0\.0\d+")

    def test_of_the_paper_plays_a_round_of_each_phase(self):
        """On made-up data, so that inference, optimizers and hand-over are run with the recipe's own settings."""
        stand_in = {
            "data.name": "synthetic",
            "data.partition": "natural",
            "data.augment": "false",
            "data.clients": "100",
            "data.dimension": "5",
            "data.max_examples": "120",
            "model.name": "linear",
            "checkpoint.sites": "memory",
        }
        for name, recipe in recipes(*ROWS, "femnist", "titles", "beyond", "ahead"):
            changes = stand_in | {f"phase.{i}.rounds": "1" for i in range(len(recipe["phase"]))}
            with self.subTest(recipe=name), scratch_folder() as scratch:
                overrides = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
                done = PROGRAM.run("run", FOLDER / f"{name}.toml", "--out", Path(scratch) / "run", *overrides)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"accuracy 0\.\d+")
                self.assertNotRegex(done.stdout, r"nll (nan|inf)")

    def test_of_a_row_is_named_after_it(self):
        for name, recipe in recipes(*ROWS, "femnist", "titles", "beyond", "ahead"):
            table, _, row = name.partition("/")
            self.assertEqual((table, row.replace("/", "_")), (recipe["table"], recipe["row"]))

    def test_opens_with_a_few_lines_on_it(self):
        for path in FOLDER.rglob("*.toml"):
            with self.subTest(recipe=path):
                lines = path.read_text().splitlines()
                comment = next(i for i, line in enumerate(lines) if not line.startswith("# "))
                self.assertIn(comment, range(1, 6))
                self.assertLessEqual(max(map(len, lines)), 110)

    def test_has_the_settings_it_is_known_to_have(self):
        """After a change that is meant: recipe_settings.py PROGRAM RECIPE_FOLDER > recipe_settings.txt"""
        kept = Path(__file__).with_name("recipe_settings.txt").read_text().splitlines()
        changes = list(difflib.unified_diff(kept, settings_text(all_recipes()).splitlines(), "kept", "now", "", "", 2, ""))
        self.assertFalse(changes, "\n".join(changes))


class PaperRows(unittest.TestCase):
    def test_are_all_there(self):
        for table, rows in ROWS.items():
            there = [recipe["row"] for _, recipe in recipes(table)]
            if table == "figure4":
                there = [row for row in there if "_alpha_" not in row]  # the grid
            self.assertEqual(sorted(there), sorted(rows), table)

    def test_have_the_tasks_clients_and_server(self):
        for table in ("table2", "table3", "table6", "table8"):
            task = table.replace("8", "2")
            for name, recipe in recipes(table):
                with self.subTest(recipe=name):
                    client, server = recipe["client"], recipe["server"]
                    optimizer = server["optimizer"]
                    self.assertEqual(
                        (client["epochs"], client["batch"], client["optimizer"]["lr"], client.get("weight_decay", 0.0)),
                        CLIENT[task],
                    )
                    self.assertEqual((client["remainder"], client["optimizer"]["momentum"]), ("drop", 0.9))
                    self.assertEqual(client.get("loss_times_batch", False), task == "table3")
                    clients = server["clients_per_round"]
                    self.assertEqual(
                        (clients, optimizer["name"], optimizer["lr"], optimizer.get("momentum", 0.0)), SERVER[task]
                    )
                    self.assertEqual(server["damping"], "1/K")
                    self.assertEqual(server.get("factor_optimizer", optimizer), optimizer)
                    if task == "table3":
                        self.assertEqual((optimizer["epsilon"], optimizer["initial_accumulator"]), (1e-5, 0.0))
                        self.assertTrue(optimizer["epsilon_inside_root"])
                    self.assertEqual(recipe["evaluate"]["every"], 1, "means over rounds need every round")
                    self.assertEqual(recipe["evaluate"].get("examples", 0), 10000 if task == "table3" else 0)

    def test_switch_when_the_reference_does(self):
        for table in ("table2", "table3", "table6", "table8"):
            task = TASKS[table.replace("8", "2")]
            for name, recipe in recipes(table):
                with self.subTest(recipe=name):
                    row, letter = recipe["row"], letter_of(recipe["row"])
                    phases = recipe["phase"]
                    self.assertEqual(sum(phase["rounds"] for phase in phases), task["rounds"])
                    algorithms = [phase["algorithm"] for phase in phases]
                    if row == "fed_avg":
                        self.assertEqual(algorithms, ["fed_avg"])
                    elif row == "fed_pa":
                        self.assertEqual(algorithms, ["fed_avg", "fed_pa"])
                        self.assertEqual(phases[0]["rounds"], task["burn_in"] - 1)
                        self.assertEqual(phases[1]["optimizer_state"], "carry")
                    else:
                        self.assertEqual(algorithms, ["fed_avg", row.split(f"_{letter}")[0]])
                        self.assertEqual(phases[0]["rounds"], task["burn_in"])
                        self.assertEqual(phases[1]["guard"], "count")

    def test_infer_with_table_7s_numbers(self):
        for table, task in TASKS.items():
            for name, recipe in recipes(table):
                with self.subTest(recipe=name):
                    row, letter = recipe["row"], letter_of(recipe["row"])
                    if not letter:
                        continue
                    phase = recipe["phase"][1]
                    inference = phase["inference"]
                    self.assertEqual(inference["name"], METHODS[letter])
                    self.assertAlmostEqual(inference["alpha"], task["alpha"], delta=1e-12)
                    self.assertEqual(phase.get("clip", 0), CLIPS[letter] if row.startswith("fed_ep") else 0)
                    self.assertEqual(inference.get("clip_std", 0), 0 if letter == "i" else 2)
                    if letter == "m":
                        self.assertEqual((inference["shrinkage"], inference["rescale"]), (task["shrinkage"], True))
                    if letter == "l":
                        self.assertEqual(inference["epochs"], 10 if row == "fed_ep_l" else task["laplace"])
                    if letter == "v":
                        self.assertEqual((inference["epochs"], inference["samples"]), task["ngvi"])
                        self.assertEqual(inference["decay"], 0.99)
                    if letter in "lv":
                        # alpha = s (lambda_0 + wd), and lambda_0 is where NGVI starts
                        per_example = STARTS[table] + recipe["client"].get("weight_decay", 0)
                        self.assertAlmostEqual(inference["scale"] * per_example, task["alpha"], delta=1e-12)
                        self.assertEqual(inference.get("initial_scale", 0), STARTS[table] if letter == "v" else 0)
                        expected = "softmax_index" if table == "table3" else "model"
                        self.assertEqual(inference.get("label_sampler", "model"), expected)

    def test_of_table_8_differ_from_table_2_in_their_hyperparameter_only(self):
        table2 = {recipe["row"]: recipe for _, recipe in recipes("table2")}
        for name, recipe in recipes("table8"):
            with self.subTest(recipe=name):
                row, letter = recipe["row"], letter_of(recipe["row"])
                base, _, rest = row.partition(f"_{letter}_")
                key, _, value = rest.partition("_")
                other = table2[f"{base}_{letter}"]
                apart = ("table", "row", "evaluate", "phase")
                self.assertEqual(without(recipe, *apart), without(other, *apart))
                self.assertEqual(recipe["phase"][0], other["phase"][0])
                phase, other_phase = recipe["phase"][1], other["phase"][1]
                self.assertEqual(without(phase, "inference"), without(other_phase, "inference"))
                self.assertEqual(without(phase["inference"], key), without(other_phase["inference"], key))
                self.assertEqual(phase["inference"][key], float(value))

    def test_of_table_2_give_table_5(self):
        for name, recipe in recipes("table2"):
            with self.subTest(recipe=name):
                letter = letter_of(recipe["row"])
                if letter:
                    self.assertEqual((recipe["evaluate"]["samples"], recipe["evaluate"]["marginal_every"]), (10, 100))

    def test_of_the_figures_are_stateful_without_burn_in_or_momentum(self):
        for table in ("figure4", "figure6"):
            for name, recipe in recipes(table):
                with self.subTest(recipe=name):
                    row = recipe["row"]
                    self.assertEqual([phase["algorithm"] for phase in recipe["phase"]], ["fed_ep"])
                    self.assertEqual(recipe["phase"][0]["rounds"], 1500)
                    for optimizer in (recipe["server"]["optimizer"], recipe["server"]["factor_optimizer"]):
                        self.assertEqual(sgd(optimizer), (0.5, 0.0))
                    if table == "figure6":
                        self.assertEqual(recipe["phase"][0]["inference"]["epochs"], int(row.rpartition("_")[2]))


class TitleRows(unittest.TestCase):
    """Table 3's six methods on titles: alike but for what a row is about."""

    def test_are_all_there_and_differ_in_their_phases_only(self):
        rows = {recipe["row"]: recipe for _, recipe in recipes("titles")}
        self.assertEqual(sorted(rows), sorted(f"titles_{row}" for row in STATELESS))
        average = rows["titles_fed_avg"]
        for row, recipe in rows.items():
            with self.subTest(row=row):
                self.assertEqual(without(recipe, "row", "phase"), without(average, "row", "phase"))
                self.assertEqual(sum(phase["rounds"] for phase in recipe["phase"]), 1500)
                if row == "titles_fed_avg":
                    continue
                burn_in, phase = recipe["phase"]
                self.assertEqual((burn_in["algorithm"], burn_in["rounds"]), ("fed_avg", 800))
                self.assertEqual(phase["optimizer_state"], "carry")

    def test_keep_what_a_client_does_not_touch_where_it_is(self):
        """The prior alone must not diverge in the smallest client's chain, nor the precision of unused words drift."""
        for name, recipe in recipes("titles"):
            inference = last_inference(recipe)
            if not inference:
                continue
            with self.subTest(recipe=name):
                examples, smallest = 13136, 8
                rate = recipe["client"]["optimizer"]["lr"] * inference["alpha"] * examples / smallest
                self.assertLess(rate, 2)
                if inference["name"] in ("laplace", "ngvi"):
                    kept = inference["scale"] * recipe["client"]["weight_decay"]
                    self.assertAlmostEqual(kept / inference["alpha"], 1, delta=1e-6)


class Femnist(unittest.TestCase):
    def test_clients_bear_the_pull_of_others_unless_the_name_has_a_scale(self):
        """docs/stability.md: rate times the smallest client's largest pull, against 2 (1 + momentum)."""
        examples, smallest, squared_gradient = 52731, 23, 0.0165
        rows = 0
        for name, recipe in recipes("femnist"):
            inference = last_inference(recipe)
            if not inference:
                continue
            rows += 1
            with self.subTest(recipe=name):
                optimizer = recipe["client"]["optimizer"]
                fisher = max(squared_gradient, inference["initial_scale"])
                if inference["name"] not in ("laplace", "ngvi"):
                    fisher = 0
                per_example = max(inference["alpha"], inference["scale"] * fisher)
                pull = optimizer["lr"] * per_example * (examples - smallest) / smallest
                self.assertEqual(pull > 2 * (1 + optimizer["momentum"]), "_scale_" in name, pull)
        self.assertGreater(rows, 8)


class Beyond(unittest.TestCase):
    """Table 2's rows with a setting that the paper does not have."""

    def test_differ_from_table_2_in_a_cooldown_that_ends_with_the_run(self):
        table2 = {recipe["row"]: recipe for _, recipe in recipes("table2")}
        rows = dict(recipes("beyond"))
        self.assertEqual(sorted(rows), ["beyond/fed_avg_cooldown", "beyond/fed_sep_i_cooldown"])
        for name, recipe in rows.items():
            with self.subTest(recipe=name):
                other = table2[recipe["row"].removesuffix("_cooldown")]
                apart = ("table", "row", "phase")
                self.assertEqual(without(recipe, *apart), without(other, *apart))
                *earlier, last = recipe["phase"]
                self.assertEqual([*earlier, without(last, "cooldown")], other["phase"])
                self.assertEqual(last["cooldown"]["after"] + last["cooldown"]["rounds"], last["rounds"])


class PublishedResults(unittest.TestCase):
    """The pages of result/ and their pictures are what results.jsonl says."""

    def setUp(self):
        self.results = FOLDER.parent / "result"

    def test_tables_are_those_of_the_results(self):
        with scratch_folder() as scratch:
            pages = Path(scratch) / "pages"
            pages.mkdir()
            for page in self.results.glob("*.md"):
                (pages / page.name).write_text(page.read_text())
            done = PROGRAM.run("reproduce", "--results", self.results / "results.jsonl", "--readme", pages)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for page in pages.iterdir():
                self.assertEqual(page.read_text(), (self.results / page.name).read_text(), page.name)

    def test_every_table_has_a_page_and_every_page_is_in_the_index(self):
        index = (self.results / "README.md").read_text()
        pages = sorted(page.stem for page in self.results.glob("*.md") if page.name != "README.md")
        self.assertEqual(pages, sorted(re.findall(r"^\| \[(\w+)\.md\]\(\1\.md\)", index, re.M)))
        tables = {recipe["table"] for _, recipe in recipes() if recipe["table"]} | {"table5"}
        self.assertEqual(tables - set(pages), set())

    def test_pictures_are_drawn_by_the_commands_of_their_page(self):
        pictures = set()
        for page in sorted(self.results.glob("*.md")):
            text = page.read_text()
            shown = {f"result/{picture}" for picture in re.findall(r"!\[[^]]*\]\((figure/[^)]*)\)", text)}
            drawn = set()
            with scratch_folder() as scratch:
                (Path(scratch) / "result").mkdir()
                (Path(scratch) / "result" / "results.jsonl").symlink_to(self.results / "results.jsonl")
                for command in re.findall(r"^fedep (report .*--figure .*)$", text, re.M):
                    with self.subTest(command=command):
                        done = PROGRAM.run(*command.split(), cwd=scratch)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        for file in done.stdout.split():
                            drawn.add(file)
                            kept = FOLDER.parent / file
                            self.assertEqual((Path(scratch) / file).read_text(), kept.read_text(), file)
            self.assertEqual(drawn, shown, page.name)
            pictures |= shown
        self.assertEqual(pictures, {f"result/figure/{path.name}" for path in self.results.glob("figure/*")})


class SpeedJob(unittest.TestCase):
    """The reference job of pfl-research's speed comparison."""

    def test_has_its_sizes(self):
        recipe = dict(recipes())["pfl_cifar10"]
        client, server, (phase,) = recipe["client"], recipe["server"], recipe["phase"]
        self.assertEqual((client["epochs"], client["batch"]), (1, 10))
        self.assertEqual(sgd(client["optimizer"]), (0.1, 0.0))
        self.assertEqual(server["clients_per_round"], 50)
        self.assertEqual(sgd(server["optimizer"]), (1.0, 0.0))
        self.assertEqual((phase["algorithm"], phase["rounds"], phase["weight"]), ("fed_avg", 1500, "examples"))
        self.assertEqual(recipe["evaluate"]["every"], 10)
        done = PROGRAM.run("check", FOLDER / "pfl_cifar10.toml")
        self.assertIn("1000 clients, 50000 examples, 1626442 weights: ready to run", done.stderr)

    def test_learns(self):
        changes = {"data.clients": 20, "server.clients_per_round": 10, "phase.0.rounds": 5, "evaluate.every": 0}
        overrides = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
        with scratch_folder() as scratch:
            done = PROGRAM.run("run", FOLDER / "pfl_cifar10.toml", "--out", Path(scratch) / "run", *overrides)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(float(re.findall(r"accuracy ([\d.]+)", done.stdout)[-1]), 0.3, "chance is 0.1")


if __name__ == "__main__":
    FOLDER = Path(sys.argv.pop(2)).resolve()
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()
