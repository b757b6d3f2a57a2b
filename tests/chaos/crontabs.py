"""Hosts that start the same command by the same crontab: each by a wall clock of its own, all in one run of the test.
Only that clock is false; a minute of it may last as short as the test likes.
"""
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import clock
from history import read_events, read_lines
from hosts import Here, environment
from redis_node import Node
from workloads import DONE

# Appends a line when it starts and when it ends; the code is an argument, or every third run fails.
JOB = """echo "start $2 $RLOCK_TOKEN" >>"$1/job.$RLOCK_NAME"
sleep "$3"
code=$4
if [ "$code" = third ]; then
  n=$(cat "$1/count.$RLOCK_NAME" 2>/dev/null)
  echo $((n + 1)) >"$1/count.$RLOCK_NAME"
  code=$((n % 3 == 2))
fi
echo "end $2 $RLOCK_TOKEN $code" >>"$1/job.$RLOCK_NAME"
exit "$code"
"""


@dataclass(order=True)
class Start:
    """What one host starts at one tick."""
    due: int  # ns
    tick: int
    host: int
    name: str = "nightly"
    wall: int | None = None  # what its clock shows then, s since 1970
    code: str = "0"
    asked: int = field(default=0, compare=False)
    ended: int = field(default=0, compare=False)
    exit: int | None = field(default=None, compare=False)
    message: str = field(default="", compare=False)


class Crontabs:
    """`options`: those of every run. `job`: its seconds. `most`: runs at a time."""

    def __init__(self, folder, options, job, most=40):
        self.folder, self.options, self.job, self.most = folder, options, job, most
        self.counting = threading.Lock()
        self.count = self.live = self.crowd = 0  # runs, those of now, and the most at a time
        self.lag = 0  # ns: the ticks come later where too many are at work already
        self.ended = []
        self.server = Node(Here(), folder, 0, ())
        self.environment = environment(self.server.url)
        self.script = os.path.join(folder, "job.sh")
        with open(self.script, "w", encoding="ascii") as file:
            file.write(JOB)
        self.server.start()

    def run(self, starts):
        """Each when it is due, or as soon as this machine allows; returns all of this test when these have ended."""
        self.lag = 0
        with ThreadPoolExecutor(min(self.most, len(starts))) as pool:
            self.ended += pool.map(self.fire, sorted(starts))
        return self.ended

    def fire(self, start):
        with self.counting:
            self.lag = max(self.lag, clock.now() - start.due)
        time.sleep(max(0, start.due + self.lag - clock.now()) / 1e9)
        with self.counting:
            self.count, self.live = self.count + 1, self.live + 1
            self.crowd = max(self.crowd, self.live)
            number = self.count
        # All hosts share this machine: where it has too little for them, they wait for the server.
        words = [os.environ["RLOCK"], "run", "--connect-timeout", "20s", *self.options, "--exit-code", f"done={DONE}", "--event-log",
                 os.path.join(self.folder, f"events-{number}"), start.name, "--", "sh", self.script, self.folder,
                 f"{start.tick} {start.host}", str(self.job), start.code]
        shift = {} if start.wall is None else clock.showing(start.wall)
        run = subprocess.run(words, env=self.environment | shift, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, check=False)
        with self.counting:
            self.live -= 1
        start.exit, start.message, start.ended = run.returncode, run.stderr, clock.now()
        start.asked = asked_at(read_events(self.folder, number)) or start.ended
        return start

    def jobs(self, name="nightly"):
        """(word, tick, host, token, code or None) of each line that a job wrote, in order."""
        lines = map(str.split, read_lines(os.path.join(self.folder, f"job.{name}")))
        return [(word, int(tick), int(host), int(token), int(code[0]) if code else None)
                for word, tick, host, token, *code in lines]


def asked_at(events):
    """When a run first asked, in ns: the end of its wait says how long that was. None where nothing says it."""
    return next((event["t_ns"] - event["waited_ms"] * 10**6 for event in events if "waited_ms" in event), None)
