#!/usr/bin/python3
"""tests/contract/golden has `acquire` and `release` as the server runs them: embed.cmake makes the same of src/lua, and the marks
`--@ FILE LINE` in every script are right. RLOCK_UPDATE_GOLDEN=1 rewrites the golden texts: read the difference before you commit it."""
import os
import re
import tempfile

from tree import TOP, Faults, needs, output, read

GOLDEN = "tests/contract/golden"
SHOWN = ("acquire", "release")
SCRIPTS = re.search(r"set\(scripts ([a-z_ ]+)\)", read("src/lua/CMakeLists.txt"))[1].split()
EXTERNAL = [f"{kind}_{script}" for kind in ("plain", "redisson") for script in ("acquire", "renew", "release", "inspect")]
CONSTANTS = dict(re.findall(r"^([A-Z_]+) = (\S+)", read("src/lua/constants.lua"), re.MULTILINE))


def composed():
    """The text of each script."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/scripts.cpp"
        _, errors, code = output("cmake", f"-DOUT={out}", f"-DSCRIPTS={';'.join(SCRIPTS + EXTERNAL)}", f"-DFOLDER={TOP}/src/lua", "-P",
                                 "src/lua/embed.cmake")
        if code:
            raise SystemExit(errors)
        code = read(out)
    texts = re.findall(r'const Script (\w+)\{"\w+",\n((?:"[^"]*"\n?)+)\};', code)
    return {name: bytes.fromhex(re.sub(r"[^0-9a-f]", "", text.replace("\\x", ""))).decode() for name, text in texts}


def check_marks(name, text, faults):
    file, line = None, 0
    for row in text.splitlines():
        mark = re.fullmatch(r"--@ (\S+) (\d+)", row)
        if mark:
            file, line = mark[1], int(mark[2])
            source = read(f"src/lua/{file}").splitlines()
        elif file:
            named = source[line - 1] if line <= len(source) else "nothing"
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
