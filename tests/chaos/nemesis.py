"""Injects faults and undoes them. docs/FAULTS.md lists them."""
import dataclasses
import heapq
import subprocess

import clock
import history

# Done by a host's agent to one of its runs; each run has one such fault at most.
PROCESSES = {"rlock_stopped": 1, "guard_stopped": 2, "rlock_killed": 4, "guard_killed": 5, "both_killed": 6,
             "rlock_signalled": 11, "waiter_killed": 32, "waiters_killed": 32, "waiter_stopped": 33,
             "waiter_signalled": 34, "stranger_marked": 43}
LINKS = {"link_down": 16, "requests_lost": 16, "replies_lost": 15, "lossy": 16}
KEEPING = {"server_stopped": 21, "server_killed": 19, "clients_killed": 19, "scripts_flushed": 20, "paused": 21,
           "long_script": 24, "no_memory": 24, "no_replicas": 24, "replies_delay": 12, "replies_stall": 15,
           "replies_trickle": 17, "replies_swallow": 13}
LOSING = {"flushed": 22, "server_emptied": 22, "overwritten": 23, "evicted": 25}
FAILOVER = {"master_killed": 27, "master_stopped": 27, "planned_failover": 27, "writes_lost": 26}
SLOTS = {"slot_moved": 28}
MAJORITY = {"majority_stopped": 31, "majority_killed": 31}
OTHERS = {"starved": 9, "operator": 23, "operator_now": 23, "forgotten": 56, "host_frozen": 3, "clock_shifted": 29}
ROWS = PROCESSES | LINKS | KEEPING | LOSING | FAILOVER | SLOTS | MAJORITY | OTHERS

ONCE = ["once", "done", "recorded", "marks"]

HARMLESS = [*PROCESSES, *PROCESSES, *LINKS, *KEEPING, "starved", "operator"]
ILL = [*PROCESSES, *LINKS, *KEEPING, *KEEPING, "server_emptied", "starved", "operator"]
LOST = [*LOSING, *LOSING, "operator_now", "rlock_stopped", "clients_killed", "replies_swallow"]
MOVED = [*PROCESSES, *LINKS, "clients_killed", "operator"]
ALL = ["no overlap", "tokens grow", "stale", "owner only", "undue", "reported", "dead in time", "ended", "freed in time", "order",
       "truthful exit", "left"]
OF_A_QUORUM = ["no overlap", "tokens grow", "stale", "grows", "owner only", "dead in time", "ended", "handed", "left"]


@dataclasses.dataclass
class Mode:
    faults: list
    checks: list  # that must hold. [docs/FAULTS.md, "Chaos runs"]
    topology: str = "single"
    workload: str = "plain"  # what the runs ask for beside the lock
    locks: int = 4
    replicas: int = 0  # that confirm each grant


MODES = {
    "durable": Mode(HARMLESS, ALL),
    "loss": Mode(LOST, ["tokens grow", "owner only", "dead in time", "left"]),
    "clock": Mode(["clock_shifted", "rlock_stopped", "waiter_killed", "clients_killed"], ["tokens grow", "owner only", "kept", "left"]),
    "frozen": Mode(["host_frozen", "host_frozen", "rlock_stopped", "guard_killed"], ["tokens grow", "owner only", "left"]),
    "minority": Mode(ILL, OF_A_QUORUM, "quorum5"),
    "majority": Mode(["majority_stopped", "majority_killed", *PROCESSES, "replies_delay"], OF_A_QUORUM, "quorum5"),
    "sentinel": Mode([*FAILOVER, *FAILOVER, *MOVED], ["tokens grow", "kept", "left"], "sentinel"),
    "confirmed": Mode([*FAILOVER, "planned_failover"], ["no overlap", "tokens grow", "left"], "sentinel4", replicas=2),
    "cluster": Mode([*FAILOVER, *SLOTS, *SLOTS, *MOVED], ["tokens grow", "kept", "left"], "cluster"),
    "once": Mode([*HARMLESS, "forgotten"], [*ALL, *ONCE], workload="once", locks=3),
    "once_loss": Mode([*LOSING, "forgotten", "rlock_stopped", "rlock_killed", "rlock_signalled", "replies_swallow"],
                      ["tokens grow", "owner only", "dead in time", "once", "left"], workload="once", locks=3),
    "once_minority": Mode([*ILL, "forgotten"], [*OF_A_QUORUM, "once", "done", "recorded"], "quorum3", "once", 3),
    "slots": Mode(HARMLESS, [*ALL, "slots", "slot"], workload="slots", locks=1),
    "slots_loss": Mode(LOST, ["tokens grow", "owner only", "dead in time", "slot", "left"], workload="slots", locks=1),
}
LONGEST = 2.5  # s: longer than the longest ttl of a run, on a machine that is quick
HOGS = 2


@dataclasses.dataclass
class Operated:
    """What came of an operator's command."""
    lock: str
    sure: bool


class Nemesis:
    def __init__(self, chance, hosts, topology, freezer, settings):
        self.chance, self.hosts, self.freezer, self.settings = chance, hosts, freezer, settings
        self.topology, self.server = topology, topology.faults()
        self.links = hosts.faults()
        self.pending = []  # a heap of (when, number, undo, fault)
        self.done = []  # history.Fault

    def obstacle(self, name):
        """Why a fault is not possible here; empty when it is."""
        if name in LINKS and name not in self.links:
            return "no network namespaces" if not self.links else "no nft"
        if name not in PROCESSES | LINKS | OTHERS | self.server:
            return f"not with {type(self.topology).__name__}"
        return ""

    def strike(self, name):
        seconds = self.chance.uniform(0.1, LONGEST * self.settings["slow"]) if self.chance.random() < 0.8 else 0.05
        if name in PROCESSES:
            for _ in range(5 if name == "waiters_killed" else 1):
                self.order(name.replace("waiters", "waiter"), seconds)
        elif not self.busy(name):
            seconds = self.topology.lasts(name, seconds) if name in self.server else seconds
            host = self.chance.randrange(len(self.hosts.hosts))
            self.begin(name, host, seconds, self.doer(name, host, seconds))

    def order(self, name, seconds):
        if name == "waiter_stopped":
            seconds *= 2  # past a grant and its claim
        self.chance.choice(self.hosts.hosts).send(fault=name, seconds=seconds, seed=self.chance.randrange(10**9))

    def busy(self, name):
        """As many faults of the servers at a time as the topology tolerates, and one outside of the servers."""
        pending = [fault.name for *_, fault in self.pending]
        if name in self.server:
            return not self.topology.room(name, [other for other in pending if other in self.server])
        return any(other not in self.server for other in pending)

    def doer(self, name, host, seconds):
        if name in self.server:
            return lambda: self.server[name](seconds, self.chance)
        if name in self.links:
            return lambda: self.links[name](host)
        if name == "host_frozen":
            return lambda: self.freezer.freeze(host)
        return {"starved": self.starve, "operator": self.force_unlock,
                "operator_now": lambda: self.force_unlock("--now"), "forgotten": self.forget}[name]

    def begin(self, name, host, seconds, do):
        excuses = name not in self.server or self.topology.excuses(name)
        fault = history.Fault(name, clock.now(), clock.now(), host, excuses)
        undo = do()
        if isinstance(undo, Operated):
            fault.lock, fault.sure, fault.end = undo.lock, undo.sure, clock.now()
        if not callable(undo):
            seconds = seconds if name == "paused" else 0
            undo = None
        order = len(self.done) + len(self.pending)  # so that a heap never compares what undoes
        heapq.heappush(self.pending, (clock.now() + int(seconds * 1e9), order, undo, fault))

    def settle(self, all_of_them=False):
        """Undoes what is over."""
        while self.pending and (all_of_them or self.pending[0][0] <= clock.now()):
            _, _, undo, fault = heapq.heappop(self.pending)
            if undo is not None:
                undo()
            fault.end = clock.now()
            self.done.append(fault)

    def under_way(self):
        return [dataclasses.replace(fault, end=clock.now()) for *_, fault in self.pending]

    def starve(self):
        words = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]
        hogs = [subprocess.Popen(words) for _ in range(HOGS)]

        def end():
            for hog in hogs:
                hog.kill()
                hog.wait()
        return end

    def force_unlock(self, *options):
        lock = self.chance.choice(self.settings["locks"])
        self.operate("force-unlock", "--all", "--yes", *options, lock)

    def forget(self):
        """Whether it happened is not known where rlock could not confirm it."""
        lock = self.chance.choice(self.settings["locks"])
        return Operated(lock, self.operate("forget", "--yes", lock) == 0)

    def operate(self, *words):
        words = [*self.hosts.inside(), self.settings["rlock"], *words]
        return subprocess.run(words, env=self.settings["operator"], check=False, capture_output=True, timeout=30).returncode
