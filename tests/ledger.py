#!/usr/bin/python3
"""ledger.py add LEDGER RESULTS: appends a line for each test of a run, from what ctest --output-junit wrote.
ledger.py show LEDGER: the ten slowest tests of the last 100 runs, and each that failed in one of them.
"""
import collections
import datetime
import pathlib
import statistics
import subprocess
import sys
import xml.etree.ElementTree

RUNS = 100
SLOWEST = 10


def add(ledger, results):
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    commit = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip() or "-"
    path = pathlib.Path(ledger)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for case in xml.etree.ElementTree.parse(results).getroot():
            print(when, pathlib.Path(results).stem, commit, case.get("name"), case.get("status"), case.get("time"), sep="\t", file=file)


def show(ledger):
    rows = [line.split("\t") for line in pathlib.Path(ledger).read_text(encoding="utf-8").splitlines()]
    last = list(dict.fromkeys(row[0] for row in rows))[-RUNS:]
    took, failed = collections.defaultdict(list), collections.defaultdict(list)
    for when, _, commit, name, status, seconds in rows:
        if when not in last or status in ("notrun", "disabled"):
            continue
        took[name].append(float(seconds))
        if status == "fail":
            failed[name].append(f"{when} at {commit}")
    print(f"The slowest of {len(last)} runs (median):")
    slowest = sorted(((statistics.median(times), name) for name, times in took.items()), reverse=True)[:SLOWEST]
    print(*(f"{seconds:8.1f} s  {name}" for seconds, name in slowest), sep="\n")
    print(f"Failed: {'' if failed else 'none'}")
    for name, times in sorted(failed.items(), key=lambda item: -len(item[1])):
        print(f"{len(times):4} of {len(took[name])}  {name}: {', '.join(times[-3:])}")


def main():
    commands = {("add", 4): add, ("show", 3): show}
    command = commands.get((sys.argv[1] if len(sys.argv) > 1 else "", len(sys.argv)))
    if command is None:
        sys.exit(__doc__)
    command(*sys.argv[2:])


main()
