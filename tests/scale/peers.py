#!/usr/bin/python3
"""rlock beside others that run a command under a lock: what a run costs, waiters by their number, and faults.

Usage: peers.py [ROUNDS [NAME...]]      (default 50, and all of contenders.py)

Those that are not installed are in the tables with the reason. ETCD names this program if it is in no folder of PATH,
NODE_MODULES the folder that has redlock and ioredis. Leases are of 10 s where something befalls the holder, else so long that
nobody loses them; flock has none.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from common import STAMP, cpu_us, gaps_of, in_turn, percentile, recorded, resident_kb, shown, spans_in, timed, until
from contenders import everybody
from peer_faults import begun, end, faults_of, start

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
WAITERS = (1, 10, 100)
WINDOW = 20  # seconds: the longest interval after which a waiter of rlock asks again


def whole_runs(peers):
    """ms of a run that nobody contends, of each of them."""
    with contextlib.ExitStack() as stack:
        words = {peer.name: peer.words(stack.enter_context(peer.server(False)).address, "whole", peer.long_lease(), ["true"])
                 for peer in peers}
        medians = in_turn(ROUNDS, {name: lambda some=some: timed(some) for name, some in words.items()})
    return {name: round(value, 2) for name, value in medians.items()}


def busy(processes):
    """How many of them run or want to."""
    states = []
    for process in processes:
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            states.append(file.read().rsplit(")", 1)[1].split()[0])
    return sum(state in "RD" for state in states)


def settle(processes):
    """Waits until they have started, and hardly do more than wait."""
    quiet, limit = 0, time.monotonic() + 120
    while quiet < 20 and time.monotonic() < limit:
        time.sleep(0.1)
        quiet = quiet + 1 if busy(processes) <= len(processes) // 20 else 0


class Crowd:
    """One has the lock until the gate opens, and others wait."""

    def __init__(self, peer, server, count, name):
        self.peer, self.server, self.count, folder = peer, server, count, server.folder
        self.stamps, self.gate, self.begun = (os.path.join(folder, f"{name}-{what}") for what in ("stamps", "gate", "begun"))
        os.mkfifo(self.gate)
        self.memory = server.memory() if hasattr(server, "memory") else None
        job = ["sh", "-c", f"echo $$ >{self.begun}; cat {self.gate}; exec {STAMP} {self.stamps} 0"]
        self.all = [self.start(name, job)]
        until(lambda: begun(self.begun))
        self.all += [self.start(name, (STAMP, self.stamps, "0")) for _ in range(count)]
        settle(self.all[1:])

    def start(self, name, job):
        return start(self.peer.words(self.server.address, name, self.peer.long_lease(), job))

    def waiting(self):
        """What the server does in a second, commands a minute of each waiter, and what each of them occupies."""
        resident = statistics.median_low([resident_kb(process.pid) for process in self.all[1:]])
        if self.memory is None:
            return None, None, None, resident
        kept = (self.server.memory() - self.memory) // self.count
        cpu, sent = cpu_us(self.server.process.pid), self.server.commands(self.peer.sent)
        time.sleep(WINDOW)
        commands = None if sent is None else round((self.server.commands(self.peer.sent) - sent) / self.count * 60 / WINDOW, 1)
        return round((cpu_us(self.server.process.pid) - cpu) / WINDOW), commands, kept, resident

    def hand_over(self):
        """ms from the end of each command to the beginning of the next, and the server's µs for each run."""
        before = cpu_us(self.server.process.pid) if self.memory is not None else None
        with open(self.gate, "w", encoding="ascii"):
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            for process in self.all:
                process.wait(timeout=300)
        spent = None if before is None else round((cpu_us(self.server.process.pid) - before) / self.count)
        return gaps_of(spans_in(self.stamps)), spent

    def close(self):
        for process in self.all:
            end(process)


def crowd(peer, count):
    gaps, spent, waiting = [], [], None
    with peer.server(False) as server:
        subprocess.run(peer.words(server.address, "warm-up", peer.long_lease(), ["true"]), check=True, stdout=subprocess.DEVNULL)
        for number in range(max(1, ROUNDS // 5 // count)):
            one = Crowd(peer, server, count, f"crowd-{count}-{number}")
            try:
                waiting = waiting or one.waiting()
                more, cost = one.hand_over()
            finally:
                one.close()
            gaps += more
            spent.append(cost)
    return {"peer": peer.name, "waiters": count, "hand_overs": len(gaps),
            "hand_over_p50_ms": round(percentile(gaps, .5), 1) if gaps else None,
            "hand_over_p99_ms": round(percentile(gaps, .99), 1) if gaps else None,
            "server_us_a_run": spent[0] if spent[0] is None else round(statistics.median(spent)),
            "server_us_a_second_of_waiting": waiting[0], "commands_a_waiting_minute": waiting[1],
            "server_bytes_a_waiter": waiting[2], "resident_kb_of_a_waiter": waiting[3]}


def crowds(peers):
    """Of each peer in turn, for the same reason; in the table each has its rows together."""
    rows = [shown(crowd(peer, count)) for count in WAITERS for peer in peers]
    return sorted(rows, key=lambda row: [peer.name for peer in peers].index(row["peer"]))


@recorded("peers")
def main():
    peers = [peer for peer in everybody() if not sys.argv[2:] or peer.name in sys.argv[2:]]
    there = [peer for peer in peers if not peer.missing]
    whole = whole_runs(there)
    rows = [{"peer": peer.name, "version": peer.missing or peer.version(),
             "renews": None if peer.missing or peer.name == "flock" else peer.renews,
             "whole_run_ms": whole.get(peer.name)} for peer in peers]
    print(*rows, sep="\n", flush=True)
    waiters = crowds(there)
    with ThreadPoolExecutor(len(there)) as pool:
        faults = [row for rows in pool.map(faults_of, there) for row in rows]
    return {"rounds": ROUNDS, "rows": rows, "waiters": waiters, "faults": faults}


main()
