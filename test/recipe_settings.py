#!/usr/bin/env python3
"""The settings of every recipe, by key: who has which value. Kept in recipe_settings.txt, so that a slip in a file that
many recipes extend shows as what it is.

    recipe_settings.py PROGRAM RECIPE_FOLDER > recipe_settings.txt

A key with one value has it beside it; else each value is followed by the recipes that have it, `table2/*` being all of
that folder, and the most frequent one by "others". A key that some recipes do not have, for want of that phase or of an
optional section, is `-` there.
"""

import json
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from program import Program

ABSENT = "-"


def recipe_files(folder):
    """All recipes: not what others share, which need not be whole."""
    return sorted(path for path in Path(folder).rglob("*.toml") if path.name != "base.toml")


def name_of(path, folder):
    """table2/fed_ep_i"""
    return path.relative_to(folder).with_suffix("").as_posix()


def settings_of(program, path):
    """Every setting, defaults written out, as the program prints it."""
    done = program.run("check", path, "--settings")
    if done.returncode != 0:
        raise AssertionError(f"{path}: {done.stderr}")
    return tomllib.loads(done.stdout)


def flat(table, prefix=""):
    """phase.1.inference.alpha -> value"""
    items = enumerate(table) if isinstance(table, list) else table.items()
    for key, value in items:
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def grouped(names, folders):
    """Names, with folder/* for a folder that is among them whole."""
    names, words = set(names), []
    for folder, all_of_it in folders.items():
        there = [name for name in all_of_it if name in names]
        whole = folder != "." and len(there) == len(all_of_it)
        words += [f"{folder}/*"] if whole else there
    return " ".join(words)


def settings_text(recipes):
    """Of {name: settings}."""
    folders, by_key = defaultdict(list), defaultdict(lambda: defaultdict(list))
    flattened = {name: dict(flat(settings)) for name, settings in recipes.items()}
    keys = list(dict.fromkeys(key for settings in flattened.values() for key in settings))
    for name in recipes:
        folders[Path(name).parent.as_posix()].append(name)
    for key in keys:
        for name, settings in flattened.items():
            by_key[key][json.dumps(settings[key]) if key in settings else ABSENT].append(name)
    lines = [f"{len(recipes)} recipes"]
    for key in sorted(keys):
        if key in ("table", "row"):  # the recipe's name
            continue
        values = sorted(by_key[key].items(), key=lambda item: (len(item[1]), item[0]))
        if len(values) == 1:
            lines.append(f"{key} = {values[0][0]}")
            continue
        lines.append(key)
        lines += [f"  {value}: {grouped(names, folders)}" for value, names in values[:-1]]
        lines.append(f"  {values[-1][0]}: others")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PROGRAM, FOLDER = Program(sys.argv[1]), Path(sys.argv[2])
    print(settings_text({name_of(path, FOLDER): settings_of(PROGRAM, path) for path in recipe_files(FOLDER)}), end="")
