#!/usr/bin/env python3
"""The page in a real browser: Debian's chromium, headless, driven by chromedriver and python3-selenium. Skips where
one of them is absent (exit code 77). Screenshots go to FOLDER, or nowhere.

    browser_test.py PROGRAM RECIPES [FOLDER]
"""

import base64
import csv
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    # Debian's packages belong to Debian's Python, which need not be the one that runs the tests.
    if sys.executable != "/usr/bin/python3" and os.access("/usr/bin/python3", os.X_OK) and "FEDEP_BROWSER_TEST" not in os.environ:
        os.environ["FEDEP_BROWSER_TEST"] = "once"
        os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])
    webdriver = None

from program import Program, scratch_folder, skip

PROGRAM = RECIPES = SCREENSHOTS = None
ROOT = Path(__file__).resolve().parent.parent
NASTY = "<img src=x onerror=document.title='owned'>"
ODD_NAMES = ("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf")
BROWSER = None
FOLDER = None
PAGE = None


LONG = "systolic blood pressure at admission, mean of three measurements in mmHg (supine)"
HOSPITAL = {
    "data.name": "tabular", "data.path": "stays.csv", "data.client_column": "hospital", "data.label_column": "died", "data.label_positive": "yes",
    "evaluate.samples": 50, "evaluate.marginal_every": 5, "server.clients_per_round": 12, "data.categories": "[]",
}  # fmt: skip


def make_hospitals(folder):
    """Two runs on a table of twelve hospitals and 40 columns, some with names that no page likes."""
    draw = random.Random(3)
    names = [LONG, NASTY, "W" * 60, *(f"column {i}" for i in range(37))]
    with open(folder / "stays.csv", "w", newline="") as file:
        write = csv.writer(file)
        write.writerow(["hospital", "died", *names])
        for i in range(1200):
            row = [draw.gauss(0, 1) for _ in names]
            died = draw.random() < 1 / (1 + math.exp(-row[0] + 0.5 * row[1]))
            write.writerow([f"hospital {i % 12} of the university of {'Llanfairpwllgwyngyll' * 2}", "yes" if died else "no", *row])
    recipe = folder / "stays.toml"
    recipe.write_text(re.search(r"```toml own_table.toml\n(.*?)```", (ROOT / "docs/hospitals.md").read_text(), re.S)[1])
    for name, more in (("a run with quite a long name, of all hospitals together", {}), ("averaged", {"phase.0.algorithm": "fed_avg"})):
        options = [option for key, value in {**HOSPITAL, **more}.items() for option in ("--set", f"{key}={value}")]
        done = PROGRAM.run("run", recipe, "--data", folder, "--out", folder / "hospitals" / name, *options)
        assert done.returncode in (0, 3), done.stderr
        done = PROGRAM.run("evaluate", folder / "hospitals" / name, "--data", folder, "--per-client")
        assert done.returncode in (0, 3), done.stderr
    done = PROGRAM.run("report", *sorted((folder / "hospitals").iterdir()), "--out", folder / "hospitals.html")
    assert done.returncode == 0, done.stderr


def setUpModule():
    global BROWSER, FOLDER, PAGE
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    for what, there in (("python3-selenium", webdriver), ("chromium", chromium), ("chromium-driver", driver)):
        if not there:
            skip(f"{what} is not installed")
    FOLDER = scratch_folder()
    folder = Path(FOLDER.name)
    recipe = Path(RECIPES) / "synthetic.toml"
    runs = []

    def play(name, *options):
        done = PROGRAM.run("run", recipe, "--out", folder / name, *options)
        assert done.returncode in (0, 3), done.stderr
        runs.append(folder / name)

    for algorithm in ("fed_avg", "fed_pa"):
        play(algorithm, "--set", f"phase.1.algorithm={algorithm}")
    for seed in (1, 2, 3):
        play(f"fed_ep_i-seed{seed}", "--seed", seed, "--set", "phase.1.algorithm=fed_ep", "--set", "evaluate.marginal_every=20")
    laplace = ("--set", "phase.1.inference.name=laplace", "--set", "phase.1.inference.epochs=1")
    play("fed_sep_l", *laplace)
    # As `fedep evaluate` leaves it.
    file = folder / "fed_pa" / "evaluation.json"
    evaluation = json.loads(file.read_text())
    evaluation["per_client"] = [{"client": f"<b>{i}</b>", "examples": 10 * i + 5, "metrics": {"accuracy": 0.5 + i / 60}} for i in range(24)]
    few = {"examples": 9, "events": 0, "auc": None, "bins": [], "missing": ["no AUC: 0 of 9 had the outcome"]}
    risk = {"examples": 90, "events": 30, "auc": 0.8, "auc_se": 0.05, "intercept": -0.1, "intercept_se": 0.2, "slope": 0.5, "slope_se": 0.1,
            "bins": [{"risk": 0.1 + i / 10, "observed": 0.2 + i / 20, "examples": 10} for i in range(9)], "missing": []}  # fmt: skip
    evaluation["risk"] = {"point": risk, "clients": [{"client": "<b>A</b>", "point": risk}, {"client": "B", "point": few}]}
    file.write_text(json.dumps(evaluation))
    PAGE = folder / "report.html"
    done = PROGRAM.run("report", *runs, "--out", PAGE)
    assert done.returncode == 0, done.stderr
    # A name that tries to be markup, of a run that was stopped.
    play("nasty")
    log = runs[-1] / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:61]))
    os.utime(log, (0, 0))
    runs[-1] = runs[-1].rename(folder / NASTY)
    done = PROGRAM.run("report", runs[0], runs[-1], "--out", folder / "nasty.html")
    assert done.returncode == 0, done.stderr

    # Scores called as JavaScript calls what every object has, and one whose values hardly differ.
    play("odd")
    log = runs[-1] / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "round":
            line.update({name: 0.5 for name in ODD_NAMES}, close=math.nextafter(0.5, 1) if line["round"] % 2 else 0.5)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = PROGRAM.run("report", runs[0], runs[-1], "--out", folder / "odd.html")
    assert done.returncode == 0, done.stderr

    # One whose deviations are shown: 90 rounds are less than two of its windows, so nobody judges it.
    play("told", *laplace, "--set", "server.optimizer.lr=0.6")
    done = PROGRAM.run("report", runs[-1], "--out", folder / "told.html")
    assert done.returncode == 0, done.stderr

    make_hospitals(folder)

    profile = tempfile.mkdtemp(prefix="fedep-chromium-")
    unittest.addModuleCleanup(shutil.rmtree, profile, ignore_errors=True)
    unittest.addModuleCleanup(FOLDER.cleanup)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    BROWSER = webdriver.Chrome(service=Service(driver), options=options)
    unittest.addModuleCleanup(BROWSER.quit)


class BrowserTest(unittest.TestCase):
    def setUp(self):
        self.media()
        self.size(1280, 900)
        BROWSER.get(PAGE.as_uri())
        BROWSER.execute_script("localStorage.clear(); scrollTo(0, 0)")
        BROWSER.get(PAGE.as_uri())

    def tearDown(self):
        problems = [entry for entry in BROWSER.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(problems, [])

    # ---- what the browser pretends to be ----

    def size(self, width, height, mobile=False):
        BROWSER.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})  # fmt: skip

    def media(self, media="", scheme="light"):
        BROWSER.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})  # fmt: skip

    def shoot(self, name, whole=False):
        if SCREENSHOTS is None:
            return
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        shot = BROWSER.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    # ---- what the page shows ----

    def js(self, code, *arguments):
        return BROWSER.execute_script("return " + code, *arguments)

    def all(self, selector):
        return BROWSER.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return BROWSER.find_element(By.CSS_SELECTOR, selector)

    def lines(self, metric="accuracy"):
        return len(self.all(f'figure[data-metric="{metric}"] path.mean'))

    def groups(self):
        return self.js("data.groups.map((group) => group.name)")

    def luminance(self, selector, what="backgroundColor"):
        color = self.js(f"getComputedStyle(document.querySelector(arguments[0])).{what}", selector)
        red, green, blue = (float(x) for x in re.findall(r"[\d.]+", color)[:3])
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255

    def click(self, element):
        BROWSER.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()


class Curves(BrowserTest):
    def test_show_every_group_in_every_chart(self):
        self.assertEqual(self.groups(), ["fed_avg", "fed_pa", "fed_ep_i", "fed_sep_l"])
        metrics = [figure.get_attribute("data-metric") for figure in self.all("figure.chart")]
        self.assertEqual(metrics, ["accuracy", "nll", "ece", "brier", "train_loss", "moved"])
        for metric in metrics[:-1]:
            self.assertEqual(self.lines(metric), 4, metric)
        self.assertEqual(self.lines("moved"), 2)  # point estimates have no posterior that moves
        # Three seeds have a band, and only they.
        self.assertEqual(len(self.all('figure[data-metric="accuracy"] path.band')), 1)
        # Colours and dashes all differ.
        looks = self.js("""[...document.querySelectorAll('figure[data-metric="accuracy"] path.mean')].map(
            (path) => getComputedStyle(path).stroke + "|" + path.getAttribute("stroke-dasharray"))""")
        self.assertEqual(len(set(looks)), 4)
        self.assertIn("FedAvg", self.one("g.switch text").text)
        self.assertGreater(len(self.all('figure[data-metric="accuracy"] path.diamond')), 0)
        self.shoot("report-light")

    def test_lie_where_the_data_say(self):
        # The path's vertical places against the values: one straight line for all rounds.
        fit = self.js("""(() => {
            const path = document.querySelector('figure[data-metric="accuracy"] g.series[data-group="0"] path.mean').getAttribute("d");
            const ys = path.slice(1).split("L").map((pair) => Number(pair.split(" ")[1]));
            const values = data.runs[0].curves.accuracy;
            const slope = (ys[50] - ys[0]) / (values[50] - values[0]);
            return [ys.length, slope, Math.max(...ys.map((y, i) => Math.abs(y - ys[0] - slope * (values[i] - values[0]))))];
        })()""")
        self.assertEqual(fit[0], 100)
        self.assertLess(fit[1], 0)  # up is better
        self.assertLess(fit[2], 0.05)

    def test_follow_the_legend(self):
        button = self.one("#legend-1")
        self.click(button)
        self.assertEqual([self.lines(metric) for metric in ("accuracy", "nll")], [3, 3])
        self.assertEqual(self.one("#legend-1").get_attribute("aria-pressed"), "false")
        self.assertEqual(len(self.all("figure.reliability")), 3)
        self.shoot("legend")
        self.click(self.one("#legend-all"))
        self.assertEqual(self.lines(), 4)
        # By keyboard.
        BROWSER.execute_script("document.getElementById('legend-0').focus()")
        ActionChains(BROWSER).send_keys(Keys.SPACE).perform()
        self.assertEqual(self.lines(), 3)
        self.assertEqual(self.js("document.activeElement.id"), "legend-0")
        for index in range(1, 4):
            self.click(self.one(f"#legend-{index}"))
        self.assertEqual(self.lines(), 0)
        self.assertIn("No run is switched on", self.one("figure.chart").text)

    def test_tell_their_values_under_the_pointer(self):
        plot = self.one('figure[data-metric="accuracy"] .plot')
        BROWSER.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
        ActionChains(BROWSER).move_to_element(plot).perform()
        tip = self.one("#tooltip")
        self.assertTrue(tip.is_displayed())
        number = int(re.search(r"round (\d+)", tip.text)[1])
        rows = {row.find_element(By.TAG_NAME, "span").text: row.find_element(By.TAG_NAME, "b").text for row in self.all("#tooltip .row")}
        self.assertEqual(set(rows), set(self.groups()))
        for index, run in ((0, 0), (1, 1), (3, 5)):
            value = self.js(f"data.runs[{run}].curves.accuracy[{number - 1}]")
            self.assertTrue(rows[self.groups()[index]].startswith(f"{100 * value:.1f} %"), (rows, value))
        seeds = [self.js(f"data.runs[{run}].curves.accuracy[{number - 1}]") for run in (2, 3, 4)]
        mean = sum(seeds) / 3
        two = 2 * (sum((x - mean) ** 2 for x in seeds) / 2) ** 0.5
        self.assertTrue(rows["fed_ep_i"].startswith(f"{100 * mean:.1f} % ± {100 * two:.1f} %"), rows)
        # Every chart shows the same round.
        self.assertEqual(len(self.all("figure.chart line.cross")), 5)
        self.shoot("report-hover")
        ActionChains(BROWSER).move_to_element(self.one("#heading")).perform()
        self.assertFalse(tip.is_displayed())

    def test_can_be_read_by_keyboard(self):
        BROWSER.execute_script("document.querySelector('figure[data-metric=\"nll\"] .plot').focus()")
        ActionChains(BROWSER).send_keys(Keys.HOME).perform()
        self.assertIn("round 1", self.one("#tooltip").text)
        ActionChains(BROWSER).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).perform()
        self.assertIn("round 3", self.one("#tooltip").text)
        self.assertIn("fed_avg", self.js("document.getElementById('spoken').textContent"))
        ActionChains(BROWSER).send_keys(Keys.ESCAPE).perform()
        self.assertFalse(self.one("#tooltip").is_displayed())

    def test_can_be_seen_against_bytes_and_time(self):
        for axis, label in (("bytes", "bytes sent"), ("seconds", "time")):
            self.click(self.one(f"#axis-{axis}"))
            self.assertIn(label, self.one('figure[data-metric="accuracy"] svg').text)
            self.assertEqual(self.lines(), 4)
        self.click(self.one("#axis-rounds"))

    def test_are_smoothed_as_the_tables_are(self):
        self.click(self.one("#window-10"))
        points = self.js("""document.querySelector('figure[data-metric="accuracy"] g.series[data-group="0"] path.mean').getAttribute("d").split("L").length""")
        self.assertEqual(points, 91)  # of 100 rounds, none before the tenth
        self.assertEqual(self.lines(), 4)
        self.click(self.one("#seeds"))
        self.assertEqual(len(self.all('figure[data-metric="accuracy"] path.seed')), 3)

    def test_count_rounds_to_a_threshold_as_the_table_does(self):
        table = self.js("data.tables[0]")
        column = next(i for i, name in enumerate(table["columns"]) if name.startswith("rounds to"))
        threshold = re.search(r"[\d.]+", table["columns"][column])[0]
        field = self.one("#threshold-value")
        self.click(field)
        field.clear()
        field.send_keys(threshold)
        shown = [span.text for span in self.all("#threshold-bars span[data-group]")]
        for row, text in zip(table["rows"], shown):
            told = "not reached" if row[column] == "–" else f"{row[column].replace(' seeds', '')} rounds"
            self.assertEqual(text, told)


class OtherParts(BrowserTest):
    def test_show_deviations_that_were_inferred(self):
        BROWSER.get((Path(FOLDER.name) / "told.html").as_uri())
        self.assertEqual(len(self.all("figure.spread svg path")), 2)  # weight and bias
        hints = [hint.text for hint in self.all("figure.spread p.hint")]
        self.assertEqual(len(hints), 1)
        self.assertIn("is still alpha", hints[0])

    def test_are_all_there(self):
        self.assertEqual(len(self.all("figure.reliability")), 4)
        self.assertEqual(len(self.all("figure.reliability g.marginal")), 2)  # FedAvg and FedPA have no posterior
        self.assertEqual(len(self.all("figure.spread")), 2)
        reasons = [hint.text for hint in self.all("figure.spread p.hint")]
        self.assertIn("No deviations are shown: precisions are set", reasons[0])
        self.assertIn("No deviations are shown: the run is not to be trusted", reasons[1])
        self.assertEqual(len(self.all("figure.spread svg path")), 0)
        self.assertEqual(len(self.all("#summary-table tbody tr")), 4)
        self.assertGreater(len(self.all("figure.participation rect")), 29)
        self.assertEqual(len(self.all("figure.per-client circle")), 24)
        self.assertEqual(len(self.all("figure.risk")), 1)  # the one that tells of risks
        self.assertEqual(len(self.all("figure.risk g.point circle")), 9)
        self.assertIn("slope 0.50 ± 0.10", self.one("figure.risk .note").text)
        self.click(self.one("figure.risk summary"))
        rows = [row.text for row in self.all("figure.risk tbody tr")]
        self.assertEqual(len(rows), 3)
        self.assertIn("<b>A</b> 30 of 90 0.80 ± 0.05", rows[0])
        self.assertEqual(rows[2], "no AUC: 0 of 9 had the outcome")
        differing = [cell.text for cell in self.all("#diff tbody tr td:first-child")]
        self.assertIn("phase.1.algorithm", differing)
        self.assertIn("phase.1.inference.name", differing)
        self.assertNotIn("client.epochs", differing)
        for name in ("calibration", "posterior", "clients", "recipes", "tables"):
            BROWSER.execute_script("document.getElementById(arguments[0]).scrollIntoView({block: 'start', behavior: 'instant'})", name)
            self.shoot("report-calibration" if name == "calibration" else name)

    def test_treat_names_as_text(self):
        BROWSER.get((PAGE.parent / "nasty.html").as_uri())
        self.assertEqual(self.all("img"), [])
        self.assertEqual([button.text for button in self.all(".legend button")], ["fed_avg", NASTY])
        self.assertNotEqual(BROWSER.title, "owned")

    def test_say_that_a_run_was_stopped(self):
        BROWSER.get((PAGE.parent / "nasty.html").as_uri())
        self.assertIn("stopped, 60 of 100", self.one("#summary-table").text)
        self.assertIn("not finished, 60 of 100 rounds", self.one("#notices").text)

    def test_have_runs_that_are_not_to_be_trusted_in_red(self):
        banners = self.all("#notices .distrust")
        self.assertEqual(len(banners), 4)  # of three seeds of fed_ep_i, and of fed_sep_l
        self.assertIn("finished, not to be trusted: it has not converged", banners[0].text)
        red = self.js("getComputedStyle(document.querySelector('#notices .distrust')).color")
        self.assertEqual(red, "rgb(160, 20, 20)")
        self.assertEqual([pill.text for pill in self.all("#summary-table .status.distrust")], ["not to be trusted"] * 2)

    def test_load_nothing(self):
        self.assertEqual(self.js("performance.getEntriesByType('resource').length"), 0)


class Looks(BrowserTest):
    def test_dark_as_the_system_or_as_chosen(self):
        self.assertGreater(self.luminance("body"), 0.9)
        self.media(scheme="dark")
        self.assertLess(self.luminance("body"), 0.15)
        self.assertGreater(self.luminance("body", "color"), 0.75)
        BROWSER.execute_script("document.getElementById('curves').scrollIntoView({block: 'start', behavior: 'instant'})")
        self.shoot("report-dark")
        self.click(self.one("#theme"))
        self.assertGreater(self.luminance("body"), 0.9)
        self.media(scheme="light")
        self.click(self.one("#theme"))
        self.assertEqual(self.one("#theme").text, "Theme: dark")
        self.assertLess(self.luminance("body"), 0.15)
        BROWSER.refresh()
        self.assertLess(self.luminance("body"), 0.15)  # remembered

    def test_narrow_on_a_phone(self):
        self.size(390, 844, mobile=True)
        BROWSER.refresh()
        self.assertLessEqual(self.js("document.scrollingElement.scrollWidth"), 390)
        lefts = {round(figure.rect["x"]) for figure in self.all("figure.chart")}
        self.assertEqual(len(lefts), 1)
        for figure in self.all("figure"):
            self.assertLessEqual(figure.rect["x"] + figure.rect["width"], 390)
        self.shoot("phone")
        BROWSER.execute_script("document.getElementById('curves').scrollIntoView({block: 'start', behavior: 'instant'})")
        self.shoot("report-phone")

    def test_print_without_controls_on_white(self):
        self.media(media="print", scheme="dark")
        for hidden in ("nav", "#theme", ".controls"):
            self.assertFalse(self.one(hidden).is_displayed(), hidden)
        self.assertGreater(self.luminance("body"), 0.999)
        self.assertLess(self.luminance("body", "color"), 0.3)
        pdf = base64.b64decode(BROWSER.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
        self.assertIn(pages, range(2, 12))
        if SCREENSHOTS is not None:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            (SCREENSHOTS / "report.pdf").write_bytes(pdf)
        self.size(794, 1123)
        self.shoot("print")


class Names(BrowserTest):
    def test_of_scores_may_be_what_javascript_calls_its_own(self):
        BROWSER.get((Path(FOLDER.name) / "odd.html").as_uri())
        drawn = [figure.get_attribute("data-metric") for figure in self.all("#charts figure")]
        for name in (*ODD_NAMES, "close", "accuracy"):
            self.assertIn(name, drawn)
            self.assertEqual(len(self.all(f'#charts figure[data-metric="{name}"] path.mean')), 2 if name == "accuracy" else 1, name)
        self.assertIn("constructor", self.js("document.getElementById('summary-table').textContent"))
        self.assertNotIn("[native code]", BROWSER.find_element(By.TAG_NAME, "body").text)
        self.assertTrue(self.one("#recipe-list details"))  # the last section is there


# Elements that are wider than the screen, or must be scrolled sideways. Navigation and recipes may be.
SIDEWAYS = """[...document.querySelectorAll("body *")].filter((node) => node.checkVisibility() && !node.closest("nav, pre, thead, .visually-hidden, .skip") &&
    (node.getBoundingClientRect().width > innerWidth + 1 || (node.scrollWidth > node.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(node).overflowX))))
    .map((node) => `${node.tagName} ${node.className.baseVal ?? node.className} ${node.textContent.slice(0, 40)}`)"""
# Texts that reach out of their card, unless something on the way cuts them off.
OUTSIDE = """(() => {
    const found = [];
    for (const card of document.querySelectorAll(".card")) {
        const frame = card.getBoundingClientRect();
        const walk = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const node = walk.currentNode, parent = node.parentElement;
            if (!node.data.trim() || !parent.checkVisibility() || parent.closest("title, thead, option")) continue;
            let cut = false;
            for (let up = parent; up !== card; up = up.parentElement) cut ||= !(up instanceof SVGElement) && getComputedStyle(up).overflowX !== "visible";
            if (cut) continue;
            const range = document.createRange();
            range.selectNodeContents(node);
            for (const box of range.getClientRects()) {
                if (box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)) {
                    found.push(`${card.className}: ${node.data.slice(0, 60)}`);
                    break;
                }
            }
        }
    }
    return found;
})()"""


class Hospitals(BrowserTest):
    def setUp(self):
        super().setUp()
        self.open("hospitals.html")

    def open(self, name):
        BROWSER.get((Path(FOLDER.name) / name).as_uri())

    def test_have_their_columns_by_name(self):
        names = [label.text for label in self.all("figure.forest:first-child li .label")]
        self.assertEqual(len(names), 40)
        for name in (LONG, NASTY, "W" * 60, "column 36"):
            self.assertTrue(any(name in label for label in names), name)
        self.assertEqual(self.all("img"), [])
        self.assertEqual(len(self.all("figure.forest")), 2)

    def test_have_intervals_where_they_are_told(self):
        shown = self.js("[...document.querySelectorAll('figure.forest')].map((figure) => figure.querySelectorAll('.reach').length)")
        told = self.js("data.groups.map((group) => data.runs[group.runs[0]].coefficients.rows.filter((row) => row.low !== null).length)")
        self.assertEqual(shown, told)
        self.assertEqual(sorted(told), [0, 40])  # an average has none
        self.assertIn(" to ", self.one("figure.forest .value").text)

    def test_have_an_estimate_inside_its_interval(self):
        off = self.js("""[...document.querySelectorAll("figure.forest li.row")].filter((row) => row.querySelector(".reach") && row.querySelector(".dot")).filter((row) => {
            const reach = row.querySelector(".reach").getBoundingClientRect(), dot = row.querySelector(".dot").getBoundingClientRect();
            return !(reach.left <= dot.left + dot.width / 2 && dot.left + dot.width / 2 <= reach.right);
        }).length""")
        self.assertEqual(off, 0)

    def test_keep_labels_inside_their_cards(self):
        for page in ("hospitals.html", "report.html", "told.html"):
            for width in (390, 820, 1280):
                self.size(width, 900, mobile=width < 800)
                self.open(page)
                self.assertEqual(self.js(OUTSIDE), [], (page, width))

    def test_need_no_sideways_scrolling_on_a_phone(self):
        self.size(390, 844, mobile=True)
        for page in ("hospitals.html", "report.html", "nasty.html"):
            self.open(page)
            self.assertLessEqual(self.js("document.scrollingElement.scrollWidth"), 390, page)
            self.assertEqual(self.js(SIDEWAYS), [], page)
            for score in self.all("#summary-table td.score"):
                self.assertTrue(0 <= score.rect["x"] and score.rect["x"] + score.rect["width"] <= 390)
                self.assertTrue(score.get_attribute("data-label"))
        self.open("hospitals.html")
        self.shoot("hospitals-phone", whole=True)

    def test_are_drawn_anew_when_the_screen_turns(self):
        self.size(390, 844, mobile=True)
        self.open("hospitals.html")
        narrow = self.js("document.querySelector('figure.per-client svg').getAttribute('viewBox')")
        self.size(1280, 900)
        deadline = time.monotonic() + 10
        while self.js("document.querySelector('figure.per-client svg').getAttribute('viewBox')") == narrow and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertNotEqual(self.js("document.querySelector('figure.per-client svg').getAttribute('viewBox')"), narrow)


class Judgement(BrowserTest):
    def test_marks_the_best_score_of_both_kinds(self):
        # Of every column the extreme one, at the mean and marginalised, computed here again.
        marked = self.js("""[...document.querySelectorAll("#summary-table tbody tr")].map((row) => [...row.querySelectorAll("td.score")].map((cell) =>
            [cell.querySelector(":scope > span:first-child").classList.contains("best"), cell.querySelector(".sub")?.classList.contains("best") ?? null]))""")
        groups, runs = self.js("data.groups"), self.js("data.runs")
        scores = [metric for metric in self.js("data.metrics") if metric["name"] != "train_loss"]
        seen = {0: 0, 1: 0}
        for column, metric in enumerate(scores):
            for kind, suffix in enumerate(("", "_marginal")):
                means = []
                for group in groups:
                    last = [[x for x in runs[run]["curves"].get(metric["name"] + suffix, []) if x is not None][-1:] for run in group["runs"]]
                    values = [x[0] for x in last if x]
                    means.append(sum(values) / len(values) if values else None)
                there = [mean for mean in means if mean is not None]
                if len(there) < 2 or min(there) == max(there):
                    continue
                best = max(there) if metric["larger_is_better"] else min(there)
                for row, mean in enumerate(means):
                    self.assertEqual(bool(marked[row][column][kind]), mean is not None and abs(mean - best) < 1e-12, (metric["name"], suffix, row))
                seen[kind] += 1
        self.assertGreater(seen[0], 3)
        self.assertGreater(seen[1], 3)
        weights = self.js("[...document.querySelectorAll('#summary-table .best')].map((node) => Number(getComputedStyle(node).fontWeight))")
        self.assertTrue(all(weight > 600 for weight in weights))

    def test_has_a_banner_for_an_improper_posterior(self):
        self.assertEqual(self.all("#notices .improper"), [])
        BROWSER.execute_script("data.runs[0].posterior = { round: 3, weights: 610, improper: 7, withheld: 'its posterior is improper' }; render();")
        banner = self.one("#notices .improper")
        self.assertIn("fed_avg: improper posterior: 7 of 610 weights have no standard deviation", banner.text)
        self.assertIn("distrust", banner.get_attribute("class"))

    def test_has_a_banner_for_a_posterior_that_still_moves(self):
        self.assertIn("it has not converged", self.one("#notices .distrust").text)

    def test_has_marginal_bars_beside_those_at_the_mean(self):
        bars = self.js("""[...document.querySelectorAll("figure.reliability")].map((figure) =>
            [figure.querySelectorAll("rect.bar:not(.marginal-bar)").length, figure.querySelectorAll("rect.marginal-bar").length])""")
        bins = self.js("""data.groups.map((group) => { const pooled = (kind) => pooledBins(group.runs.map((run) => data.runs[run].reliability[kind] ?? [])).filter((bin) => bin.weight > 0).length;
            return [pooled("point"), pooled("marginal")]; })""")
        self.assertEqual(bars, bins)
        self.assertEqual([marginal > 0 for _, marginal in bars], [False, False, True, True])


class Live(BrowserTest):
    def test_page_follows_a_run(self):
        run = PROGRAM.start("run", Path(RECIPES) / "synthetic.toml", "--out", Path(FOLDER.name) / "live", "--watch", "0",
                            "--set", "phase.1.rounds=1000000", "--set", "evaluate.every=1")  # fmt: skip
        try:
            address = re.search(r"http://\S+", run.stderr.readline())[0]
            BROWSER.get(address)
            self.assertIn("connect-src 'self'", BROWSER.page_source)
            deadline = time.monotonic() + 60
            while len(self.js("data.runs")) == 0 and time.monotonic() < deadline:
                time.sleep(0.2)
            before = self.js("data.runs[0].played")
            BROWSER.execute_script("document.getElementById('axis-bytes').click()")
            while self.js("data.runs[0].played") <= before and time.monotonic() < deadline:
                time.sleep(0.2)
            self.assertGreater(self.js("data.runs[0].played"), before)
            self.assertEqual(self.lines(), 1)
            self.assertEqual(self.js("state.axis"), "bytes")  # what the reader chose stays
            self.assertIn("live: round", self.one("#live").text)
            self.shoot("live")
        finally:
            run.kill()
            run.communicate()
        while "no answer" not in self.one("#live").text and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertIn("no answer", self.one("#live").text)
        BROWSER.get_log("browser")  # that nobody answers is what was asked for


if __name__ == "__main__":
    PROGRAM, RECIPES = Program(sys.argv.pop(1)), sys.argv.pop(1)
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and "." not in Path(sys.argv[1]).name:
        SCREENSHOTS = Path(sys.argv.pop(1))
    result = unittest.main(exit=False).result
    # 77: skipped, as ctest knows it.
    sys.exit(77 if result.skipped and result.testsRun == 0 else not result.wasSuccessful())
