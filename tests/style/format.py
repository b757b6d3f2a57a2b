#!/usr/bin/python3
"""Every C++ file of the tree is as clang-format 14 lays it out by .clang-format; other versions lay it out differently."""
import re
import shutil
import subprocess
import sys

from tree import TOP, Faults, files

PROGRAM = "clang-format-14"
SKIPPED = 77


def main():
    if not shutil.which(PROGRAM):
        print(f"skipped: {PROGRAM} is not installed (Debian 12 has it)")
        sys.exit(SKIPPED)
    faults = Faults()
    paths = [str(path) for path in files("src/**/*.[ch]pp", "tests/**/*.[ch]pp")]
    done = subprocess.run([PROGRAM, "--dry-run", *paths], cwd=TOP, stderr=subprocess.PIPE, text=True, check=False)
    lines = re.findall(r"^(\S+?):(\d+):\d+: warning: code should be clang-formatted", done.stderr, re.MULTILINE)
    for path, line in dict.fromkeys(lines):
        faults.add(path, line, "the layout differs from clang-format's", f"run {PROGRAM} -i {path}")
    if done.returncode != 0 or (done.stderr and not lines):
        sys.exit(f"{PROGRAM} failed: {done.stderr}")
    faults.finish(f"{len(paths)} files")


main()
