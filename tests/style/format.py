#!/usr/bin/python3
"""Every C++ file of the tree is as clang-format 14 lays it out by .clang-format; other versions lay it out differently."""
import re
import sys

from tree import Faults, files, needs, output

PROGRAM = "clang-format-14"


def main():
    needs(PROGRAM)
    faults = Faults()
    paths = files("src/**/*.[ch]pp", "tests/**/*.[ch]pp")
    _, errors, code = output(PROGRAM, "--dry-run", *paths)
    lines = re.findall(r"^(\S+?):(\d+):\d+: warning: code should be clang-formatted", errors, re.MULTILINE)
    for path, line in dict.fromkeys(lines):
        faults.add(path, line, "the layout differs from clang-format's", f"run {PROGRAM} -i {path}")
    if code != 0 or (errors and not lines):
        sys.exit(f"{PROGRAM} failed: {errors}")
    faults.finish(f"{len(paths)} files")


main()
