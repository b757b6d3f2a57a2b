#!/usr/bin/python3
"""Thousands of real processes of rlock that wait, on this machine.

Usage: crowd.py one [N...]      (10 and 10,000 waiters on one lock: memory, order, hand-over)
       crowd.py restart [N]     (10,000 waiters, and their server restarts with its data)
       crowd.py many [LOCKS] [WAITERS]   (1,000 locks with 10 waiters each)
       crowd.py rate [N]        (N runs on N locks, 50 at a time: runs a minute, and what each costs the server)

RLOCK and STAMP name the programs: rlock, and stamp, which writes when it began and when it ended.
"""

import os
import subprocess
import sys
import time

from common import RLOCK, STAMP, Server, gaps_of, percentile, recorded, row_of, run_commands, shown, spans_in, until

AT_ONCE = 50
SETTLE, WINDOW = 25, 40  # seconds: all waiters have asked at their pace; two of the longest intervals


class Crowd:
    """The processes, and the locks that are held until they all wait."""

    def __init__(self, server):
        self.server, self.holders, self.waiters = server, [], []
        self.stamps = os.path.join(server.folder, "stamps")

    def spawn(self, *words):
        return subprocess.Popen([RLOCK, "-u", self.server.url, "run", "-q", *words], stdin=subprocess.DEVNULL)

    def hold(self, name):
        self.holders.append(subprocess.Popen([RLOCK, "-u", self.server.url, "run", "-q", name, "--", "cat"],
                                             stdin=subprocess.PIPE))
        until(lambda: self.server.client.exists(f"rlock:{{{name}}}:holders"))

    def wait(self, name, count):
        """In the order in which they come, each behind the one before it."""
        for number in range(count):
            self.waiters.append(self.spawn(name, "--", STAMP, f"{self.stamps}.{name}.{number}", "0"))
            until(lambda n=number: self.server.client.zcard(f"rlock:{{{name}}}:queue") > n)

    def let_go(self):
        for holder in self.holders:
            holder.stdin.close()

    def finish(self):
        failed = sum(process.wait() != 0 for process in [*self.holders, *self.waiters])
        if failed:
            sys.exit(f"{failed} runs failed")

    def spans(self, name, count):
        """When the command of each began and ended, in the order in which they came."""
        return [spans_in(f"{self.stamps}.{name}.{number}")[0] for number in range(count)]

    def kill(self):
        for process in [*self.holders, *self.waiters]:
            process.kill()
            process.wait()


def check_nothing_is_left(server):
    """But memory, and what ends within seconds."""
    memory = (b":meta", b":history", b":released", b":who")
    kept = [key for key in server.client.keys("*") if not key.endswith(memory) and b":wake:" not in key]
    endless = [key for key in server.client.keys("*") if server.client.ttl(key) < 0]
    if kept or endless:
        sys.exit(f"left behind: {kept[:5]} {endless[:5]}")


def crowd_of(count):
    with Server() as server:
        crowd = Crowd(server)
        try:
            before = server.memory()
            crowd.hold("crowd")
            crowd.wait("crowd", count)
            sample = [process.pid for process in crowd.waiters[:: max(1, count // 100)]]
            private = percentile([row_of(pid, "smaps_rollup", "Private_") for pid in sample], .5)
            resident = percentile([row_of(pid, "smaps_rollup", "Rss") for pid in sample], .5)
            waiting = server.memory()
            time.sleep(SETTLE)
            resting = server.cpu()
            time.sleep(WINDOW)
            resting = server.cpu() - resting
            spent, calls = server.in_commands()
            crowd.let_go()
            crowd.finish()
            later, later_calls = server.in_commands()
        finally:
            crowd.kill()
        spans = crowd.spans("crowd", count)
        gaps = gaps_of(spans)
        check_nothing_is_left(server)
        return {"waiters": count, "served": len(spans), "in_order": spans == sorted(spans),
                "overlaps": sum(gap < 0 for gap in gaps),
                "hand_over_p50_ms": round(percentile(gaps, .5), 2), "hand_over_p99_ms": round(percentile(gaps, .99), 2),
                "private_kb": private, "resident_kb": resident,
                "server_bytes_a_waiter": (waiting - before) // count, "waiting_cpu_share": round(resting / WINDOW, 3),
                "server_us_a_run": round((later - spent) / count, 1),
                "scripts_a_run": round((later_calls - calls) / count, 2)}


@recorded("crowd")
def one(*counts):
    return {"rows": [shown(crowd_of(count)) for count in counts or (10, 10_000)]}


def watch_return(server, count):
    """Seconds until all are queued and blocked again; the most commands in one second, and the server's time."""
    begin, cpu = time.monotonic(), server.cpu()
    sent = ("evalsha", "eval", "blpop")
    rates, seen, last = [], server.calls(*sent), begin
    while server.client.info("clients")["blocked_clients"] < count:
        time.sleep(0.2)
        now, total = time.monotonic(), server.calls(*sent)
        rates.append((total - seen) / (now - last))
        seen, last = total, now
        if now - begin > 180:
            sys.exit("not all came back")
    took = time.monotonic() - begin
    return {"seconds_until_all_wait": round(took, 1), "most_commands_a_second": round(max(rates)),
            "server_cpu_share": round((server.cpu() - cpu) / took, 3)}


@recorded("restart")
def restart(count=10_000):
    with Server("--appendonly", "yes") as server:
        crowd = Crowd(server)
        try:
            crowd.hold("crowd")
            crowd.wait("crowd", count)
            before = server.client.zrange("rlock:{crowd}:queue", 0, -1)
            server.kill()
            server.start()
            values = watch_return(server, count)
            values["kept_their_places"] = server.client.zrange("rlock:{crowd}:queue", 0, -1) == before
            return {"waiters": count, **values}
        finally:
            crowd.kill()


@recorded("many")
def many(locks=1000, waiters=10):
    with Server() as server:
        crowd = Crowd(server)
        try:
            for number in range(locks):
                crowd.hold(f"many-{number}")
                crowd.wait(f"many-{number}", waiters)
            begin, cpu = time.monotonic(), server.cpu()
            crowd.let_go()
            crowd.finish()
            took = time.monotonic() - begin
            spans = [crowd.spans(f"many-{number}", waiters) for number in range(locks)]
            gaps = [gap for one in spans for gap in gaps_of(one)]
            check_nothing_is_left(server)
            return {"locks": locks, "waiters_each": waiters, "served": sum(map(len, spans)),
                    "overlaps": sum(gap < 0 for gap in gaps), "seconds": round(took, 1),
                    "runs_a_second": round(locks * waiters / took),
                    "server_cpu_share": round((server.cpu() - cpu) / took, 3)}
        finally:
            crowd.kill()


@recorded("rate")
def rate(count=10_000):
    return {"rows": [{"persistence": "none", **rate_of(count)},
                     {"persistence": "each write synced", **rate_of(count, "--appendonly", "yes", "--appendfsync", "always")}]}


def rate_of(count, *options):
    with Server(*options) as server:
        spent, _ = server.in_commands()
        begin, cpu, live = time.monotonic(), server.cpu(), []
        for number in range(count):
            live.append(subprocess.Popen([RLOCK, "-u", server.url, "run", "-q", f"rate-{number}", "--", "true"]))
            while len(live) >= AT_ONCE:
                live = [process for process in live if process.poll() is None]
                time.sleep(0.001)
        for process in live:
            process.wait()
        took, cpu = time.monotonic() - begin, server.cpu() - cpu
        return {"runs": count, "runs_a_minute": round(count / took * 60),
                "us_in_scripts_a_run": round((server.in_commands()[0] - spent) / count, 1),
                "server_cpu_us_a_run": round(cpu / count * 1e6, 1),
                "runs_a_second_of_a_server_core": round(count / cpu)}


run_commands({"one": one, "restart": restart, "many": many, "rate": rate}, __doc__)
