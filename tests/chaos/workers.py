"""The agent of one host: runs `rlock run` over and over in a few threads, each drawing by its own seed, and does to
those runs what the nemesis orders. Spoken to in lines of JSON on stdin; ends with everything it started at its end.
"""
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import clock
import workloads
from hosts import DIES_WITH_US, environment

# Longer than the lease is what catches bugs; most are short, so that there are many.
HOLDS = ((0.76, 0.01, 0.08), (0.14, 0.08, 0.6), (0.10, 0.6, 3.0))
RENEWAL_RACES = (1 / 3, 2 / 3, 1.0)  # x ttl: the command ends as a renewal is due
ALONE = ("plain", "stubborn")  # commands without a descendant
KINDS = ("plain", "plain", "plain", *ALONE, "group", "session", "forking", "forking", "cleared", "daemon",
         "disguised", "user")


STRANGER_LIVES_ON = 1.0  # s: long enough for a guard that outlives its run to end what it takes for the run's


class Run:
    def __init__(self, number, process, plan):
        self.number, self.process, self.plan = number, process, plan
        self.fault = None

    def guard(self):
        """A pidfd of the guard, None while there is none: only a holder has one."""
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                found = children.read().split()
            for child in found:
                handle = os.pidfd_open(int(child))
                with open(f"/proc/{child}/stat", encoding="utf-8", errors="replace") as stat:
                    name, rest = stat.read().rsplit(")", 1)
                # The handle was taken first: it cannot be somebody who has the number now.
                if name.endswith("(lease-guard") and rest.split()[1] == str(pid):
                    return handle
                os.close(handle)
        except OSError:
            pass
        return None


class Agent:
    def __init__(self, config):
        self.config = config
        self.workload = workloads.WORKLOADS[config["workload"]](config)
        self.lock = threading.Lock()
        self.live = {}
        self.count = 0
        self.over = threading.Event()
        self.harmed = []  # strangers
        self.log = open(os.path.join(config["folder"], f"runs-{config['host']}.jsonl"), "a", encoding="ascii")
        self.environment = environment(config["url"], config["settings"])

    def note(self, **words):
        with self.lock:
            self.log.write(json.dumps({"at": clock.now(), **words}) + "\n")
            self.log.flush()

    def plan(self, chance):
        ttl = chance.choice(self.config["ttls"])
        _, low, high = chance.choices(HOLDS, [weight for weight, _, _ in HOLDS])[0]
        low, high = self.config["hold"] or (low, high)
        share = chance.choice(RENEWAL_RACES) if chance.random() < 0.08 else chance.uniform(low, high)
        wait = chance.choices(([], ["-w", "30"], ["-w", "1"], ["-n"]), (4, 4, 1, 1))[0]
        lock = chance.choice(self.config["locks"])
        return {"lock": lock, "ttl": ttl, "ms": int(ttl * share * 1000), "wait": wait,
                "kind": chance.choice(self.config["kinds"] or KINDS), "code": chance.choice((0, 0, 1, 7, 42)),
                "closed": chance.random() < 0.05, **self.workload.plan(chance, lock)}

    def start(self, plan):
        with self.lock:
            self.count += 1
            number = f"{self.config['host']}.{self.count}"
        folder = self.config["folder"]
        command = [self.config["job"], folder, plan["lock"], str(plan["ms"]), plan["kind"], str(plan["code"])]
        words = [self.config["rlock"], "run", *self.workload.quiet, "-t", f"{plan['ttl']}s", *plan["wait"], "--event-log",
                 os.path.join(folder, f"events-{number}"), *self.workload.words(plan), plan["lock"], "--", *command]
        if plan["closed"]:
            words = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words]
        self.note(what="begin", run=number, host=self.config["host"], **plan)
        variables = {**self.environment, **self.workload.environment(plan)}
        with open(os.path.join(folder, f"stderr-{self.config['host'] if self.workload.quiet else number}"), "ab") as errors:
            process = subprocess.Popen(words, env=variables, stdin=subprocess.DEVNULL, stdout=errors,
                                       stderr=errors, start_new_session=True)
        return Run(number, process, plan)

    def work(self, number):
        chance = random.Random(self.config["seed"] * 1000 + self.config["host"] * 100 + number)
        while not self.over.is_set():
            run = self.start(self.plan(chance))
            with self.lock:
                self.live[run.number] = run
            code = run.process.wait()
            with self.lock:
                del self.live[run.number]
            self.note(what="end", run=run.number, code=code)
            self.over.wait(self.workload.pause(chance, code))

    # ---- what the nemesis orders ----

    def choose(self, chance, holding, plain):
        """A run in the wanted state that has no fault yet, and its guard: one fault a run is what rlock promises.
        `plain`: one whose command has no children: without guard and rlock, or ended by a signal, it leaves them."""
        with self.lock:
            runs = [run for run in self.live.values() if run.fault is None and not run.plan["closed"]]
        chance.shuffle(runs)
        for run in runs:
            if plain and run.plan["kind"] not in ALONE:
                continue
            guard = run.guard()
            # With its event log it has become rlock, and takes signals as one.
            begun = os.path.exists(os.path.join(self.config["folder"], f"events-{run.number}"))
            if begun and (guard is not None) == holding and run.process.poll() is None:
                run.fault = True
                return run, guard
            if guard is not None:
                os.close(guard)
        return None, None

    def owner_of(self, run):
        """None before it has one."""
        try:
            with open(os.path.join(self.config["folder"], f"events-{run.number}"), encoding="utf-8") as events:
                return json.loads(events.readline())["owner"]
        except (OSError, ValueError, KeyError):
            return None

    def mark_stranger(self, chance):
        """A process beside a run, with the run's owner in its environment, has to outlive it. No fault of the run."""
        with self.lock:
            runs = list(self.live.values())
        run = chance.choice(runs) if runs else None
        owner = self.owner_of(run) if run else None
        if owner is None:
            return
        marked = {"PATH": os.environ["PATH"], "RLOCK_OWNER": owner, "OTHER": owner}
        stranger = subprocess.Popen([*DIES_WITH_US, "sleep", "1000"], env=marked, start_new_session=True)
        run.process.wait()
        time.sleep(STRANGER_LIVES_ON)
        if stranger.poll() is not None:
            self.harmed.append(f"a stranger with the owner {owner} in its environment was ended")
        stranger.kill()
        stranger.wait()

    def strike(self, order):
        chance = random.Random(order["seed"])
        if order["fault"] == "stranger_marked":
            return self.mark_stranger(chance)
        who, what = order["fault"].split("_")
        run, guard = self.choose(chance, holding=who != "waiter", plain=who == "both" or what == "signalled")
        if run is None:
            return
        fault = {"what": "fault", "fault": order["fault"], "run": run.number, "seconds": order["seconds"]}
        number = {"stopped": signal.SIGSTOP, "killed": signal.SIGKILL, "signalled": chance.choice((15, 2, 1))}[what]
        self.note(**fault, signal=int(number))
        self.send(run, guard, who, number)
        if what == "stopped":
            time.sleep(order["seconds"])
            self.send(run, guard, who, signal.SIGCONT)
        if guard is not None:
            os.close(guard)

    @staticmethod
    def send(run, guard, who, number):
        try:
            if who in ("guard", "both"):
                signal.pidfd_send_signal(guard, number)
            if who != "guard":
                run.process.send_signal(number)
        except ProcessLookupError:
            pass  # it has ended by itself meanwhile

    def finish(self, seconds):
        """No new runs; True when the old ones have ended by then."""
        self.over.set()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self.lock:
                if not self.live:
                    return True
            time.sleep(0.05)
        return False

    def end_all(self):
        with self.lock:
            for run in self.live.values():
                run.process.kill()


class Crowd:
    """Strangers on this host: looking at each of its processes takes time."""

    def __init__(self, config):
        self.process = None
        if config["crowd"]:
            words = [*DIES_WITH_US, config["job"], "crowd", str(config["crowd"])]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.process.stdout.readline()

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def processes_left():
    """Command lines of those beside the agent itself; only where the pid namespace is the host's own."""
    left = []
    for pid in filter(str.isdigit, os.listdir("/proc") if os.getpid() == 1 else []):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().replace("\0", " ").strip()
        except OSError:
            continue
        if words and pid != "1" and " crowd " not in words:  # a zombie has none
            left.append(words)
    return left


def say(**words):
    print(json.dumps(words), flush=True)


def main():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # below nohup, or in the background, every rlock would ignore it, too
    say(up=True)
    config = sys.stdin.readline()
    if not config:
        return
    agent = Agent(json.loads(config))
    crowd = Crowd(agent.config)
    for number in range(agent.config["workers"]):
        threading.Thread(target=agent.work, args=(number,), daemon=True).start()
    for line in sys.stdin:
        order = json.loads(line)
        if "fault" in order:
            threading.Thread(target=agent.strike, args=(order,), daemon=True).start()
        elif order.get("finish"):
            drained = agent.finish(order["finish"])
            time.sleep(0.2)
            say(drained=drained, left=agent.harmed + processes_left())
    agent.end_all()
    crowd.end()
    os._exit(0)


if __name__ == "__main__":
    main()
