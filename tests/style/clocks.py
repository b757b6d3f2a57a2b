#!/usr/bin/python3
"""clocks.py [--lower]: a test waits for events, and moves clocks of its own: no line more than tests/style/clocks.txt lists reads the clock of the
host, or sleeps. --lower writes what is less today into the list, which never grows.
"""
import re
import sys

from tree import TOP, Faults, files, read

LIST = "tests/style/clocks.txt"
HEAD = """# Files of tests with the number of their lines that read the clock of the host, or sleep: FILE NUMBER. The list only shrinks.
# tests/style/clocks.py --lower writes it.
"""
SHELL = re.compile(r"(?:^|[;&|{(]|\bdo|\bthen|\|\|)\s*sleep\s|\bSECONDS\b|\bEPOCH(?:REALTIME|SECONDS)\b|\bdate (?:-u )?['\"]?\+")
PYTHON = re.compile(r"\btime\.(?:sleep|time|monotonic|perf_counter)(?:_ns)?\(|\bclock\.now\(|\bdatetime\.now\(")
C = re.compile(r"\bsleep_(?:for|until)\b|\b(?:steady|system)_clock\b|\bu?sleep\(|\bnanosleep\b|\bclock_gettime\(|\bgettimeofday\b")
KINDS = {"bats": SHELL, "bash": SHELL, "sh": SHELL, "py": PYTHON, "cpp": C, "hpp": C}
# Measures, or is the clock of the tests.
EXEMPT = re.compile(r"tests/(?:bench/.*|style/clocks\.py|clock\.py|budget\.py|ledger\.py|support/shifted_clock\.cpp)$")


def counted():
    found = {}
    for path in files(*(f"tests/**/*.{ending}" for ending in KINDS)):
        if not EXEMPT.match(str(path)):
            pattern = KINDS[path.suffix[1:]]
            if lines := [number for number, line in enumerate(read(path).splitlines(), 1) if pattern.search(line)]:
                found[str(path)] = lines
    return found


def main():
    listed = {name: int(number) for name, number in (line.split() for line in read(LIST).splitlines() if not line.startswith("#"))}
    found, faults = counted(), Faults()
    if sys.argv[1:] == ["--lower"]:
        lower = {name: min(number, len(found.get(name, []))) for name, number in listed.items()}
        (TOP / LIST).write_text(HEAD + "".join(f"{name} {number}\n" for name, number in sorted(lower.items()) if number), encoding="utf-8")
        return
    for name, lines in found.items():
        if len(lines) > listed.get(name, 0):
            faults.add(name, lines[-1], f"{len(lines)} lines read the clock of the host or sleep, {listed.get(name, 0)} are listed",
                       "wait for an event, or move the clock of the server")
    for name, number in listed.items():
        if len(found.get(name, [])) < number:
            faults.add(LIST, 1, f"{name} has fewer than {number} now", "tests/style/clocks.py --lower")
    faults.finish(f"{sum(map(len, found.values()))} lines")


main()
