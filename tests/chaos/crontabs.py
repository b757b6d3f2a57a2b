"""Hosts that start the same command by the same crontab: each by a wall clock of its own, all in one run of the test.
Only that clock is false; a minute of it may last as short as the test likes.
"""
import heapq
import json
import os
import select
import subprocess
import time
from dataclasses import dataclass, field

import clock

DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
DONE = 99  # the exit code for what was done already
# Appends a line when it starts and when it ends; the code is an argument, or every third run fails.
JOB = """echo "start $2 $RLOCK_TOKEN" >>"$1/job.$RLOCK_NAME"
sleep "$3"
code=$4
if [ "$code" = third ]; then
  read -r n <"$1/count.$RLOCK_NAME"
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
    began: int = field(default=0, compare=False)
    asked: int = field(default=0, compare=False)
    ended: int = field(default=0, compare=False)
    exit: int | None = field(default=None, compare=False)
    message: str = field(default="", compare=False)


class Crontabs:
    """`options`: those of every run. `job`: its seconds."""

    def __init__(self, folder, options, job, most=40):
        self.folder, self.options, self.job, self.most = folder, options, job, most
        self.live = {}  # pidfd -> (process, start, what it says)
        self.ended = []
        self.crowd = []  # (ns, live)
        self.count = 0
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RLOCK")}
        self.environment |= {"RLOCK_URL": f"unix://{folder}/socket", "RLOCK_CONFIG": "/dev/null"}
        self.script = os.path.join(folder, "job.sh")
        with open(self.script, "w", encoding="ascii") as file:
            file.write(JOB)
        words = ["redis-server", "--port", "0", "--unixsocket", f"{folder}/socket", "--dir", folder, "--save", ""]
        self.server = subprocess.Popen(DIES_WITH_US + words, stdout=subprocess.DEVNULL)
        while not os.path.exists(f"{folder}/socket"):
            if self.server.poll() is not None:
                raise RuntimeError("redis-server did not come up")
            time.sleep(0.01)

    def close(self):
        for process, *_ in self.live.values():
            process.kill()
            process.wait()
        self.server.kill()
        self.server.wait()

    def run(self, starts):
        """Each when it is due, or as soon as this machine allows; returns when all have ended."""
        heapq.heapify(starts)
        lag = 0  # the ticks come later where too many are at work already
        while starts or self.live:
            now = clock.now()
            if starts and starts[0].due + lag <= now and len(self.live) < self.most:
                self.fire(heapq.heappop(starts))
                continue
            if starts and len(self.live) >= self.most:
                lag = max(lag, now - starts[0].due)
            wait = (starts[0].due + lag - now) / 1e9 if starts and len(self.live) < self.most else 1
            self.reap(max(0, wait))
        return self.ended

    def fire(self, start):
        self.count += 1
        events = os.path.join(self.folder, f"events-{self.count}")
        counter = os.path.join(self.folder, f"count.{start.name}")
        if start.code == "third" and not os.path.exists(counter):
            with open(counter, "w", encoding="ascii") as file:
                file.write("0\n")
        words = [os.environ["RLOCK"], "run", *self.options, "--done-exit-code", str(DONE), "--event-log", events,
                 start.name, "--", "sh", self.script, self.folder, f"{start.tick} {start.host}", str(self.job), start.code]
        environment = self.environment
        if start.wall is not None:
            shift = {"LD_PRELOAD": os.environ["CLOCK_LIBRARY"], "CLOCK_SHIFT": str(start.wall - int(time.time()))}
            environment = environment | shift
        says = open(f"{events}.err", "w+", encoding="utf-8")
        start.began = clock.now()
        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=says, stderr=says)
        self.live[os.pidfd_open(process.pid)] = process, start, says
        self.crowd.append((start.began, len(self.live)))

    def reap(self, seconds):
        for handle in select.select(list(self.live), [], [], seconds)[0]:
            process, start, says = self.live.pop(handle)
            os.close(handle)
            start.exit, start.ended = process.wait(), clock.now()
            says.seek(0)
            start.message = says.read()
            says.close()
            start.asked = asked_at(f"{says.name.removesuffix('.err')}") or start.ended
            self.ended.append(start)

    def jobs(self, name="nightly"):
        """(word, tick, host, token, code or None) of each line that a job wrote, in order."""
        path = os.path.join(self.folder, f"job.{name}")
        lines = []
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                lines = [line.split() for line in file]
        return [(word, int(tick), int(host), int(token), int(code[0]) if code else None)
                for word, tick, host, token, *code in lines]


def asked_at(path):
    """When a run first asked, in ns, by its event log: the end of its wait says how long that was."""
    try:
        with open(path, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
    except (OSError, ValueError):
        return None
    asked = [event["t_ns"] - event["waited_ms"] * 10**6 for event in events if "waited_ms" in event]
    return asked[0] if asked else None
