#!/usr/bin/python3
"""No file of src and tests is over 800 lines, no line of C++ over .clang-format's limit."""
import re

from tree import Faults, files, read

MOST_FILE = 800
SOURCES = ("cpp", "hpp", "lua", "py", "bats", "bash", "sh", "cmake", "js")


def main():
    faults = Faults()
    columns = int(re.search(r"^ColumnLimit: (\d+)$", read(".clang-format"), re.MULTILINE).group(1))
    paths = files(*(f"{folder}/**/*.{ending}" for folder in ("src", "tests") for ending in SOURCES))
    for path in paths:
        lines = read(path).splitlines()
        if len(lines) > MOST_FILE:
            faults.add(path, len(lines), f"the file has {len(lines)} lines", f"at most {MOST_FILE}: is it one thing?")
        if path.suffix in (".cpp", ".hpp"):
            for number, line in enumerate(lines, 1):
                if len(line) > columns:
                    faults.add(path, number, f"{len(line)} columns", f"at most {columns}")
    faults.finish(f"{len(paths)} files")


main()
