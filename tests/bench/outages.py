#!/usr/bin/python3
"""Which outages of its server does a run survive? Ten runs over one server for each kind and length of outage.

Usage: outages.py [RUNS]

Every run has the default lease and --kill-after, and began at another moment of the time between two renewals. All outages
happen at the same time, each to a server of its own. A run has survived an outage once it has renewed its lease after it.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from common import RLOCK, TOP, Server, recorded, shown, until
from harness import free_ports
from proxy import Proxy

sys.path.append(str(TOP / "tests" / "chaos"))
from hosts import Here  # noqa: E402
from sentinel import SentinelGroup  # noqa: E402

LENGTHS = (10, 20, 30, 40, 45, 50, 55)
DOWN_AFTER = (5, 10, 30)
INTERVAL = 10  # s between two renewals of the default lease
GIVEN_UP = 90  # s after the outage: longer than a lease, and than a failover takes


class Runs:
    """So many that hold a lock each, at `url`."""

    def __init__(self, url, folder, count):
        self.url, self.folder, self.runs = url, folder, []
        for number in range(count):
            self.runs.append(self.begin(number))
            time.sleep(INTERVAL / count)

    def begin(self, number):
        """Holds its lock. On a machine that is too busy for that within --connect-timeout it is tried again."""
        log = os.path.join(self.folder, f"events-{number}")
        while True:
            process = subprocess.Popen(
                [RLOCK, "-u", self.url, "run", "-q", "--event-log", log, f"outage-{number}", "--", "sleep", "infinity"],
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until(lambda: process.poll() is not None or moments(log, "acquired"))
            if process.returncode is None:
                return log, process

    def fates(self, end):
        """None for a run that renewed its lease after `end`, else its exit code."""
        def fate(run):
            log, process = run
            until(lambda: process.poll() is not None or moments(log, "renewed", end), seconds=GIVEN_UP)
            return process.returncode
        return [fate(run) for run in self.runs]

    def renewed_after(self, begin):
        """Seconds until the first renewal after that moment."""
        found = [moment for log, _ in self.runs for moment in moments(log, "renewed", begin)]
        return round(min(found) - begin, 1) if found else None

    def end(self):
        for _, process in self.runs:
            process.terminate()
        for _, process in self.runs:
            process.wait()


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def moments(log, event, after=0.0):
    """When it happened, in seconds since the boot of this host."""
    with contextlib.suppress(FileNotFoundError), open(log, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [one["t_ns"] / 1e9 for one in events if one["event"] == event and one["t_ns"] / 1e9 > after]
    return []


def row(kind, seconds, runs, fates, first):
    return shown({"outage": kind, "seconds": seconds, "runs": len(fates), "survived": fates.count(None),
                  "ended_with_76": fates.count(76), "first_renewal_after_s": first})


def last(kind, seconds, runs, begin):
    """The outage is over."""
    fates = runs.fates(now())
    return row(kind, seconds, runs, fates, runs.renewed_after(begin))


def restart(seconds, count):
    with Server("--appendonly", "yes", "--appendfsync", "always") as server:
        runs = Runs(server.url, server.folder, count)
        try:
            server.kill()
            begin = now()
            time.sleep(seconds)
            server.start()
            return last("the server restarts with its append-only file", seconds, runs, begin)
        finally:
            runs.end()


def network(seconds, count):
    with Server() as server:
        port, = free_ports(1)
        proxy = Proxy(("127.0.0.1", server.port), "127.0.0.1", [port])
        runs = Runs(f"redis://127.0.0.1:{port}", server.folder, count)
        try:
            proxy.order(port, "hold")
            begin = now()
            time.sleep(seconds)
            proxy.order(port, "pass")
            return last("the network passes nothing", seconds, runs, begin)
        finally:
            runs.end()
            proxy.end()


def failover(down_after, count):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as end:
        group = SentinelGroup(Here(), folder, down_after * 1000)
        end.callback(group.stop)
        group.start()
        for sentinel in group.watchers:
            # Else it does nothing for 30 s if this machine stood still for two.
            sentinel.call("SENTINEL", "DEBUG", "tilt-trigger", "600000")
        runs = Runs(group.url(None), folder, count)
        end.callback(runs.end)
        group.nodes[0].kill()
        begin = now()
        fates = runs.fates(begin + 1)
        return row(f"Sentinel fails over, down-after {down_after} s", None, runs, fates, runs.renewed_after(begin + 1))


@recorded("outages", busy=True)
def outages(count=10):
    todo = [(restart, seconds) for seconds in LENGTHS] + [(network, seconds) for seconds in LENGTHS]
    todo += [(failover, seconds) for seconds in DOWN_AFTER]
    rows = [None] * len(todo)

    def measure(number):
        kind, seconds = todo[number]
        rows[number] = kind(seconds, count)
    threads = [threading.Thread(target=measure, args=[number]) for number in range(len(todo))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if None in rows:
        sys.exit("a measurement failed")
    return {"rows": rows}


outages(*map(int, sys.argv[1:]))
