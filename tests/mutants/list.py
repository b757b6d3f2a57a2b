#!/usr/bin/python3
"""list.py: each mutant, the rule that it breaks, and what catches it. Fails if a patch is caught by nothing."""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "chaos"))
from mutants import MUTANTS

STRING = r'"((?:[^"\\]|\\.)*)"'


def rows():
    for path in sorted((TESTS / "contract").glob("*.cpp")):
        for macro, strings, _ in re.findall(rf"^(CASE|MUTANT)\(((?:\s*{STRING})+)", path.read_text(), re.MULTILINE):
            name = "".join(re.findall(STRING, strings))
            if macro == "CASE":
                case = name
            else:
                yield "contract", name, f'the case "{case}"'
    for rule, breaks in re.findall(rf"\bmutant\(\s*{STRING},\s*{STRING}", (TESTS / "model/model.cpp").read_text()):
        yield "model", rule, f'the invariant "{breaks}"'
    for rule, world, check in re.findall(rf"\bmutant\(\s*{STRING},\s*{STRING},\s*Check::(\w+)",
                                         (TESTS / "simulation/mutants.cpp").read_text()):
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
