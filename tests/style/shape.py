#!/usr/bin/python3
"""No file of src and tests is over 800 lines, no line of C++ over .clang-format's limit. Each file of src/run, which several
processes and threads share, says in its first line where it runs. No Python file has the name of one of Python's
own modules, because each program next to it would import that file instead."""
import re
import sys

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
        if path.parts[:2] == ("src", "run") and not lines[0].startswith("// "):
            faults.add(path, 1, "no comment", "in which process and thread does it run?")
        if path.suffix == ".py" and path.stem in sys.stdlib_module_names:
            faults.add(path, 1, "a module of Python has this name", "give it another")
        if path.suffix in (".cpp", ".hpp"):
            for number, line in enumerate(lines, 1):
                if len(line) > columns:
                    faults.add(path, number, f"{len(line)} columns", f"at most {columns}")
    faults.finish(f"{len(paths)} files")


main()
