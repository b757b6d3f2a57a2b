#!/usr/bin/env python3
"""What `rlock close` promises: while a lock is closed nobody is granted it but who may pass, nobody loses a place, and the
first one starts soon after the end (measured, not asserted). Twenty hosts, two hundred runs, and three operators who close
and open at random moments; once over five servers, two of which are down. RLOCK names what the build made.
CLOSURE_RUNS: how many, where more are wanted than in the suite.
"""
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from history import read_events
from hosts import DIES_WITH_US, Here, environment
from quorum import ALWAYS
from redis_node import Node

HOSTS = 20
RUNS = int(os.environ.get("CLOSURE_RUNS", "200"))
OPERATORS = 3
LONGEST = 2.0  # s, of a closure
SEED = int(os.environ.get("CLOSURE_SEED", "0")) or random.SystemRandom().randrange(10**9)


def ms(text):
    """Of a time in JSON."""
    return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def spans(closings):
    """(from, to) of each time in which it was closed: until its end, or until somebody opened it or closed it again."""
    rows = sorted(closings, key=lambda row: ms(row["at"]))
    found = []
    for row, later in zip(rows, rows[1:] + [None]):
        if row["until"]:
            found.append((ms(row["at"]), min(ms(row["until"]), ms(later["at"]) if later else ms(row["until"]))))
    return found


def granted_while_closed(runs, closings):
    """Runs that may not pass. Within a millisecond it is not known which came first."""
    return [run for run in runs if "passes" not in run["command"]
            and any(begin < ms(run["since"]) < end for begin, end in spans(closings))]


def overtaken(asked):
    """(one, other) where `other` was started when `one` waited already, and was granted the lock before it. ASKED: of each
    run that may not pass when it was started, when it knew its place or None, and its token."""
    return [(one, other) for one in asked for other in asked
            if one["queued"] and one["queued"] < other["began"] and one["token"] > other["token"]]


def delays(runs, closings):
    """ms from each end of a closure, after which it stayed open, to the next start."""
    times = spans(closings)
    starts = sorted(ms(run["since"]) for run in runs if "passes" not in run["command"])
    ends = [end for begin, end in times if not any(other <= end < until for other, until in times if other != begin)]
    found = []
    for end in ends:
        begun = [start for start in starts if start >= end]
        if begun and not any(end < other < begun[0] for other, _ in times):
            found.append(begun[0] - end)
    return found


class Campaign(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rlock-closures-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.runs_left = iter(range(RUNS))
        self.guard = threading.Lock()
        self.over = threading.Event()
        self.failed = []
        self.closed = 0

    def rlock(self, *words, **more):
        # All hosts share this machine: where it has too little for them, they wait for the server.
        words = [os.environ["RLOCK"], words[0], "--connect-timeout", "20s", *words[1:]]
        return subprocess.run(DIES_WITH_US + words, env=self.environment, capture_output=True, text=True, check=False, **more)

    def host(self, number):
        chance = random.Random(f"{SEED} {number}")
        while True:
            with self.guard:
                run = next(self.runs_left, None)
            if run is None:
                return
            passes = self.may_pass and chance.random() < 0.1
            words = ["--while-closed"] if passes else []
            log = os.path.join(self.folder, f"events-{run}")
            ended = self.rlock("run", "-q", "--history", "1000", "--event-log", log, *words, "job", "--", "sh", "-c",
                               "sleep $1", "passes" if passes else "waits", f"{chance.uniform(0, 0.05):.3f}")
            if ended.returncode != 0:
                self.failed.append((run, ended.returncode, ended.stderr))
            time.sleep(chance.uniform(0, 0.3))

    def operator(self, number):
        chance = random.Random(f"{SEED} operator {number}")
        while not self.over.wait(chance.uniform(0.2, 1.5)):
            words = ["close", "job", "--for", f"{chance.uniform(0.1, LONGEST):.2f}"] if chance.random() < 0.7 else ["open", "job"]
            done = self.rlock(*words, "-q")
            if done.returncode == 0 and words[0] == "close":
                self.closed += 1
            if done.returncode not in (0, 75):  # 75: another operator was quicker
                self.failed.append((number, done.returncode, done.stderr))

    def asked(self, run):
        events = {event["event"]: event for event in reversed(read_events(self.folder, run))}  # the first of each kind
        first = events["acquired"]
        began = first["t_ns"] - first["waited_ms"] * 1_000_000 - 1_000_000
        return {"run": run, "began": began, "queued": events["enqueued"]["t_ns"] if "enqueued" in events else None,
                "token": first["token"], "passes": " passes " in first["command"]}

    def servers(self, count):
        nodes = [Node(Here(), os.path.join(self.folder, str(number)), 0, ALWAYS) for number in range(count)]
        for node in nodes:
            self.addCleanup(node.kill)
            node.start()
        self.environment = environment(" ".join(node.url for node in nodes))
        return nodes

    def campaign(self):
        operators = [threading.Thread(target=self.operator, args=(number,)) for number in range(OPERATORS)]
        hosts = [threading.Thread(target=self.host, args=(number,)) for number in range(HOSTS)]
        for thread in operators + hosts:
            thread.start()
        for thread in hosts:
            thread.join()
        self.over.set()
        for thread in operators:
            thread.join()
        self.assertEqual([], self.failed[:3])
        seen = json.loads(self.rlock("history", "job", "-n", "1000", "--json").stdout)
        self.assertEqual(RUNS, len(seen["runs"]))
        self.assertEqual([], granted_while_closed(seen["runs"], seen["closings"])[:3])
        late = sorted(delays(seen["runs"], seen["closings"]))
        took = f"{late[len(late) // 2]} ms at the median, {late[-1]} ms at most" if late else "never alone"
        print(f"# {RUNS} runs, closed {self.closed} times; from an end to the next start {took} (seed {SEED})", flush=True)
        self.assertGreater(self.closed, 0)

    def test_one_server(self):
        self.may_pass = True
        self.servers(1)
        self.campaign()
        asked = [run for run in map(self.asked, range(RUNS)) if not run["passes"]]
        self.assertEqual([], overtaken(asked)[:3])

    def test_five_servers_two_of_which_are_down(self):
        self.may_pass = False
        for node in self.servers(5)[3:]:
            node.kill()
        self.campaign()


class Checks(unittest.TestCase):
    """Each of them can fail."""

    def setUp(self):
        self.begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

    def at(self, seconds):
        return (self.begin + datetime.timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def run_at(self, seconds, command="waits"):
        return {"since": self.at(seconds), "command": command}

    def closing(self, at, until=None):
        return {"at": self.at(at), "until": until and self.at(until)}

    def test_a_run_while_it_is_closed_is_noticed(self):
        closings = [self.closing(10, 20), self.closing(15, 30), self.closing(25)]
        for second, wrong in ((9, False), (10.001, True), (19, True), (24.9, True), (25, False), (29, False)):
            self.assertEqual(wrong, bool(granted_while_closed([self.run_at(second)], closings)), second)
        self.assertEqual([], granted_while_closed([self.run_at(12, "passes")], closings))

    def test_one_that_is_overtaken_is_noticed(self):
        one, other = {"began": 1, "queued": 2, "token": 8}, {"began": 3, "queued": 4, "token": 7}
        self.assertEqual([(one, other)], overtaken([one, other]))
        self.assertEqual([], overtaken([one | {"token": 6}, other]))
        self.assertEqual([], overtaken([one | {"queued": None}, other]))

    def test_delays_count_from_the_last_end(self):
        closings = [self.closing(10, 20), self.closing(15, 30), self.closing(25)]
        self.assertEqual([500], delays([self.run_at(25.5)], closings))


if __name__ == "__main__":
    if "RLOCK" not in os.environ:
        sys.exit("RLOCK must be in the environment: see README.md")
    unittest.main()
