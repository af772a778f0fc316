#!/usr/bin/env python3
"""Broken tables, as hospitals send them: each is refused or warned of by the right name, before anything is trained on it,
and clean tables are not.

    audit_test.py PROGRAM
"""

import csv
import json
import math
import os
import random
import sys
import unittest
from pathlib import Path

from program import FolderTest, Program

PROGRAM = None
ROOT = Path(__file__).resolve().parent.parent
HOSPITALS = {"north": 150, "south": 140, "east": 120, "west": 100}
HEADER = ["hospital", "died", "age", "weight", "lactate", "unit", "sex"]
RECIPE = """
[data]
name = "tabular"
path = "stays.csv"
client_column = "hospital"
label_column = "died"
label_positive = "yes"
label_negative = "no"
categories = ["unit", "sex"]
[server]
clients_per_round = 2
prior = { precision = 1.0 }
[[phase]]
algorithm = "fed_ep"
rounds = 1
factors = "flat"
"""


def stays(seed=5, hospitals=HOSPITALS):
    """Rows as lists of texts, below HEADER."""
    draw = random.Random(seed)
    rows = []
    for hospital, count in hospitals.items():
        for _ in range(count):
            age, weight, lactate = draw.gauss(60, 14), draw.gauss(80, 13), math.exp(draw.gauss(0.6, 0.4))
            unit, sex = draw.choice(["icu", "ward", "ward"]), draw.choice("fm")
            score = (age - 60) / 20 + (lactate - 2) - 0.5 + (0.8 if unit == "icu" else 0)
            died = "yes" if draw.random() < 1 / (1 + math.exp(-score)) else "no"
            rows.append([hospital, died, f"{age:.1f}", f"{weight:.1f}", f"{lactate:.2f}", unit, sex])
    return rows


def of(rows, hospital):
    return [row for row in rows if row[0] == hospital]


def with_column(rows, name, value, header=HEADER):
    """Header and rows with a column more; value(row, number)."""
    return [*header, name], [[*row, value(row, i)] for i, row in enumerate(rows)]


class Audit(FolderTest):
    def write(self, rows, header=HEADER):
        with open(self.folder / "stays.csv", "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        (self.folder / "stays.toml").write_text(RECIPE)

    def fedep(self, command, *settings, more=()):
        options = ["--data", ".", *more]
        for setting in settings:
            options += ["--set", setting]
        return PROGRAM.run(*command, "stays.toml", *options, cwd=self.folder)

    def findings(self, rows, header=HEADER, settings=(), code=0):
        """By name, as all three commands tell them."""
        self.write(rows, header)
        described = self.fedep(("data", "describe"), *settings, more=["--json"])
        self.assertEqual(described.returncode, code, described.stderr)
        found = json.loads(described.stdout)["findings"]
        lines = [f"{one['name']}: {one['text']}" for one in found]
        checked = self.fedep(("check",), *settings)
        self.runs = getattr(self, "runs", 0) + 1
        ran = self.fedep(("run",), *settings, more=["--out", f"run{self.runs}"])
        for done in (checked, ran):
            self.assertEqual(done.returncode == 2, code == 2, done.stderr)
            for one, line in zip(found, lines, strict=True):
                if one["refused"] == (code == 2):
                    self.assertIn(line.split(";")[0], done.stderr)
                    if code == 2:
                        break  # the first is named, the others counted
        by_name = {}
        for one in found:
            first = by_name.setdefault(one["name"], one)
            if first is not one:
                first["text"] += "\n" + one["text"]
        return by_name

    def assert_warned(self, name, rows, header=HEADER, settings=(), says=(), also=()):
        """By this name, and no others than `also`."""
        found = self.findings(rows, header, settings)
        self.assertIn(name, found, list(found.values()))
        self.assertFalse(found[name]["refused"])
        self.assertLessEqual(set(found), {name, *also}, list(found.values()))
        for text in says:
            self.assertIn(text, found[name]["text"])

    def assert_refused(self, name, rows, header=HEADER, settings=(), says=()):
        found = self.findings(rows, header, settings, code=2)
        self.assertTrue(found[name]["refused"])
        for text in says:
            self.assertIn(text, found[name]["text"])

    def assert_refused_at_once(self, rows, header=HEADER, settings=(), says=()):
        """While reading, so that there is nothing to describe."""
        self.write(rows, header)
        for command, more in ((("data", "describe"), []), (("check",), []), (("run",), ["--out", "run"])):
            done = self.fedep(command, *settings, more=more)
            self.assertEqual(done.returncode, 2, done.stderr)
            for text in says:
                self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "run").exists())


class CleanTables(Audit):
    def assert_clean(self, rows, header=HEADER, settings=()):
        self.assertEqual(self.findings(rows, header, settings), {})

    def test_have_no_finding(self):
        for seed in range(5, 9):
            with self.subTest(seed=seed):
                self.assert_clean(stays(seed))

    def test_of_forty_small_hospitals(self):
        self.assert_clean(stays(11, {f"h{i}": 12 + i % 5 for i in range(40)}))

    def test_of_whole_numbers(self):
        """Ages in years, heart rates, birth weights in grams: whole, but no ids."""
        draw = random.Random(3)
        rows = [
            [h, d, str(round(float(a))), str(round(float(w))), str(draw.randrange(45, 160)), u, s]
            for h, d, a, w, _, u, s in stays()
        ]
        header, rows = with_column(rows, "birth_weight", lambda row, i: str(round(draw.gauss(3300, 500))))
        self.assert_clean(rows, header)

    def test_of_few_kinds_of_rows(self):
        """Yes or no in all columns: equal rows are no copies."""
        header = ["hospital", "died", "diabetes", "smokes", "unit", "sex"]
        draw = random.Random(4)
        rows = [
            [row[0], row[1], str(int(draw.random() < 0.3)), str(int(draw.random() < 0.4)), row[5], row[6]]
            for row in stays()
        ]
        self.assert_clean(rows, header)

    def test_of_numbers_of_both_signs(self):
        """A base excess of -9, a score of 99 among others like them."""
        draw = random.Random(6)
        header, rows = with_column(stays(), "excess", lambda row, i: str(round(draw.gauss(-1, 6))))
        header, rows = with_column(rows, "score", lambda row, i: str(draw.randrange(40, 130)), header)
        self.assert_clean(rows, header)

    def test_with_missing_values(self):
        draw = random.Random(7)
        rows = [[cell if j < 2 or draw.random() > 0.1 else "" for j, cell in enumerate(row)] for row in stays()]
        self.assert_clean(rows)

    def test_of_hospitals_that_differ_somewhat(self):
        rows = stays()
        for row in of(rows, "west"):
            row[2] = f"{float(row[2]) + 12:.1f}"
        self.assert_clean(rows)

    def test_heart_disease_and_eicu(self):
        """What they may warn of is true of them: Switzerland has no cholesterol, stays without a score repeat, ..."""
        data = os.environ.get("FEDEP_DATA", "")
        allowed = {
            "heart_disease/ep": {"missing-at-client", "duplicated-rows"},
            "eicu/sep": {"missing-at-client", "duplicated-rows", "group-at-two-clients", "rows-left-out"},
        }
        for recipe, names in allowed.items():
            if not (Path(data) / recipe.split("/")[0].replace("eicu", "eicu_demo")).is_dir():
                continue
            done = PROGRAM.run("data", "describe", ROOT / "recipe" / f"{recipe}.toml", "--json")
            self.assert_succeeds(done)
            self.assertEqual({one["name"] for one in json.loads(done.stdout)["findings"]}, names)


class BrokenValues(Audit):
    def test_01_other_units_at_one_hospital(self):
        rows = stays()
        for row in of(rows, "south"):
            row[3] = f"{float(row[3]) * 2.2046:.1f}"
        self.assert_refused("other-units-or-coding", rows, says=["weight", "south", "other units"])

    def test_02_other_units_taken_as_missing(self):
        rows = stays()
        for row in of(rows, "south"):
            row[3] = f"{float(row[3]) * 2.2046:.1f}"
        self.assert_warned("other-units-or-coding", rows, settings=["data.scale=robust"], says=["south"])

    def test_03_a_value_of_1e9(self):
        rows = stays()
        rows[7][2] = "1e9"
        self.assert_refused("outlying-value", rows, says=["age", "north", "1 of "])

    def test_04_minus_999(self):
        rows = stays()
        for row in of(rows, "south")[:9]:
            row[4] = "-999"
        says = ["lactate", "-999 in 9 rows", "9 at south", "line 152", 'data.missing = ["-999"']
        self.assert_refused("missing-code", rows, says=says)
        self.assertEqual(self.findings(rows, settings=['data.missing=["-999", "NA"]']), {})

    def test_05_minus_9_and_minus_99(self):
        rows = stays()
        rows[3][4], rows[200][3] = "-9", "-99"
        self.assert_refused("missing-code", rows, says=["weight has -99 in 1 row", "lactate has -9 in 1 row"])

    def test_06_999_in_a_column_at_all_hospitals(self):
        rows = stays()
        for row in rows[::7]:
            row[2] = "999"
        self.assert_refused("missing-code", rows, says=["age has 999", "and all else lies in"])

    def test_07_a_code_among_outcomes_that_are_numbers(self):
        rows = [[h, f"{float(a) / 6:.1f}", a, w, x, u, s] for h, _, a, w, x, u, s in stays()]
        rows[11][1] = rows[12][1] = "-99"
        self.assert_refused("missing-code", rows, settings=["data.label=number"], says=["died has -99 in 2 rows"])

    def test_08_a_code_that_is_said_to_be_a_number(self):
        rows = stays()
        for row in rows[::50]:
            row[4] = "-9"
        self.assert_warned(
            "missing-code", rows, settings=["data.missing=NA"], also=["outlying-value"], says=["counts as a number"]
        )

    def test_09_texts_for_missing_values(self):
        rows = stays()
        for i, text in enumerate(["NA", "N/A", "NULL", ".", "nan", "null", "NaN", "?", ""]):
            rows[i][2], rows[20 + i][5] = text, text
        self.assertEqual(self.findings(rows), {})
        described = json.loads(self.fedep(("data", "describe"), more=["--json"]).stdout)
        self.assertEqual([c["missing"] for c in described["columns"]], [9, 0, 0, 9, 0])

    def test_10_a_text_for_a_missing_value_that_is_not_known(self):
        rows = stays()
        rows[4][2] = "unknown"
        self.assert_warned("rows-left-out", rows, says=["line 6: age is unknown", "data.missing", "1 at north"])


class BrokenColumns(Audit):
    def test_11_a_column_twice(self):
        header, rows = with_column(stays(), "weight_kg", lambda row, i: row[3])
        self.assert_warned("duplicated-columns", rows, header, says=["weight and weight_kg"])

    def test_12_a_category_twice(self):
        header, rows = with_column(stays(), "ward", lambda row, i: row[5])
        settings = ['data.categories=["unit", "sex", "ward"]']
        self.assert_warned("duplicated-columns", rows, header, settings, says=["unit and ward"], also=["collinear-columns"])

    def test_13_a_column_in_two_units(self):
        header, rows = with_column(stays(), "pounds", lambda row, i: f"{float(row[3]) * 2.2046:.4f}")
        self.assert_warned("collinear-columns", rows, header, says=["pounds", "weight"])

    def test_14_a_column_that_is_the_sum_of_two(self):
        header, rows = with_column(stays(), "total", lambda row, i: f"{float(row[2]) + float(row[3]):.1f}")
        self.assert_warned("collinear-columns", rows, header, says=["total follows exactly from age, weight"])

    def test_15_columns_that_nearly_say_the_same(self):
        draw = random.Random(9)
        header, rows = with_column(stays(), "height", lambda row, i: f"{float(row[3]) + draw.gauss(0, 2):.2f}")
        self.assert_warned("collinear-columns", rows, header, says=["variance inflation", "height 38.6", "weight 38.6"])

    def test_16_ids_that_count(self):
        header, rows = with_column(stays(), "number", lambda row, i: str(1000 + i))
        self.assert_warned("id-as-number", rows, header, says=["number", "data.id_column"])
        self.assertEqual(self.findings(rows, header, ["data.id_column=number"]), {})

    def test_17_ids_that_are_drawn(self):
        draw = random.Random(10)
        header, rows = with_column(stays(), "code", lambda row, i: str(draw.randrange(10**6, 10**7)))
        self.assert_warned("id-as-number", rows, header, says=["code"])
        self.assertEqual(self.findings(rows, header, ["data.drop=code"]), {})

    def test_18_ids_by_their_name(self):
        header, rows = with_column(stays(), "PatientID", lambda row, i: str(i // 3 * 17 % 211))
        self.assert_warned("id-as-number", rows, header, says=["PatientID", "data.group_column"])
        self.assertEqual(self.findings(rows, header, ["data.drop=PatientID"]), {})

    def test_19_a_category_with_hundreds_of_values(self):
        draw = random.Random(12)
        header, rows = with_column(stays(), "icd", lambda row, i: f"D{draw.randrange(400)}")
        settings = ['data.categories=["unit", "sex", "icd"]']
        self.assert_warned("many-levels", rows, header, settings, says=["icd"], also=["separation", "collinear-columns"])

    def test_20_a_column_that_knows_the_outcome(self):
        header, rows = with_column(stays(), "days", lambda row, i: str(1 + i % 5 if row[1] == "yes" else 8 + i % 9))
        self.assert_warned("separation", rows, header, says=["days", "1 to 5", "8 to 16"])

    def test_21_a_value_that_all_survive(self):
        rows = stays()
        for row in [row for row in rows if row[1] == "no"][:14]:
            row[5] = "day clinic"
        self.assert_warned("separation", rows, says=['no row has the outcome in "day clinic" (14)'])

    def test_22_a_yes_that_always_means_death(self):
        died = [i for i, row in enumerate(stays()) if row[1] == "yes"][:6]
        header, rows = with_column(stays(), "arrest", lambda row, i: str(int(i in died)))
        self.assert_warned("separation", rows, header, says=["arrest"])

    def test_23_nine_tenths_missing(self):
        header, rows = with_column(stays(), "troponin", lambda row, i: f"0.{i % 7}1" if i % 12 == 0 else "")
        self.assert_warned("mostly-missing", rows, header, says=["troponin has a value in 43 of 510 rows", "92 %"])

    def test_24_a_column_that_one_hospital_lacks(self):
        rows = stays()
        for row in of(rows, "east"):
            row[3] = "NA"
        self.assert_warned("missing-at-client", rows, says=["weight", "120 at east", "1 of 4 clients"])

    def test_25_a_column_that_does_not_vary(self):
        header, rows = with_column(stays(), "year", lambda row, i: "2014")
        self.assert_warned("constant-columns", rows, header, says=["year"])

    def test_26_the_outcome_among_the_features(self):
        rows = [[h, f"{float(a) / 6 + float(x):.2f}", a, w, x, u, s] for h, _, a, w, x, u, s in stays()]
        header, rows = with_column(rows, "hours", lambda row, i: f"{24 * float(row[1]):.2f}")
        settings = ["data.label=number"]
        self.assert_warned("outcome-among-features", rows, header, settings, says=["hours"], also=["collinear-columns"])

    def test_27_fewer_rows_than_coefficients(self):
        draw = random.Random(13)
        rows = stays(14, {"north": 12, "south": 11})
        header = list(HEADER)
        for j in range(20):
            header, rows = with_column(rows, f"x{j}", lambda row, i: f"{draw.gauss(0, 1):.3f}", header)
        found = self.findings(rows, header)
        self.assertIn("19 training rows for 26 coefficients", found["fewer-rows-than-coefficients"]["text"])


class BrokenRows(Audit):
    def test_28_a_header_again(self):
        rows = stays()
        rows.insert(290, list(HEADER))
        rows.insert(450, [name.upper() for name in HEADER])
        self.assert_warned("repeated-header", rows, says=["2 of the rows", "line 292"])
        described = json.loads(self.fedep(("data", "describe"), more=["--json"]).stdout)
        self.assertEqual((described["rows"], described["skipped_records"]), (510, 0))

    def test_29_a_header_again_in_another_order(self):
        rows = stays()
        other = [HEADER[0], HEADER[1], HEADER[3], HEADER[2], *HEADER[4:]]
        rows = rows[:290] + [other] + [[h, d, w, a, x, u, s] for h, d, a, w, x, u, s in rows[290:]]
        self.assert_refused_at_once(rows, says=["repeated-header", "line 292", "weight where the first header has age"])

    def test_30_a_header_again_whose_hospital_is_elsewhere(self):
        rows = stays()
        rows = rows[:290] + [HEADER[1:] + HEADER[:1]] + [row[1:] + row[:1] for row in rows[290:]]
        self.assert_refused_at_once(rows, says=["repeated-header", "line 292"])

    def test_31_a_header_of_another_table(self):
        rows = stays()
        rows.insert(290, [*HEADER[:5], "department", "gender"])
        self.assert_refused_at_once(rows, says=["repeated-header", "line 292", "2 of 7 are others"])

    def test_32_rows_twice(self):
        rows = stays()
        rows = rows[:100] + rows[60:80] + rows[100:]
        self.assert_warned("duplicated-rows", rows, says=["20 rows", "20 at north", "line 102 is line 62 again"])

    def test_33_a_hospital_twice(self):
        rows = stays()
        rows += of(rows, "east")
        self.assert_warned("duplicated-rows", rows, says=["120 rows", "120 at east"])

    def test_34_a_hospital_that_loses_all_its_rows(self):
        rows = stays()
        for row in of(rows, "west"):
            row[2] = row[2].replace(".", ",")
        self.assert_warned(
            "lost-client", rows, also=["rows-left-out"], says=["west has none of its 100 rows left", "which is no number"]
        )

    def test_35_a_patient_at_two_hospitals(self):
        header, rows = with_column(stays(), "patient", lambda row, i: f"{row[0][0]}{i // 2}" if i > 40 else f"p{i}")
        rows[200][-1] = "p3"
        settings = ["data.group_column=patient"]
        self.assert_warned("group-at-two-clients", rows, header, settings, says=["p3 at north and south", "1 of "])

    def test_36_a_patient_in_training_and_test(self):
        header, rows = with_column(stays(), "patient", lambda row, i: f"{row[0]}{i // 2}")
        header, rows = with_column(rows, "part", lambda row, i: "test" if i % 4 == 0 else "train", header)
        settings = ["data.group_column=patient", "data.test_column=part"]
        self.assert_warned("group-in-training-and-test", rows, header, settings)

    def test_37_rows_without_a_patient(self):
        header, rows = with_column(stays(), "patient", lambda row, i: "" if i < 30 else f"p{i}")
        self.assert_warned("no-group", rows, header, ["data.group_column=patient"], says=["30 rows"])


class Combinations(Audit):
    def test_38_a_bad_export_of_everything(self):
        header, rows = with_column(stays(), "mrn", lambda row, i: str(5000 + i))
        header, rows = with_column(rows, "weight_copy", lambda row, i: row[3], header)
        rows.insert(77, list(header))
        for row in rows[100:110]:
            row[2] = "N/A"
        rows += rows[300:310]
        found = self.findings(rows, header)
        self.assertEqual(set(found), {"repeated-header", "id-as-number", "duplicated-columns", "duplicated-rows"})

    def test_39_codes_and_units(self):
        """Both refused, and the code, which is named first, is not hidden by the units."""
        rows = stays()
        for row in of(rows, "east"):
            row[3] = f"{float(row[3]) * 2.2046:.1f}"
        for row in of(rows, "north")[:5]:
            row[4] = "-999"
        found = self.findings(rows, code=2)
        self.assertEqual({name for name, one in found.items() if one["refused"]}, {"missing-code", "other-units-or-coding"})

    def test_40_what_is_wrong_does_not_hide_what_else_is(self):
        rows = stays()
        for row in of(rows, "west"):
            row[2] = "eighty"
        for row in of(rows, "east"):
            row[3] = "NA"
        rows += of(rows, "south")[:12]
        found = self.findings(rows)
        self.assertEqual(set(found), {"lost-client", "rows-left-out", "missing-at-client", "duplicated-rows"})


class Describe(Audit):
    def test_counts_what_is_there(self):
        rows = stays()
        rows[0][2] = ""
        self.write(rows)
        done = json.loads(self.fedep(("data", "describe"), more=["--json", "--per-client"]).stdout)
        ages = [float(row[2]) for row in rows if row[2]]
        mean = sum(ages) / len(ages)
        age = done["columns"][0]
        self.assertEqual((age["column"], age["n"], age["missing"]), ("age", 509, 1))
        self.assertEqual(age["events"], sum(row[1] == "yes" for row in rows if row[2]))
        self.assertAlmostEqual(age["mean"], mean)
        self.assertAlmostEqual(age["sd"], math.sqrt(sum((a - mean) ** 2 for a in ages) / len(ages)))
        self.assertEqual((age["min"], age["max"]), (min(ages), max(ages)))
        for client, hospital in zip(done["clients"], HOSPITALS, strict=True):
            own = of(rows, hospital)
            self.assertEqual((client["client"], client["rows"]), (hospital, len(own)))
            self.assertEqual(client["events"], sum(row[1] == "yes" for row in own))
            weights = [float(row[3]) for row in own]
            self.assertAlmostEqual(client["columns"][1]["mean"], sum(weights) / len(weights))
        levels = {level["value"]: level["n"] for level in done["columns"][3]["levels"]}
        self.assertEqual(levels, {u: sum(row[5] == u for row in rows) for u in ("icu", "ward")})
        self.assertLess(age["vif"], 1.2)

    def test_shows_one_hospital_or_one_column(self):
        self.write(stays())
        whole = self.fedep(("data", "describe")).stdout
        self.assertNotIn("client north", whole)
        self.assertIn("nothing was found to be wrong", whole)
        one = self.fedep(("data", "describe"), more=["--client", "east"]).stdout
        self.assertIn("client east: 120 rows", one)
        self.assertNotIn("client north", one)
        column = self.fedep(("data", "describe"), more=["--column", "age"]).stdout
        for hospital in HOSPITALS:
            self.assertIn(f"\n{hospital} ", column)
        self.assert_one_line(self.fedep(("data", "describe"), more=["--client", "eats"]), 2, "did you mean east?")
        self.assert_one_line(self.fedep(("data", "describe"), more=["--column", "aeg"]), 2, "did you mean age?")


if __name__ == "__main__":
    PROGRAM = Program(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
