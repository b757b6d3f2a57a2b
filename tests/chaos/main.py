#!/usr/bin/env python3
"""Runs rlock on several hosts under faults and checks what was seen. RLOCK, CHAOS_JOB and CLOCK_LIBRARY name
what the build made. Exit codes: 0 nothing found, 1 a violation, or too little seen, 77 hosts were to be frozen and cannot be.
"""
import argparse
import collections
import contextlib
import functools
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import checker
import clock
import history
import hosts as host_kinds
import nemesis
import workers
from cluster import Cluster
from freezer import Freezer
from one_server import OneServer
from quorum import Quorum
from sentinel import LargeSentinelGroup, SentinelGroup

VALIDATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../style/validate.py")
TOPOLOGIES = {"single": OneServer, "quorum3": functools.partial(Quorum, 3), "quorum5": functools.partial(Quorum, 5),
              "sentinel": SentinelGroup, "sentinel4": LargeSentinelGroup,
              "cluster": Cluster}
SKIPPED = 77  # the exit code for ctest
STEP = 0.02  # s: how exact the nemesis is
LOOK_EVERY = 2.0  # s, for violations or enough holds
DRAIN = 120  # s: runs that wait without a limit get the lock first
SETTLE = 90  # s: longer than any heartbeat: nobody waits any more, also where no release arrived
TTLS = (1, 1.5, 2)  # s, on a machine that is quick
QUICK = 0.05  # s for a run that does nothing; where it takes longer leases and faults last longer in proportion
SLOWEST = 4  # times
LONGER = 4  # times the seconds asked for: how long a busy machine may take to show enough


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=nemesis.MODES, default="durable")
    parser.add_argument("--fault", action="append", choices=nemesis.ROWS, help="this one; again for several")
    parser.add_argument("--calm", action="store_true", help="no faults at all")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--topology", choices=TOPOLOGIES, help="else the mode's own")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--workers", type=int, default=3, help="on each host")
    parser.add_argument("--crowd", type=int, default=2500, help="processes that sleep, on every other host")
    parser.add_argument("--kind", action="append", choices=workers.KINDS, help="of command; again for several")
    parser.add_argument("--locks", type=int, help="else the mode's own")
    parser.add_argument("--ttl", type=float, action="append",
                        help="seconds; without it drawn from 1, 1.5 and 2, or more on a slow machine")
    parser.add_argument("--replicas", type=int, help="that confirm each grant; else the mode's own number")
    parser.add_argument("--hold", type=float, nargs=2, metavar=("LOW", "HIGH"), help="in ttls; mostly short without it")
    parser.add_argument("--every", type=float, default=0.5, help="mean seconds between two faults")
    parser.add_argument("--at-least", type=int, default=1,
                        help=f"holds: so many must be seen, in up to {LONGER} times the seconds")
    parser.add_argument("--until-caught", metavar="INVARIANT", help="end when it is broken, and look for no other")
    parser.add_argument("--keep", metavar="FOLDER", help="leave what was recorded there")
    missing = [name for name in ("RLOCK", "CHAOS_JOB", "CLOCK_LIBRARY") if name not in os.environ]
    if missing:
        parser.error(f"{' and '.join(missing)} must be in the environment: see README.md")
    return parser.parse_args()


class Pacemaker(threading.Thread):
    """Notes when this machine came late: then nobody else could be in time either."""

    LATE = 0.06  # s

    def __init__(self):
        super().__init__(daemon=True)
        self.lags = []

    def run(self):
        while True:
            before = clock.now()
            time.sleep(STEP)
            late = (clock.now() - before) / 1e9 - STEP
            if late > self.LATE:
                self.lags.append(history.Fault("lag", before, clock.now()))


class Campaign:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
        self.chance = random.Random(self.seed)
        self.mode = nemesis.MODES[options.mode]
        self.names, self.checks = options.fault or self.mode.faults, self.mode.checks
        self.pacemaker = Pacemaker()
        self.freezer = None
        self.left = []
        self.took = self.count_at = 0.0  # s
        self.slow = 1.0  # times
        self.begin = clock.now()

    def build(self, end):
        """`end` gets whatever ends what was built, also when only a part of it could be."""
        last = end.enter_context(contextlib.ExitStack())  # when all groups are empty
        self.hosts = host_kinds.make(self.options.hosts)
        end.callback(self.hosts.close)
        if "host_frozen" in self.names and not self.options.calm:
            try:
                self.freezer = Freezer(self.hosts.hosts)
            except OSError as error:
                print(f"skipped: no host can be frozen: {error}")
                sys.exit(SKIPPED)
            last.callback(self.freezer.close)
        self.servers = TOPOLOGIES[self.options.topology or self.mode.topology](self.hosts, self.folder)
        end.callback(self.servers.stop)
        self.servers.start()
        locks = [f"lock{number}" for number in range(self.options.locks or self.mode.locks)]
        operator = host_kinds.environment(self.servers.operator_url())
        self.slow = 1.0 if self.options.ttl else self.slowness(operator)
        settings = {"locks": locks, "rlock": os.environ["RLOCK"], "operator": operator, "slow": self.slow}
        self.nemesis = nemesis.Nemesis(self.chance, self.hosts, self.servers, self.freezer, settings)
        end.callback(self.nemesis.settle, all_of_them=True)
        for host in self.hosts.hosts:
            host.send(**self.orders(host, locks))

    def slowness(self, environment):
        """How many times longer than on a quick machine things take here and now: a lease of one second is as good as
        none where a round trip takes a tenth of it."""
        def took():
            begin = clock.now()
            subprocess.run([os.environ["RLOCK"], "run", "-q", "pace", "--", "true"], env=environment, check=False)
            return (clock.now() - begin) / 1e9
        slow = min(SLOWEST, max(1.0, max(took() for _ in range(5)) / QUICK))
        if slow > 1:
            print(f"this machine is slow: leases and faults last {slow:.1f} times longer")
        return slow

    def orders(self, host, locks):
        """What an agent has to know."""
        return {"host": host.number, "folder": self.folder, "locks": locks, "rlock": os.environ["RLOCK"],
                "job": os.environ["CHAOS_JOB"], "url": self.servers.url(host.number), "settings": self.settings(), "seed": self.seed,
                "ttls": self.options.ttl or [round(ttl * self.slow, 3) for ttl in TTLS],
                "workers": self.options.workers, "hold": self.options.hold, "slow": self.slow,
                "workload": self.mode.workload, "begin": self.begin,
                "hosts": self.options.hosts,
                "crowd": self.options.crowd if self.hosts.crowded(host) else 0, "kinds": self.options.kind}

    def settings(self):
        """The configuration file of the runs."""
        replicas = self.mode.replicas if self.options.replicas is None else self.options.replicas
        path = os.path.join(self.folder, "rlock.toml")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"replicas = {replicas}\n" if replicas else "")
        return path

    def possible_faults(self):
        able = [name for name in self.names if not self.nemesis.obstacle(name)]
        for name in sorted(set(self.names) - set(able)):
            print(f"without {name}: {self.nemesis.obstacle(name)}")
        return able if not self.options.calm else []

    def inject_faults(self):
        """Until the time is over, or a look in between has found violations of the invariant asked for: these."""
        names = self.possible_faults()
        begin = clock.now()
        strike, look = begin, begin + LOOK_EVERY * 1e9
        seen = set()  # what is under way may yet excuse what looks wrong: twice, then
        while self.goes_on((clock.now() - begin) / 1e9):
            self.nemesis.settle()
            if names and clock.now() >= strike:
                self.nemesis.strike(self.chance.choice(names))
                strike = clock.now() + self.chance.uniform(0.3, 1.7) * self.options.every * 1e9
            if self.options.until_caught and clock.now() >= look:
                before, seen = seen, {str(violation) for violation in self.violations()
                                      if violation.invariant == self.options.until_caught}
                if before & seen:
                    return sorted(before & seen)
                look = clock.now() + LOOK_EVERY * 1e9
            time.sleep(STEP)
        return []

    def goes_on(self, seconds):
        """Also after the seconds asked for, while a busy machine has shown too few holds."""
        self.took = seconds
        if seconds < max(self.options.seconds, self.count_at):
            return True
        self.count_at = seconds + LOOK_EVERY
        return seconds < LONGER * self.options.seconds and history.count_holds(self.folder) < self.options.at_least

    def drain(self):
        self.nemesis.settle(all_of_them=True)
        for host in self.hosts.hosts:
            host.send(finish=DRAIN)
        for host in self.hosts.hosts:
            if not host.receive().get("drained"):
                self.left.append(f"host {host.number}: a run did not end")
        end = time.monotonic() + SETTLE
        while (wrong := self.leftovers()) and time.monotonic() < end:
            time.sleep(0.2)
        self.left += wrong

    def leftovers(self):
        wrong = self.servers.leftovers()
        for host in self.hosts.hosts:
            host.send(finish=1)
            wrong += [f"host {host.number}: left behind, or harmed: {words}" for words in host.receive().get("left", [])]
        return wrong

    def read(self):
        faults = self.nemesis.done + self.nemesis.under_way() + list(self.pacemaker.lags)
        return history.read(self.folder, faults, self.servers.ledgers(), clock.wall_offset())

    def violations(self):
        return checker.check(self.read(), self.checks)

    def run(self):
        self.pacemaker.start()
        with contextlib.ExitStack() as end:
            self.build(end)
            caught = self.inject_faults()
            if not caught:
                self.drain()
        if caught:  # what is ended now did not end by itself
            print("\n".join(f"violation {violation}" for violation in caught))
            return 1
        return self.report()

    def report(self):
        seen = self.read()
        found = [*checker.check(seen, self.checks), *(history.Violation("left", 0, text) for text in self.left), *self.bad_events()]
        n = len(seen.holds)
        with open(os.path.join(self.folder, "faults.json"), "w", encoding="ascii") as file:
            json.dump([vars(fault) for fault in seen.faults], file)
        self.print_counts(seen)
        overlaps = len(list(checker.check_overlaps(seen)))
        print(f"{n} holds, {len(seen.runs)} runs, {overlaps} overlaps, {len(found)} violations of "
              f"{', '.join(self.checks)}; without any the true rate is below 3/n = {3 / max(n, 1):.4f}")
        for violation in found[:20]:
            print("violation", violation)
        if n < self.options.at_least:
            print(f"{self.options.at_least} holds were asked for, {n} came in {self.took:.0f} s")
        return 1 if found or n < self.options.at_least else 0

    def bad_events(self):
        """What stands in the event logs, and is not what docs/json describes."""
        logs = sorted(glob.glob(os.path.join(self.folder, "events-*")))
        done = subprocess.run([VALIDATE, *logs], stdout=subprocess.PIPE, text=True, check=False)
        faults = done.stdout.splitlines()[:-1] or ["validate.py failed"]
        return [history.Violation("json", 0, fault) for fault in faults] if logs and done.returncode != 0 else []

    def print_counts(self, seen):
        faults = collections.Counter(fault["fault"] for run in seen.runs for fault in run.faults)
        faults.update(fault.name for fault in seen.faults)
        codes = collections.Counter(run.code for run in seen.runs if run.code is not None)
        # Renewals come each third of the ttl.
        long = sum(run.words().count("renewed") >= 3 for run in seen.runs)
        print("faults:", ", ".join(f"{count} {name}" for name, count in sorted(faults.items())) or "none")
        print("exit codes:", ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())))
        print(f"{long} holds were longer than their ttl")


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through every `finally`
    folder = options.keep or tempfile.mkdtemp(prefix="rlock-chaos-")
    os.makedirs(folder, exist_ok=True)
    campaign = Campaign(options, folder)
    print(f"seed {campaign.seed}, mode {options.mode}", flush=True)
    try:
        return campaign.run()
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
