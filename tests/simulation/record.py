#!/usr/bin/python3
"""Runs the simulation's worlds and mutants, and keeps the numbers for docs/report.

Usage: record.py BUILD [TIMES]      (the folder of a build; TIMES 10: ten times as many seeds)

Writes worlds.tsv, mutants.tsv and drift.tsv into docs/report/data.
"""

import datetime
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
DATA = TOP / "docs" / "report" / "data"
FOLDER = pathlib.Path(sys.argv[1]) / "tests" / "simulation"
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 1
WORLDS = {"one_server": 100, "clock_back": 100, "modes": 100, "losses": 100, "operators": 100, "closures": 100, "places": 100,
          "once": 100, "once_losses": 100, "crontabs": 100, "supersede": 100, "quorum_of_3": 10, "quorum_of_5": 10,
          "quorum_storm": 10, "once_quorum": 10, "crowd": 1, "freezes": 100, "fail_overs": 100, "confirmed": 100,
          "confirmed --replicas 0": 100}
DRIFTS = (4_800, 10_000, 25_000, 50_000, 100_000, 150_000, 200_000, 250_000)  # parts per million
SUMMARY = (r"(?P<runs>\d+) runs, .*; (?P<commands>\d+) commands; (?P<scripts>\d+) scripts; (?P<faults>\d+) faults",
           r"(?P<done>\d+) found done, .* (?P<superseded>\d+) superseded, (?P<broken>\d+) broken .*; (?P<overlaps>\d+) commands "
           r"overlapped", r"(?P<seconds>\d+) s simulated \((?P<host_years>[\d.]+)", r"(?P<violations>\d+) violations")


def fleet(world, seeds, *words):
    """The numbers of its summary, by their names."""
    run = subprocess.run([FOLDER / "fleet", *world.split(), "--seeds", f"1-{seeds}", *words], capture_output=True, text=True,
                         check=False)
    found = {"world": world, "seeds": seeds}
    for line in SUMMARY:
        found |= re.search(line, run.stdout).groupdict()
    print(found, flush=True)
    return found


def commit():
    return subprocess.run(["git", "-C", str(TOP), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          check=True).stdout.strip()


def write(name, rows):
    DATA.mkdir(parents=True, exist_ok=True)
    with open(DATA / name, "w", encoding="ascii") as file:
        file.write(f"# {datetime.date.today().isoformat()}, commit {commit()}, tests/simulation/record.py BUILD {TIMES}\n")
        file.write("\t".join(rows[0]) + "\n")
        for row in rows:
            file.write("\t".join(map(str, row.values())) + "\n")


def mutants():
    run = subprocess.run([FOLDER / "simulation", "-tc=every mutant*"], capture_output=True, text=True, check=True)
    rows = re.findall(r'MESSAGE: (.+) \((\w+)\): "(.+)" once in ([\d.]+) seeds', run.stdout)
    return [dict(zip(("mutant", "world", "noticed", "seeds"), row)) for row in rows]


def main():
    write("worlds.tsv", [fleet(world, seeds * TIMES) for world, seeds in WORLDS.items()])
    rows = [{"drift_ppm": drift, **fleet("drifting", 60 * TIMES, "--drift", str(drift))} for drift in DRIFTS]
    write("drift.tsv", rows)
    write("mutants.tsv", mutants())


main()
