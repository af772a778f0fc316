#!/usr/bin/env python3
"""Every recipe, page and picture that pages, comments and commands name is there.

    recipe_paths_test.py ROOT
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = None
FOLDERS = ("app", "bench", "cmake", "docs", "example", "fedep", "recipe", "result", "test", "tools")

# recipe/table2/fed_ep_i.toml, recipe/table3/titles/*.toml, result/table2.md, docs/recipe.md
NAMED = re.compile(r"(?<![\w./}-])(?:recipe|result|docs)/[\w./{},*-]*\.(?:toml|md|jsonl|svg|png)\b")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
CODE = (".h", ".cpp", ".cu", ".cuh")
IN_RECIPE = re.compile(r"(?<![\w./*-])[\w.-]+\.toml\b")


def files(*suffixes):
    """Of the sources, with such a name or ending: not of builds and runs."""
    paths = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    return [path for path in sorted(paths) if path.is_file() and (path.suffix in suffixes or path.name in suffixes)]


def lines_of(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)


def expanded(name):
    """fed_{ep,sep}_i.toml -> both."""
    match = re.search(r"{([^{}]*)}", name)
    if not match:
        return [name]
    return [all_ for word in match[1].split(",") for all_ in expanded(name[: match.start()] + word + name[match.end() :])]


class NamedFiles(unittest.TestCase):
    def assert_there(self, path, number, name, folder):
        for one in expanded(name):
            found = list(folder.glob(one)) if "*" in one else (folder / one).exists()
            self.assertTrue(found, f"{path.relative_to(ROOT)}:{number} names {name}, which is not there")

    def test_in_pages_commands_and_comments_are_there(self):
        count = 0
        for path in files(".md", ".toml", ".cmake", ".txt", "Makefile", *CODE):
            for number, line in lines_of(path):
                text = line.partition("//")[2] if path.suffix in CODE else line
                for name in NAMED.findall(text):
                    count += 1
                    self.assert_there(path, number, name, ROOT)
        self.assertGreater(count, 60)

    def test_that_pages_link_to_are_there(self):
        for path in files(".md"):
            for number, line in lines_of(path):
                for name in LINK.findall(line):
                    self.assert_there(path, number, name, path.parent)

    def test_that_recipes_speak_of_are_beside_them(self):
        for path in (ROOT / "recipe").rglob("*.toml"):
            for number, line in lines_of(path):
                for name in IN_RECIPE.findall(line.partition("#")[2]):
                    self.assert_there(path, number, name, path.parent)


if __name__ == "__main__":
    ROOT = Path(sys.argv.pop(1)).resolve()
    unittest.main()
