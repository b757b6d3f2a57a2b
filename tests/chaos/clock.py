"""The one clock of a run: CLOCK_BOOTTIME, in ns, as rlock's event log and the job have it."""
import os
import time


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wall_offset():
    """What is added to now() for the wall clock, in ns: the least of a few tries is the best one."""
    tries = []
    for _ in range(5):
        before = now()
        wall = time.time_ns()
        tries.append((now() - before, wall - (before + now()) // 2))
    return min(tries)[1]


def showing(wall):
    """The variables with which an rlock that starts now believes it to be `wall`, in s since 1970."""
    return {"LD_PRELOAD": os.environ["CLOCK_LIBRARY"], "CLOCK_SHIFT": str(wall - int(time.time()))}
