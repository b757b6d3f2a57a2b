#!/usr/bin/python3
"""What runs do whose server is away when they start, and what the server sees when it comes back.

Usage: server_wait.py hosts [SECONDS...]    twenty hosts with the same line in their crontabs, for outages of so many seconds
       server_wait.py herd [RUNS]           so many runs wait for the server, each for a lock of its own, and then all for one lock
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import time

from common import RLOCK, Server, shown

HOSTS = 20
OUTAGES = (5, 20, 50)
RUNS = 1000
AWAY = 10  # s, for the herd
SAMPLE = 0.1  # s


def run(server, name, log, *options):
    return subprocess.Popen([RLOCK, "-u", server.url, "run", "-q", *options, name, "--", "sh", "-c", f"echo >>{log}"],
                            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines_in(log):
    return sum(1 for _ in open(log, encoding="ascii")) if os.path.exists(log) else 0


def await_room_in_minute(seconds=10):
    """All hosts' rlocks are to start in the same minute."""
    while time.time() % 60 > 60 - seconds:
        time.sleep(0.2)


def hosts(outage, *options):
    """The exit codes of all hosts, how often the job ran, and the seconds from the server's return to the last exit."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        server.kill()
        await_room_in_minute()
        runs = [run(server, "shop/job", log, *options) for _ in range(HOSTS)]
        time.sleep(outage)
        server.start()
        back = time.monotonic()
        codes = collections.Counter(one.wait() for one in runs)
        return {"outage_s": outage, "options": " ".join(options), "codes": dict(sorted(codes.items())), "ran": lines_in(log),
                "last_exit_s": round(time.monotonic() - back, 2)}


def counted(server):
    """The moment, and the requests and connections since the server started."""
    text = server.answer("INFO", "everything")
    return time.monotonic(), *(int((re.search(field + r"(\d+)", text) or [0, 0])[1])
                               for field in ("cmdstat_evalsha:calls=", "total_connections_received:"))


def herd(count, name_of):
    """Requests and connections a second in each tenth of one after the server's return, and when all runs had exited."""
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        server.kill()
        begin = time.monotonic()
        runs = [run(server, name_of(number), log, "-w", "5m") for number in range(count)]
        time.sleep(max(0.0, AWAY - (time.monotonic() - begin)))
        server.start()
        back = time.monotonic()
        seen, before = [], (back, 0, 0)
        while any(one.poll() is None for one in runs):
            time.sleep(SAMPLE)
            now = counted(server)
            took = now[0] - before[0]
            seen.append((round(now[0] - back, 2), *(round((after - old) / took) for after, old in zip(now[1:], before[1:]))))
            before = now
        codes = collections.Counter(one.returncode for one in runs)
        return {"runs": count, "codes": dict(codes), "ran": lines_in(log), "all_done_s": seen[-1][0],
                "most_requests_per_s": max(row[1] for row in seen), "most_connections_per_s": max(row[2] for row in seen),
                "first_3_s": [row for row in seen if row[0] < 3]}


def main():
    what, *numbers = sys.argv[1:] or [""]
    if what == "hosts":
        for outage in map(float, numbers or OUTAGES):
            for options in ((), ("-w", "1m")):
                shown(hosts(outage, *options, "--once-per", "minute"))
        shown(hosts(1.5, "-n", "--once-per", "minute"))
    elif what == "herd":
        count = int(numbers[0]) if numbers else RUNS
        shown(herd(count, lambda number: f"shop/job-{number}"))
        shown(herd(count, lambda _: "shop/job"))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
