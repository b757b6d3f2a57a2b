#!/usr/bin/python3
"""Each change of the scripts' text that contract, model and simulation make to see a check fail has a place, compiles, and uses no
global that does not exist. Otherwise the check may fail only because the script does."""
import ast
import re
import shutil
import tempfile

from compose import EXTERNAL, composed
from scripts import LIBRARY, exports
from tree import Faults, files, needs, output, read

LUAC = shutil.which("luac5.1") or shutil.which("luac") or "luac5.1"
# The strings, and what stands between them.
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|\'(?:[^\'\\]|\\.)\'|[(){},]|[^\s"(){},\'/]+|/')


def mutants(text):
    """(line, rule, changes) of each MUTANT(…) and mutant(…) in a C++ text; a change is a pair of texts."""
    for found in re.finditer(r"^MUTANT\(|(?<=[ ({])mutant\(\s*(?=\")", text, re.MULTILINE):
        depth, words = 1, []
        for token in TOKEN.finditer(text, found.end()):
            word = token[0]
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth == 0:
                break
            if word.startswith('"'):
                value = ast.literal_eval(word)
                if words and isinstance(words[-1], tuple):
                    words[-1] = (words[-1][0] + value,)
                else:
                    words.append((value,))
            elif not word.startswith("//"):
                words.append(word)
        changes = [(words[at + 1][0], words[at + 3][0]) for at in range(len(words) - 4)
                   if words[at] == "{" and isinstance(words[at + 1], tuple) and words[at + 2] == "," and isinstance(words[at + 3], tuple)
                   and words[at + 4] == "}"]
        yield text.count("\n", 0, found.start()) + 1, words[0][0], changes


def fault_of(text, folder):
    """Why a changed script does not compile, or what it uses that does not exist."""
    path = f"{folder}/changed.lua"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    listing, errors, code = output(LUAC, "-l", "-p", path)
    if code:
        return f"does not compile: {errors.strip().partition('changed.lua:')[2]}"
    unknown = sorted(set(re.findall(r"[GS]ETGLOBAL.*; (\w+)", listing)) - LIBRARY)
    unknown += [f"{module}.{function}" for module, function in sorted(set(re.findall(r"\bM\.([a-z_]+)\.([a-z_]+)\(", re.sub(r"--.*", "", text))))
                if f"name == '{module}' then" not in text or function not in exports()[module]]
    return f"uses {', '.join(unknown)}" if unknown else ""


def main():
    needs(LUAC, "cmake")
    faults = Faults()
    native = {name: text for name, text in composed().items() if name not in EXTERNAL}
    with tempfile.TemporaryDirectory() as folder:
        for path in files("tests/contract/*.cpp", "tests/model/*.cpp", "tests/simulation/*.cpp"):
            for line, rule, changes in mutants(read(path)):
                changed, shown = dict(native), set()
                for before, after in changes:
                    places = [name for name, text in changed.items() if before in text]
                    if not places:
                        faults.add(path, line, f'"{rule}" has no place to change', before.replace("\n", "\\n"))
                    shown.update(places[:1])  # what several scripts share is the same in each
                    changed = {name: text.replace(before, after) for name, text in changed.items()}
                for name in sorted(shown):
                    why = fault_of(changed[name], folder)
                    if why:
                        faults.add(path, line, f'"{rule}": {name} {why}')
    faults.finish("changed scripts")


main()
