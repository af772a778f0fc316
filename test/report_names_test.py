#!/usr/bin/env python3
"""Names in a run's files and in recipes stay names: `fedep report`, `reproduce` and `compare` make no paths and no escape
codes of them.

    report_names_test.py PROGRAM
"""

import json
import math
import re
import sys
import unittest

from program import Program, json_lines
from reports import SYNTHETIC, ReportTest


class Names(ReportTest):
    """Names that a file gives to things stay names, wherever they come up."""

    HOSTILE = "/../../../owned\0"

    def with_score(self, run, name, value="0.5"):
        """A run whose log has a score of this name, besides its own."""
        log = run / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if line["kind"] == "round":
                line[name] = float(value)
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return run

    def files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}

    def test_of_scores_name_no_file_elsewhere(self):
        deep = self.folder / "a" / "b" / "c"
        deep.mkdir(parents=True)
        self.with_score(self.play("a/b/c/run"), self.HOSTILE)
        outside = self.folder / "owned"
        outside.write_text("mine")
        before = self.files()
        done = self.assert_succeeds(self.program.run("report", "run", "--figure", "f", cwd=deep))
        self.assertEqual(outside.read_text(), "mine")
        new = self.files() - before
        self.assertTrue(all(re.fullmatch(r"a/b/c/f-[\w%.-]+\.svg", name) for name in new), new)
        self.assertIn("a/b/c/f-%2F..%2F..%2F..%2Fowned%00.svg", new)
        self.assertIn("f-%2F..%2F..%2F..%2Fowned%00.svg", done.stdout.splitlines())

    def test_of_rows_and_tables_are_no_folders_elsewhere(self):
        for key in ("row", "table"):
            names = {"table": "mine", "row": "first", key: "../../../x"}
            head = "".join(f'{name} = "{value}"\n' for name, value in names.items())
            (self.folder / "deep" / "recipe").mkdir(parents=True, exist_ok=True)
            (self.folder / "deep" / "recipe" / "one.toml").write_text(head + SYNTHETIC)
            before = self.files()
            done = self.program.run("reproduce", names["table"], cwd=self.folder / "deep")
            self.refused(done, f"one.toml: {key} must be", "../../../x")
            self.assertEqual(self.files(), before)

    def test_are_only_shown_by_a_terminal(self):
        run = self.with_score(self.play("run"), "\x1b[31mred\u202e\n")
        done = self.assert_succeeds(self.program.run("compare", run))
        self.assertNotIn("\x1b", done.stdout)
        tables = [block.splitlines() for block in done.stdout.split("\n\n")]
        self.assertIn("\\x1b[31mred\\u202e\\x0a", tables[-1][0])
        self.assertEqual([len(lines) for lines in tables], [2] * len(tables))
        self.refused(self.program.run("check", "\x1b[31mred.toml", cwd=self.folder), "\\x1b[31mred.toml")

    def test_scores_that_hardly_differ_are_drawn(self):
        run = self.play("run")
        lines = json_lines(run / "log.jsonl")
        for line in lines:
            if line["kind"] == "round":
                line["close"] = math.nextafter(0.5, 1) if line["round"] % 2 else 0.5
        (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assert_succeeds(self.report("run", "--figure", "f", "--score", "close"))
        self.assertLess((self.folder / "f-close.svg").stat().st_size, 20000)


if __name__ == "__main__":
    ReportTest.program = Program(sys.argv.pop(1))
    unittest.main()
