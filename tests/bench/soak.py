#!/usr/bin/python3
"""Runs under mixed faults for as long as wanted: do memory, descriptors, keys or processes grow?

Usage: soak.py [SECONDS] [SEED]      (default 60; pieces add up: each appends its rows to docs/report/data/soak.tsv)

Some locks are contended by runs of every kind; some of these are killed, stopped or interrupted, and the server restarts
with its data, or loses its clients. One run holds a lock and another waits for it all the time; `rlock watch` looks on.
"""

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
WORKERS, LOCKS, EACH = 6, 3, 10  # seconds between two looks
LONG = "2m"  # a server that restarts on a busy machine may take half a minute to read its data
KINDS = ([], ["-n"], ["--wait", "1s"], ["--slots", "2"], ["--once-within", "2s"], ["--once-per", "minute"],
         ["--supersede"], ["--min-hold", "200ms"])
COLUMNS = ("date", "commit", "seed", "second", "runs", "server_kb", "server_fds", "keys", "endless_keys", "holder_kb", "holder_fds",
           "waiter_kb", "waiter_fds", "watch_kb", "watch_fds")


class Soak:
    def __init__(self, server):
        self.server, self.runs, self.over = server, 0, threading.Event()
        self.codes = {}
        self.counting = threading.Lock()
        self.chance = random.Random(SEED)
        self.long = {}
        self.begin("holder", "run", "-v", "--ttl", LONG, "long", "--", "sleep", "infinity")
        until(lambda: server.client.exists("rlock:{long}:holders"))
        self.begin("waiter", "run", "-v", "long", "--", "true")
        self.begin("watch", "watch", "--json")

    def begin(self, name, *words):
        with open(self.messages(name), "wb") as messages:
            self.long[name] = subprocess.Popen([RLOCK, "-u", self.server.url, *words], stdin=subprocess.PIPE,
                                               stdout=subprocess.DEVNULL, stderr=messages)

    def messages(self, name):
        return os.path.join(self.server.folder, name)

    def work(self, number):
        chance = random.Random(SEED * 100 + number)
        while not self.over.is_set():
            words = [*chance.choice(KINDS), "--ttl", "2s", f"soak-{chance.randrange(LOCKS)}", "--", "sleep",
                     f"{chance.expovariate(20):.3f}"]
            run = subprocess.Popen([RLOCK, "-u", self.server.url, "run", "-q", *words], stderr=subprocess.DEVNULL)
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
        if self.chance.random() < 0.5:
            self.server.kill()
            self.server.start()
        else:
            self.server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def look(self, second):
        client = self.server.client
        keys = list(client.scan_iter(count=1000))
        endless = [key for key in keys if client.ttl(key) == -1]
        row = [datetime.date.today().isoformat(), commit(), SEED, second, self.runs, client.info("memory")["used_memory"] // 1024,
               fds(self.server.process.pid), len(keys), len(endless)]
        for name, process in self.long.items():
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


def write(rows):
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "soak.tsv"
    if not path.exists():
        path.write_text("\t".join(COLUMNS) + "\n", encoding="ascii")
    with path.open("a", encoding="ascii") as file:
        for row in rows:
            file.write("\t".join(map(str, row)) + "\n")


def main():
    begin_quietly()
    print(f"seed {SEED}", flush=True)
    with Server("--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "1mb") as server:
        soak = Soak(server)
        threads = [threading.Thread(target=soak.work, args=[number]) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        rows, begin = [], time.monotonic()
        try:
            while (second := round(time.monotonic() - begin)) < SECONDS:
                rows.append(soak.look(second))
                time.sleep(EACH / 2)
                soak.strike_server()
                time.sleep(EACH / 2)
        finally:
            soak.end()
            for thread in threads:
                thread.join()
            write(rows)
    print(f"{soak.runs} runs, exit codes {dict(sorted(soak.codes.items()))}")
    print("\n".join("\t".join(map(str, row)) for row in (COLUMNS, rows[0], rows[-1])))
    if any(row[COLUMNS.index("endless_keys")] for row in rows):
        sys.exit("a key has no end")


main()
