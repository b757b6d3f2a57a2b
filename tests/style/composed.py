#!/usr/bin/python3
"""Each script, as embed.cmake makes it of src/lua, compiles and uses only what it contains. Its marks `--@ FILE LINE` are right, and the
replacements of embed.cmake change no string. tests/contract/golden has `acquire` and `release` as the server runs them:
RLOCK_UPDATE_GOLDEN=1 rewrites these texts. Read the difference before you commit it."""
import os
import re

from compose import LUAC, composed, fault_of
from tree import TOP, Faults, needs, read

GOLDEN = "tests/contract/golden"
SHOWN = ("acquire", "release")
CONSTANTS = dict(re.findall(r"^([A-Z_]+) = (\S+)", read("src/lua/constants.lua"), re.MULTILINE))
STRING = re.compile(r"--.*|('(?:\\.|[^'\\])*')")  # comments are no strings


def replaced(line):
    """A line of src/lua as a script has it, but for the `M.` before a module."""
    for _ in range(2):
        line = re.sub(r"(?<![A-Za-z_0-9'])([A-Z_]+)(?![A-Za-z_0-9'])", lambda word: CONSTANTS.get(word[1], word[1]), line)
    return line


def check_lines(name, text, faults):
    file, line = None, 0
    for row in text.splitlines():
        mark = re.fullmatch(r"--@ (\S+) (\d+)", row)
        if mark:
            file, line = mark[1], int(mark[2])
            source = read(f"src/lua/{file}").splitlines()
        elif file and line > len(source):
            continue  # a line of embed.cmake, around a module
        elif file:
            written = source[line - 1]
            if replaced(written) != re.sub(r"(?<![A-Za-z0-9_.'\"])M\.(?=[a-z_]+\.[a-z_]+\()", "", row):
                faults.add(f"src/lua/{file}", line, f"is not the line that {name} has there", "embed.cmake counts wrongly")
                return
            if set(STRING.findall(written)) - set(STRING.findall(row)):
                faults.add(f"src/lua/{file}", line, "embed.cmake changes a string", "write it without the name of a constant or module")
            line += 1


def check_golden(script, made, faults):
    path = f"{GOLDEN}/{script}.txt"
    if os.environ.get("RLOCK_UPDATE_GOLDEN"):
        (TOP / GOLDEN).mkdir(exist_ok=True)
        (TOP / path).write_text(made, encoding="utf-8")
    elif not (TOP / path).exists() or read(path) != made:
        faults.add(path, 1, f"the composed {script} is another", "RLOCK_UPDATE_GOLDEN=1 python3 tests/style/composed.py writes it")


needs("cmake", LUAC)
faults = Faults()
for script, made in composed().items():
    why = fault_of(made)
    if why:
        faults.add(f"src/lua/{script}.lua", 1, why)
    check_lines(script, made, faults)
    if script in SHOWN:
        check_golden(script, made, faults)
faults.finish("composed scripts")
