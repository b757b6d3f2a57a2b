#!/usr/bin/python3
"""Runs under mixed faults for as long as wanted: does one overlap another, do memory, descriptors, keys or processes grow?

Usage: soak.py [SECONDS] [SEED]      (default 60; pieces add up: each appends its rows to docs/report/data/soak.tsv)

Runs of every kind contend for 200 locks, each on one of three servers or on a quorum of them; half of the runs contend for
four. Some runs are killed, stopped or interrupted. Every five seconds a server restarts with its data, loses its clients or
stops for a moment. A lock of the kernel witnesses that no two commands overlap. A run holds a lock and another waits for it
all the time, a run holds a lock on the quorum, and `rlock watch` looks on.
"""

import contextlib
import datetime
import os
import random
import signal
import subprocess
import sys
import threading
import time

from common import DATA, RLOCK, Server, begin_quietly, commit, resident_kb, until

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**9)
WORKERS, LOCKS, CONTENDED = 6, 200, 4
STRIKE, LOOK = 5, 60  # seconds between two faults of a server, and between two looks
LONG = "2m"  # a server that restarts on a busy machine may take half a minute to read its data
OVERLAP = 99  # the exit code of a command that finds another at work
QUORUM_KINDS = ([], ["-n"], ["--wait", "1s"], ["--once-within", "2s"], ["--once-per", "minute"], ["--min-hold", "200ms"])
KINDS = (*QUORUM_KINDS, ["--slots", "2"], ["--supersede"])
PERSISTENT = ("--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "1mb")
LONG_ONES = ("holder", "waiter", "voter", "watch")
COLUMNS = ("date", "commit", "seed", "second", "runs", "overlaps", "servers_kb", "servers_fds", "keys", "endless_keys",
           *(f"{name}_{what}" for name in LONG_ONES for what in ("kb", "fds")))


class Soak:
    def __init__(self, servers):
        self.servers, self.runs, self.over = servers, 0, threading.Event()
        self.one = [["-u", server.url] for server in servers]
        self.quorum = sum(self.one, [])
        self.codes = {}
        self.counting = threading.Lock()
        self.chance = random.Random(SEED)
        self.long = {}
        self.begin("holder", *self.one[0], "run", "-v", "--ttl", LONG, "long", "--", "sleep", "infinity")
        until(lambda: servers[0].client.exists("rlock:{long}:holders"))
        self.begin("waiter", *self.one[0], "run", "-v", "long", "--", "true")
        self.begin("voter", *self.quorum, "run", "-v", "--ttl", "1m", "vote", "--", "sleep", "infinity")
        self.begin("watch", *self.one[0], "watch", "--json")

    def begin(self, name, *words):
        with open(self.messages(name), "wb") as messages:
            self.long[name] = subprocess.Popen([RLOCK, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=messages)

    def messages(self, name):
        return os.path.join(self.servers[0].folder, name)

    def work(self, number):
        chance = random.Random(SEED * 100 + number)
        while not self.over.is_set():
            lock = chance.randrange(chance.choice((CONTENDED, LOCKS)))
            url, kind = self.one[lock // 2 % len(self.one)], chance.choice(KINDS)
            if lock % 2:
                url, kind = self.quorum, chance.choice(QUORUM_KINDS)
            witness = ["flock", "--shared" if "--slots" in kind else "--exclusive", "--nonblock", "--conflict-exit-code",
                       str(OVERLAP), self.messages(f"witness-{lock}")]
            run = subprocess.Popen([RLOCK, *url, "run", "-q", *kind, "--ttl", "2s", f"soak-{lock}", "--", *witness,
                                    "sleep", f"{chance.expovariate(20):.3f}"], stderr=subprocess.DEVNULL)
            if chance.random() < 0.2:
                time.sleep(chance.expovariate(20))
                self.strike(run, chance)
            code = run.wait()
            with self.counting:
                self.runs += 1
                self.codes[code] = self.codes.get(code, 0) + 1

    @staticmethod
    def strike(run, chance):
        how = chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP))
        run.send_signal(how)
        if how == signal.SIGSTOP:
            time.sleep(chance.uniform(0, 3))
            run.send_signal(signal.SIGCONT)

    def strike_server(self):
        server = self.chance.choice(self.servers)
        match self.chance.randrange(3):
            case 0:
                server.kill()
                server.start()
            case 1:
                server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            case 2:
                server.pause()
                time.sleep(self.chance.uniform(0, 2))
                server.go_on()

    def look(self, second):
        keys = endless = 0
        for server in self.servers:
            for key in server.client.scan_iter(count=1000):
                keys += 1
                endless += server.client.ttl(key) == -1
        row = [datetime.date.today().isoformat(), commit(), SEED, second, self.runs, self.codes.get(OVERLAP, 0),
               sum(server.memory() for server in self.servers) // 1024, sum(fds(server.process.pid) for server in self.servers),
               keys, endless]
        for name in LONG_ONES:
            process = self.long[name]
            if process.poll() is not None:
                with open(self.messages(name), encoding="utf-8", errors="replace") as messages:
                    raise RuntimeError(f"the {name} ended with {process.returncode} in second {second}:\n{messages.read()[-3000:]}")
            row += [resident_kb(process.pid), fds(process.pid)]
        return row

    def end(self):
        self.over.set()
        for process in self.long.values():
            process.terminate()
            process.wait()


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def write(row):
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "soak.tsv"
    if not path.exists():
        path.write_text("\t".join(COLUMNS) + "\n", encoding="ascii")
    with path.open("a", encoding="ascii") as file:
        file.write("\t".join(map(str, row)) + "\n")


def main():
    begin_quietly()
    print(f"seed {SEED}", flush=True)
    with contextlib.ExitStack() as stack:
        soak = Soak([stack.enter_context(Server(*PERSISTENT)) for _ in range(3)])
        threads = [threading.Thread(target=soak.work, args=[number]) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        rows, begin = [], time.monotonic()
        try:
            while True:
                second = round(time.monotonic() - begin)
                if second >= len(rows) * LOOK or second >= SECONDS:
                    rows.append(soak.look(second))
                    write(rows[-1])
                if second >= SECONDS:
                    break
                time.sleep(STRIKE)
                soak.strike_server()
        finally:
            soak.end()
            for thread in threads:
                thread.join()
    print(f"{soak.runs} runs, exit codes {dict(sorted(soak.codes.items()))}")
    print("\n".join("\t".join(map(str, row)) for row in (COLUMNS, rows[0], rows[-1])))
    if soak.codes.get(OVERLAP):
        sys.exit("two commands overlapped")
    if any(row[COLUMNS.index("endless_keys")] for row in rows):
        sys.exit("a key has no end")


main()
