#!/usr/bin/python3
"""list.py: each mutant, the rule that it breaks, and what catches it. Fails if a patch is caught by nothing, if a patch does not apply
to the sources of today, and if a mutant of frozen.txt is gone, and its entry does not say what became of the rule."""
import collections
import pathlib
import re
import subprocess
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
    tests = "".join(path.read_text() for path in TESTS.glob("*/*_test.py"))
    for path in sorted((TESTS / "mutants").glob("*/*.patch")):
        folder, name = path.parent.name, path.stem
        rule = path.read_text().partition("\n")[0].rstrip(".")
        if folder == "chaos":
            yield folder, f"{name}: {rule}", name in MUTANTS and f'the invariant "{MUTANTS[name][0]}"'
        else:
            uses = [part for part in re.split(r"\n    def ", tests) if f'mutant("{name}")' in part]
            yield folder, f"{name}: {rule}", uses and ", ".join(part.partition("(")[0] for part in uses)


def cases():
    """The names of the cases of contract."""
    for path in sorted((TESTS / "contract").glob("*.cpp")):
        for strings, _ in re.findall(rf"^CASE\(((?:\s*{STRING})+)", path.read_text(), re.MULTILINE):
            yield "".join(re.findall(STRING, strings))


def entries():
    """(SUITE: RULE, what became of it or "") of each entry of frozen.txt."""
    lines = [line for line in (TESTS / "mutants/frozen.txt").read_text().splitlines() if not line.startswith("#")]
    for line, below in zip(lines, [*lines[1:], ""]):
        if not line.startswith(" "):
            rule = re.fullmatch(r"(.+): (?:the (?:case|invariant) \".*\"|\".*\" in the world \w+|test_\w+(?:, test_\w+)*)", line)
            yield rule[1] if rule else line, below.strip() if below.startswith(" ") else ""


def lost(table):
    """(entry, why) of each that nothing catches today, as far as the lists say."""
    today = collections.Counter(f"{suite}: {rule}" for suite, rule, _ in table)
    kept = set(today)
    names = set(cases())
    for rule, became in entries():
        word, _, rest = became.partition(": " if became.startswith(("caught", "struck")) else " ")
        if not became:
            today[rule] -= 1
            if today[rule] < 0:
                yield rule, "it is not in today's list: say in a line below it what became of the rule"
        elif word == "caught by contract" and rest not in names:
            yield rule, f'contract has no case "{rest}"'
        elif word == "now" and rest not in kept:
            yield rule, f"today's list has no {rest}"
        elif word not in ("caught by contract", "now") and (word != "struck" or " " not in rest):
            yield rule, f"{became} is neither now SUITE: RULE, nor caught by contract: CASE, nor struck: WHY"


def misfits():
    """(patch, why) of each that does not apply."""
    for path in [*sorted((TESTS / "mutants").glob("*/*.patch")), *sorted((TESTS / "compat").glob("*.patch"))]:
        done = subprocess.run(["patch", "--dry-run", "--batch", "--forward", "--fuzz=0", "--silent", "--reject-file=-", "-p1", "-d", TESTS.parent, "-i", path],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            yield path.relative_to(TESTS), done.stdout.strip()


def main():
    table = list(rows())
    for folder, rule, caught_by in table:
        print(f"{folder}: {rule}: {caught_by or 'NOTHING catches it'}")
    counts = {folder: sum(row[0] == folder for row in table) for folder in ("contract", "model", "simulation", "chaos", "supervision",
                                                                                   "compat")}
    print(", ".join(f"{count} of {folder}" for folder, count in counts.items()))
    gone = list(lost(table))
    for rule, why in gone:
        print(f"frozen.txt: {rule}: {why}")
    misfit = list(misfits())
    for patch, why in misfit:
        print(f"{patch} does not apply: {why}")
    sys.exit(0 if all(counts.values()) and all(row[2] for row in table) and not gone and not misfit else 1)


main()
