#!/usr/bin/python3
"""budget.py: prints what `budget.py BEGUN TIMES` needs later: that prints how long the core has taken since, in seconds and in seconds of
processors, as `times` of the shell that ran it has written to the file TIMES. Exits with 1 if that is more than the budget: of processors
always, and of seconds if nobody else used much of them.
"""
import os
import re
import sys
import time

WALL = 600  # s
CPU = 1000  # s, of the build without a cache and of the tests; servers that no test waits for do not count
OTHERS = 0.1  # of all processors


def used():
    """s for which all processors have been used, by anybody."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def cpu_of(path):
    """s of the shell and of all that it has waited for."""
    with open(path, encoding="ascii") as file:
        return sum(60 * int(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", file.read()))


def main():
    if len(sys.argv) == 1:
        print(f"{time.monotonic()}/{used()}")
        return 0
    begun, before = map(float, sys.argv[1].split("/"))
    wall, cpu = time.monotonic() - begun, cpu_of(sys.argv[2])
    others = max(0.0, used() - before - cpu) / (wall * os.cpu_count())
    print(f"\nbuild and core: {wall:.0f} s of {WALL}, {cpu:.0f} CPU seconds of {CPU}; {others:.0%} of the processors did other work")
    over = cpu > CPU or wall > WALL and others < OTHERS
    if over:
        print("This is above the budget of the core: make it quicker, or leave a test to --commit")
    return 1 if over else 0


sys.exit(main())
