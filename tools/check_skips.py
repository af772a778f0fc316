#!/usr/bin/env python3
"""Fails on a test that was skipped for want of something that tools/setup brings.

    tools/check_skips.py JUNIT…        exit code 0: all is well; 1: each finding as test: why it was skipped

JUNIT is what ctest writes (test presets: junit.xml). A test may skip for what no package brings: a GPU, the real data, the right
to mount; and for the packages of PyPI only where tools/peers could not fetch them. Whatever else is skipped must be argued for in
review, by a row of the table below.
"""

import argparse
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

# What a skipped test prints -> why that is no fault of the set-up.
MAY_LACK = {
    r"^no usable GPU: ": "a GPU",
    r"^needs the real data: |^FEDEP_DATA names no folder": "the real data sets",
    r"^mounting a tmpfs is not permitted|^needs a small file system": "the right to mount",
    r"holds no programs that can be run$": "a memory disk that programs may be run from",
    r"^this heap is not counted$": "a heap without sanitizer",
}
# The same where PyPI did not answer.
MAY_LACK_WITHOUT_PEERS = {
    r"^no Python has |^no python3 on the PATH has the package ": "PyPI",
}

PEERS = Path(__file__).resolve().parent.parent / "build" / "peers" / "made_of"


def reasons(output):
    """Why tests in this output were skipped, as GoogleTest and test/program.py print it."""
    return re.findall(r"^(?:skipped: |.*: Skipped\n)(.*)$", output, re.MULTILINE)


def skips(case):
    """Whether a test was skipped, or a part of it."""
    output = case.findtext("system-out", "")
    return case.find("skipped") is not None or re.search(r"\bskipped=\d|^\[  SKIPPED \]", output, re.MULTILINE)


def findings(report, may_lack):
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if not skips(case):
            continue
        said = reasons(case.findtext("system-out", ""))
        if not said:
            yield f"{case.get('name')}: skipped, and does not say why"
        for reason in said:
            if not any(re.search(pattern, reason) for pattern in may_lack):
                yield f"{case.get('name')}: skipped, though it should not be: {reason}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", metavar="JUNIT")
    parser.add_argument("--peers", type=Path, default=PEERS, help="a file that is there where PyPI answered")
    options = parser.parse_args()
    may_lack = list(MAY_LACK)
    if not options.peers.exists():
        may_lack += MAY_LACK_WITHOUT_PEERS
    found = [finding for report in options.reports for finding in findings(report, may_lack)]
    for finding in found:
        print(finding)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
