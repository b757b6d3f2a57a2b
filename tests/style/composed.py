#!/usr/bin/python3
"""tests/contract/golden has `acquire` and `release` as the server runs them: embed.cmake makes the same of src/lua, and the marks
`--@ FILE LINE` in every script are right. RLOCK_UPDATE_GOLDEN=1 rewrites the golden texts: read the difference before you commit it."""
import os
import re

from compose import composed
from tree import TOP, Faults, needs, read

GOLDEN = "tests/contract/golden"
SHOWN = ("acquire", "release")
CONSTANTS = dict(re.findall(r"^([A-Z_]+) = (\S+)", read("src/lua/constants.lua"), re.MULTILINE))


def check_marks(name, text, faults):
    file, line = None, 0
    for row in text.splitlines():
        mark = re.fullmatch(r"--@ (\S+) (\d+)", row)
        if mark:
            file, line = mark[1], int(mark[2])
            source = read(f"src/lua/{file}").splitlines()
        elif file and line > len(source):
            continue  # a line of embed.cmake, around a module
        elif file:
            named = source[line - 1]
            row = re.sub(r"(?<![A-Za-z0-9_.'\"])M\.(?=[a-z_]+\.[a-z_]+\()", "", row)
            for _ in range(2):
                named = re.sub(r"(?<![A-Za-z_0-9'])([A-Z_]+)(?![A-Za-z_0-9'])", lambda word: CONSTANTS.get(word[1], word[1]), named)
            if named != row:
                faults.add(f"src/lua/{file}", line, f"is not the line that {name} has there", "embed.cmake counts wrongly")
                return
            line += 1


needs("cmake")
faults = Faults()
for script, made in composed().items():
    check_marks(script, made, faults)
    path = f"{GOLDEN}/{script}.txt"
    if script not in SHOWN:
        continue
    if os.environ.get("RLOCK_UPDATE_GOLDEN"):
        (TOP / GOLDEN).mkdir(exist_ok=True)
        (TOP / path).write_text(made, encoding="utf-8")
    elif not (TOP / path).exists() or read(path) != made:
        faults.add(path, 1, f"the composed {script} is another", "RLOCK_UPDATE_GOLDEN=1 python3 tests/style/composed.py writes it")
faults.finish("composed scripts")
