#!/usr/bin/python3
"""list.py: each mutant, the rule that it breaks, and what catches it. Fails if a patch is caught by nothing."""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "chaos"))
from mutants import MUTANTS

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^"{}]+')


def entries(text):
    """The entries of each `const std::vector<Mutant> kName{{…}, …};`: their strings and checks, without what is in braces inside them."""
    names = dict(re.findall(r'const char\* (k\w+) = "(.*)";', text))
    for body in re.findall(r"std::vector<Mutant> \w+\{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        depth, entry = 0, []
        for token in TOKEN.findall(body):
            depth += {"{": 1, "}": -1}.get(token, 0)
            if depth == 1 and token.startswith('"'):
                entry.append(token[1:-1])
            elif depth == 1:
                entry += [names.get(word, word) for word in re.findall(r"\b(?:Check::)?(\w+)", token)]
            elif depth == 0 and entry:
                yield entry
                entry = []


def rows():
    for path in sorted((TESTS / "contract").glob("*.cpp")):
        for rule, caught_by, *_ in entries(path.read_text()):
            yield "contract", rule, f'the case "{caught_by}…"'
    for path in sorted((TESTS / "model").glob("*.cpp")):
        for rule, breaks, *_ in entries(path.read_text()):
            yield "model", rule, f'the invariant "{breaks}"'
    for rule, world, check, *_ in entries((TESTS / "simulation/mutants.cpp").read_text()):
        yield "simulation", rule, f'"{check}" in the world {world}'
    tests = "".join(path.read_text() for path in (TESTS / "supervision").glob("*_test.py"))
    for path in sorted((TESTS / "mutants").glob("*/*.patch")):
        folder, name = path.parent.name, path.stem
        rule = path.read_text().partition("\n")[0].rstrip(".")
        if folder == "chaos":
            yield folder, f"{name}: {rule}", name in MUTANTS and f'the invariant "{MUTANTS[name][0]}"'
        else:
            uses = [part for part in re.split(r"\n    def ", tests) if f'mutant("{name}")' in part]
            yield folder, f"{name}: {rule}", uses and ", ".join(part.partition("(")[0] for part in uses)


def main():
    table = list(rows())
    for folder, rule, caught_by in table:
        print(f"{folder}: {rule}: {caught_by or 'NOTHING catches it'}")
    counts = {folder: sum(row[0] == folder for row in table) for folder in ("contract", "model", "simulation", "chaos", "supervision")}
    print(", ".join(f"{count} of {folder}" for folder, count in counts.items()))
    sys.exit(0 if all(counts.values()) and all(row[2] for row in table) else 1)


main()
