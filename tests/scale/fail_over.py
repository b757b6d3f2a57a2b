#!/usr/bin/python3
"""The time from a master's death to the next grant, over a Sentinel group: killed under a queue of runs."""

import os
import subprocess
import sys
import tempfile
import threading
import time

from common import RLOCK, STAMP, TOP, spans_in, until

sys.path.insert(0, str(TOP / "tests" / "chaos"))
import hosts  # noqa: E402
from sentinel import SentinelGroup  # noqa: E402


def measure(folder):
    group = SentinelGroup(hosts.Here(), folder, None)
    stamps, stop = os.path.join(folder, "stamps"), threading.Event()

    def contend():
        while not stop.is_set():
            subprocess.run([RLOCK, "-u", group.url(None), "run", "-w", "60", "over", "--", STAMP, stamps, "10"], check=False)

    threads = [threading.Thread(target=contend) for _ in range(2)]
    try:
        group.start()
        old = group.watchers[0].master_port()
        for thread in threads:
            thread.start()
        time.sleep(1)
        killed = time.monotonic_ns()
        group.at(old).kill()
        until(lambda: group.watchers[0].master_port() != old)
        elected = time.monotonic_ns()
        until(lambda: spans_in(stamps)[-1][0] > elected)
    finally:
        stop.set()
        for thread in filter(threading.Thread.is_alive, threads):
            thread.join()
        group.stop()
    starts = [begin for begin, _ in spans_in(stamps)]
    # The longest silence: one granted just before the end may start after it.
    _, granted = max(zip(starts, starts[1:]), key=lambda pair: pair[1] - pair[0])
    print(f"fail-over, kill -9 of the master -> next grant: {(granted - killed) / 1e9:.2f} s, of it until a sentinel"
          f" names the new one {(elected - killed) / 1e9:.2f} s (down-after 1 s)")


with tempfile.TemporaryDirectory() as one_folder:
    measure(one_folder)
