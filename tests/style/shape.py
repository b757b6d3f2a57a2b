#!/usr/bin/python3
"""No file of src and tests is over 400 lines, no function over 40, no line of C++ over .clang-format's limit."""
import ast
import re

import cpp
from tree import Faults, files, read

MOST_FILE = 400
MOST_FUNCTION = 40
SOURCES = ("cpp", "hpp", "lua", "py", "bats", "bash", "sh", "cmake", "js")


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def functions(path, text):
    if path.suffix in (".cpp", ".hpp"):
        return cpp.functions(text)
    return python_functions(text) if path.suffix == ".py" else ()


def main():
    faults = Faults()
    columns = int(re.search(r"^ColumnLimit: (\d+)$", read(".clang-format"), re.MULTILINE).group(1))
    paths = files(*(f"{folder}/**/*.{ending}" for folder in ("src", "tests") for ending in SOURCES))
    for path in paths:
        text = read(path)
        lines = text.splitlines()
        if len(lines) > MOST_FILE:
            faults.add(path, len(lines), f"the file has {len(lines)} lines", f"at most {MOST_FILE}: split it by subject")
        for name, line, length in functions(path, text):
            if length > MOST_FUNCTION:
                faults.add(path, line, f"{name} has {length} lines", f"at most {MOST_FUNCTION}: name its parts")
        if path.suffix in (".cpp", ".hpp"):
            for number, line in enumerate(lines, 1):
                if len(line) > columns:
                    faults.add(path, number, f"{len(line)} columns", f"at most {columns}")
    faults.finish(f"{len(paths)} files")


main()
