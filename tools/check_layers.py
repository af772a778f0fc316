#!/usr/bin/env python3
"""Fails on an include that the layers forbid, on a file that no CMakeLists.txt names, where an installed header or an
example includes a header that is not installed, and where a file is read past the functions that refuse hostile ones.

    tools/check_layers.py [ROOT]        exit code 0: all is well; 1: each finding as file:line: what

Dependencies point one way. The tables below are the rule; whoever needs a new row argues for it in review.
"""

import re
import sys
from pathlib import Path

# Folder of fedep/ -> the other folders of fedep/ whose headers it may include.
LAYERS = {
    "random": "",
    "message": "random",
    "algorithm": "message",
    "optim": "message",
    "metric": "message",
    "config": "message algorithm optim",
    "round": "random message algorithm optim metric config",
    "store": "random message algorithm optim metric config round",
    "model": "random message config data",
    "data": "random message config",
    "inference": "random message algorithm config model data round",
    "cuda": "random message algorithm optim config data model inference round",
    "sim": "random message algorithm optim metric config round store model data inference cuda",
    "page": "message algorithm metric config round store",
}

# Unit tests may draw random messages, whatever their folder.
TESTS_ALSO = "random message"

# These stand above all folders of fedep/ and may include any of them, and their own headers.
ABOVE = ["app", "bench", "example", "test"]

# Pattern of an outside header -> the folders that may include it.
OUTSIDE = {
    r"(torch|ATen|c10|caffe2)/": "model data inference cuda sim app bench example test",
    r"(cuda|cublas|cudnn|cub/|nvtx|mma\.h)": "cuda sim bench",
    r"mpi\.h": "sim test",
    r"CLI/": "app",
    r"Eigen/": "message algorithm data inference sim app bench example test",
    r"toml\+\+/|toml\.hpp": "config",
    r"nlohmann/": "message config metric store data sim page app bench test",
    r"xxhash\.h": "random message store data",
    r"(hdf5|H5\w*|sqlite3|zlib)\.h": "data",
    r"(cblas|cblas-openblas|openblas_config)\.h": "data model inference sim bench",
    r"benchmark/": "bench",
}

# Ways to read that know no limits -> what is used instead, in fedep/ and app/. Tests read as they like.
UNLIMITED = {
    r"std::ifstream|std::fstream|\bfopen\(|\bgzopen\(": "open_file of fedep/message/read_file.h, which opens regular files only",
    r"[Jj]son::(parse|accept)\((?!shallow_json|line_of)": "parse_json of fedep/message/parse_json.h, or shallow_json around the text",
}
# What these read is the system's own.
TRUSTED = {"fedep/sim/machine.cpp", "app/run/memory_warning.cpp", "app/run/size_plan.cpp"}

SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')
PRINT = re.compile(r"\bfmt::print\(|\bstd::(cout|cerr)\b|\bstd::(puts|printf|fprintf|fputs)\(")


def forbidden(folder, is_test, quoted, header):
    """Why `folder` may not include `header`, or None."""
    first, _, rest = header.partition("/")
    if first == "fedep":
        other = rest.partition("/")[0]
        if other not in LAYERS:
            return f"there is no folder fedep/{other} in the layer table"
        allowed = [folder, *LAYERS.get(folder, "").split(), *(TESTS_ALSO.split() if is_test else [])]
        if folder in ABOVE or other in allowed:
            return None
        return f"{folder} may not include {header}; it may include: {LAYERS[folder] or 'no other folder'}"
    if first in ABOVE and rest:
        if folder == "test" and first == "app":  # fuzz targets call the readers that app has
            return None
        return None if first == folder else f"{folder} may not include {header}: {first} is not a library"
    for pattern, folders in OUTSIDE.items():
        if re.match(pattern, header):
            return None if folder in folders.split() else f"{folder} may not include {header}; {folders} may"
    if re.match(r"(gtest|gmock)/", header):
        return None if is_test or folder == "test" else f"{header} belongs into a _test.cpp or a test_….h"
    if quoted:
        return f'"{header}" is not a path from the root of the repository, such as "fedep/message/check.h"'
    return None


def check_file(root, path, folder):
    is_test = path.stem.endswith("_test") or path.stem.startswith("test_")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            if why := forbidden(folder, is_test, match[2] is not None, match[1] or match[2]):
                yield f"{path.relative_to(root)}:{number}: {why}"


def check_prints(root, path):
    """The program says all through app/output.h, which knows full and closed streams and what a terminal would obey."""
    if path.parent.name == "app" and path.stem == "output" or path.stem.endswith("_test"):
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if PRINT.search(line.partition("//")[0]):
            yield f"{path.relative_to(root)}:{number}: prints by itself; app/output.h has say() and print_text()"


def check_reading(root, path):
    name = path.relative_to(root).as_posix()
    is_ours = name.startswith(("fedep/", "app/")) and name not in TRUSTED
    if not is_ours or path.stem.endswith(("_test", "_fuzz")) or path.stem.startswith("test_"):
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for pattern, instead in UNLIMITED.items():
            if re.search(pattern, line.partition("//")[0]):
                yield f"{name}:{number}: reads without limits; use {instead}"


def check_listed(root, path, folder_path):
    """A source or test that no list names would silently be neither built nor run."""
    lists = folder_path / "CMakeLists.txt"
    name = path.relative_to(folder_path).as_posix()
    if not lists.is_file() or not re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", lists.read_text()):
        yield f"{path.relative_to(root)}:1: not named in {lists.relative_to(root)}"


def public_headers(root):
    """What the PUBLIC lists of fedep/*/CMakeLists.txt name, as includes do."""
    for lists in sorted(root.glob("fedep/*/CMakeLists.txt")):
        for names in re.findall(r"\bPUBLIC((?:\s+[\w./]+\.h)+)", lists.read_text()):
            yield from (f"fedep/{lists.parent.name}/{name}" for name in names.split())


def check_public(root):
    public = set(public_headers(root))
    examples = sorted(path.relative_to(root).as_posix() for path in root.glob("example/*.cpp"))
    for name in [*sorted(public), *examples]:
        if not (root / name).is_file():
            yield f"{name}:1: is PUBLIC, but not there"
            continue
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1):
            match = INCLUDE.match(line)
            if match and match[2] and match[2] not in public:
                yield f"{name}:{number}: {match[2]} is not PUBLIC, so nobody outside can include it"


def check_tree(root):
    yield from check_public(root)
    folders = {path.name: path for path in sorted(root.glob("fedep/*")) if path.is_dir()}
    for name in folders.keys() - LAYERS.keys():
        yield f"fedep/{name}:1: there is no folder {name} in the layer table"
    folders |= {name: root / name for name in ABOVE}
    for folder, folder_path in folders.items():
        if folder not in LAYERS and folder not in ABOVE:
            continue
        for path in sorted(p for p in folder_path.rglob("*") if p.suffix in SUFFIXES):
            yield from check_file(root, path, folder)
            if folder == "app":
                yield from check_prints(root, path)
            yield from check_reading(root, path)
            yield from check_listed(root, path, folder_path)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    findings = list(check_tree(root))
    print("\n".join(findings) if findings else "every include follows the layers")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
