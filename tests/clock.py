#!/usr/bin/env python3
"""clock.py COMMAND...: runs a test whose promise is wall time, and exits as it does. Root lets no neighbour take its share of the processors.
A test that failed is repeated, once, only if this machine stood still meanwhile: nobody can be in time then. summary.py shows it.
"""
import os
import signal
import subprocess
import sys
import threading
import time

STEP = 0.02  # s
STILL = 0.25  # s: what the tests allow for is longer than a usual delay, and shorter than this
PRIORITY = -10  # no real-time class: rlock has to end what is in one, and its guard chooses its own
SKIPPED = 77


class Pacemaker(threading.Thread):
    """Sleeps for a moment, again and again, and keeps the longest time by which it woke up late."""

    def __init__(self):
        super().__init__(daemon=True)
        self.still = 0.0

    def run(self):
        while True:
            before = time.monotonic()
            time.sleep(STEP)
            self.still = max(self.still, time.monotonic() - before - STEP)


def attempt(words):
    """(exit code, for how long this machine stood still)"""
    pacemaker = Pacemaker()
    pacemaker.start()
    # The test ends with this process, as if it were the test.
    code = subprocess.run(["setpriv", "--pdeathsig", "KILL", *words], check=False).returncode
    return code, pacemaker.still


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code, still = attempt(sys.argv[1:])
    if code not in (0, SKIPPED) and still > STILL:
        print(f"repeated: failed while this machine stood still for {still:.2f} s", flush=True)
        code, still = attempt(sys.argv[1:])
    if code not in (0, SKIPPED):
        print(f"this machine stood still for {still:.2f} s at most", flush=True)
    sys.exit(code if code >= 0 else 128 - code)


main()
