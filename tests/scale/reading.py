#!/usr/bin/python3
"""What it costs a server to be looked at: requests and commands a second of a waiter, a watcher and a scrape beside each
other, with redis-cli as their peer in the same run.

Usage: reading.py [SECONDS]      (default 30, for each number of names)
"""

import collections
import contextlib
import subprocess
import sys
import threading
import time

from common import RLOCK, Scripts, Server

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30
SCRAPE_EVERY = 15  # s
SETTLE = 4  # s: the watcher has found all names, redis-cli has asked once
ONE_REQUEST = 0.15  # s: equal commands of a connection that are closer to each other came as one batch
PACE = {1: 2, 20: 2, 1000: 4}  # names -> requests a second of the watcher, at most


class Monitor(threading.Thread):
    """Counts what the server is sent, by the connection that it came from; commands inside scripts are not counted."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.stream = client.monitor()
        self.stream.__enter__()
        self.seen = collections.defaultdict(list)  # address -> (time, command)
        self.start()

    def run(self):
        with contextlib.suppress(Exception):  # the server has ended
            for command in self.stream.listen():
                if command["client_type"] != "lua":
                    seen = self.seen[f"{command['client_address']}:{command['client_port']}"]
                    seen.append((command["time"], command["command"].split(" ", 1)[0]))

    def rates(self, addresses, begin, end):
        """Requests and commands a second."""
        commands = requests = 0
        for address in addresses:
            latest, before = 0, ""
            for at, word in [each for each in list(self.seen[address]) if begin <= each[0] < end]:
                commands += 1
                requests += word != before or at - latest > ONE_REQUEST
                latest, before = at, word
        return requests / (end - begin), commands / (end - begin)


def addresses(client):
    return {row["addr"] for row in client.client_list()}


class Lookers:
    """Processes that talk to the server, each known by its connections."""

    def __init__(self, client, stack):
        self.client, self.stack = client, stack
        self.known = addresses(client)
        self.of = {}

    def add(self, name, words, ready, **options):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.stack.callback(self.end, process)
        while not (ready() and addresses(self.client) - self.known):
            time.sleep(0.02)
        self.of[name] = addresses(self.client) - self.known
        self.known |= self.of[name]
        return process

    @staticmethod
    def end(process):
        process.terminate()
        process.wait()


def fill(client, names):
    """Each of them but the first is held, for an hour."""
    scripts = Scripts(client)
    for number in range(1, names):
        scripts.acquire(client, f"reading/{number}", "ab" * 16)


def poll(process, names, over):
    """What `redis-cli GET` costs that asks for each name each second."""
    lines = "".join(f"GET rlock:{{reading/{number}}}:holders\n" for number in range(names)).encode()
    with contextlib.suppress(BrokenPipeError):  # it has ended
        while not over.wait(1):
            process.stdin.write(lines)
            process.stdin.flush()


def look(server, names):
    """Prints what each of them asks for."""
    client = server.client
    client.flushall()
    fill(client, names)
    rlock = [RLOCK, "-u", server.tcp]
    cli = ["redis-cli", "-p", str(server.port)]
    with contextlib.ExitStack() as stack:
        monitor, over = Monitor(client), threading.Event()
        time.sleep(0.2)
        lookers = Lookers(client, stack)
        holders, queue = (f"rlock:{{reading/0}}:{part}" for part in ("holders", "queue"))
        lookers.add("holder", [*rlock, "run", "reading/0", "--", "sleep", "1000"], lambda: client.exists(holders))
        lookers.add("waiter", [*rlock, "run", "reading/0", "--", "true"], lambda: client.exists(queue))
        lookers.add("watcher", [*rlock, "watch", "--json"], lambda: True)
        lookers.add("redis-cli --stat", [*cli, "--stat"], lambda: True)
        polling = lookers.add("redis-cli GET", cli, lambda: True, stdin=subprocess.PIPE)
        stack.callback(over.set)
        threading.Thread(target=poll, args=(polling, names, over), daemon=True).start()
        time.sleep(SETTLE)
        begin, scrapes = time.time(), 0
        while time.time() - begin < SECONDS:
            if time.time() - begin >= scrapes * SCRAPE_EVERY:
                subprocess.run([*rlock, "metrics"], stdout=subprocess.DEVNULL, check=True)
                scrapes += 1
            time.sleep(0.05)
        end = time.time()
        of = lookers.of | {"scrape": set(monitor.seen) - lookers.known}
        rates = {name: monitor.rates(which, begin, end) for name, which in of.items()}
        rates["scrape"] = monitor.rates(of["scrape"], begin, end)
    report(names, scrapes, rates)


def report(names, scrapes, rates):
    batches = [f"{name} {rates[name][0]:.1f} ({rates[name][1]:.1f})" for name in ("waiter", "watcher")]
    theirs = [f"{name} {commands:.1f}" for name, (_, commands) in rates.items() if name.startswith("redis-cli")]
    print(f"requests (commands) a second at the server, {names:,} held: {'  '.join(batches)};  commands of a scrape "
          f"{rates['scrape'][1] * SECONDS / scrapes:.0f};  beside {', '.join(theirs)}")
    total = sum(rates[name][1] for name in ("waiter", "watcher", "scrape"))
    print(f"  waiter, watcher and a scrape every {SCRAPE_EVERY} s: {total:.1f} commands, {total / rates['redis-cli GET'][1]:.2f} "
          f"of redis-cli GET; the watcher {rates['watcher'][0]:.1f} requests   (to reach: {PACE[names]})")


with Server() as one_server:
    for how_many in PACE:
        look(one_server, how_many)
