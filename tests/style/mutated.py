#!/usr/bin/python3
"""Each change of the scripts' text that contract, model and simulation make to see a check fail has a place, compiles, and uses no
global that does not exist. Otherwise the check may fail only because the script does."""
import ast
import re

from compose import EXTERNAL, LUAC, composed, fault_of
from tree import Faults, files, needs, read

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


def main():
    needs(LUAC, "cmake")
    faults = Faults()
    native = {name: text for name, text in composed().items() if name not in EXTERNAL}
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
                why = fault_of(changed[name])
                if why:
                    faults.add(path, line, f'"{rule}": {name} {why}')
    faults.finish("changed scripts")


main()
