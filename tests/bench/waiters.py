"""What waiters at rest cost a server: thousands of them, each on a connection of its own, at the pace of rlock's.

Usage: waiters.py [N...]      (default 1000 3000 10000); see run.sh
"""

import os
import random
import secrets
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from script_texts import KEYS, script_text

SETTLE, MEASURE = 25, 40  # seconds: everybody has asked at their new pace; two of the longest slices


def packed(*words):
    out = [f"*{len(words)}\r\n"]
    for word in words:
        word = str(word)
        out.append(f"${len(word.encode())}\r\n{word}\r\n")
    return "".join(out).encode()


def parsed(data, at=0):
    """The reply at `at` and where it ends; None where it is not complete yet."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, head, at = data[at:at + 1], data[at + 1:end], end + 2
    if kind == b"$":
        if head == b"-1":
            return None, at
        end = at + int(head)
        return (data[at:end], end + 2) if len(data) >= end + 2 else None
    if kind != b"*" or head == b"-1":
        return (int(head) if kind == b":" else None if kind == b"*" else head), at
    items = []
    for _ in range(int(head)):
        item = parsed(data, at)
        if item is None:
            return None
        items.append(item[0])
        at = item[1]
    return items, at


class Server:
    """A private one on a unix socket; ended by its pid."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "s")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "", "--maxclients", "15000",
             "--dir", self.folder, "--logfile", os.path.join(self.folder, "log"), *options])
        while not os.path.exists(self.path):
            time.sleep(0.01)
        self.control = self.connect()
        self.sha = self.ask("SCRIPT", "LOAD", script_text("acquire")).decode()

    def connect(self):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(self.path)
        return stream

    def ask(self, *words):
        self.control.sendall(packed(*words))
        data = b""
        while (reply := parsed(data)) is None:
            data += self.control.recv(1 << 20)
        return reply[0]

    def cpu(self):
        """Seconds of the whole process."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            row = file.read().rsplit(")", 1)[1].split()
        return (int(row[11]) + int(row[12])) / os.sysconf("SC_CLK_TCK")

    def in_scripts(self):
        """Seconds, and how many there were."""
        rows = self.ask("INFO", "commandstats").decode().splitlines()
        row = next((row for row in rows if row.startswith("cmdstat_evalsha:")), "")
        fields = dict(pair.split("=") for pair in row.partition(":")[2].split(",") if pair)
        return int(fields.get("usec", 0)) / 1e6, int(fields.get("calls", 0))

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


class Waiter:
    def __init__(self, server, attempts):
        self.server, self.attempt = server, 1 if attempts else 0
        self.owner = secrets.token_hex(16)
        self.ticket, self.slice = 0, 5000
        self.stream, self.data, self.asked = None, b"", False
        keys = [f"rlock:{{bench}}:{suffix}" for suffix in KEYS]
        self.call = ("EVALSHA", server.sha, len(KEYS), *keys, self.owner)
        self.wake = f"rlock:{{bench}}:wake:{self.owner}"

    def acquire(self):
        more = ()
        if self.attempt:
            more, self.attempt = (self.attempt,), self.attempt + 1
            self.ticket = self.ticket or time.time_ns() // 1000
        return (*self.call, self.ticket, 1, 3_600_000, 0, 1, "wait", "", "bench", *more)

    def keep(self, reply):
        if reply[0] == b"queued":
            self.ticket = reply[1]
            self.slice = reply[5] if len(reply) > 5 else 5000  # none from scripts that are older

    def block(self, first=False):
        slice_ms = self.slice * (random.random() if first else random.uniform(0.9, 1.1))
        self.asked = False
        self.stream.send(packed("BLPOP", self.wake, f"{max(1, slice_ms) / 1000:.3f}"))

    def readable(self):
        self.data += self.stream.recv(1 << 16)
        reply = parsed(self.data)
        if reply is None:
            return
        self.data = b""
        if self.asked:
            self.keep(reply[0])
            self.block()
        else:
            self.asked = True
            self.stream.send(packed(*self.acquire()))


def run_for(seconds, selector):
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            key.data.readable()


def measure(count, attempts):
    server = Server()
    try:
        server.ask(*Waiter(server, False).acquire())  # holds it for an hour
        selector = selectors.EpollSelector()
        waiters = [Waiter(server, attempts) for _ in range(count)]
        for waiter in waiters:
            waiter.keep(server.ask(*waiter.acquire()))
        for waiter in waiters:
            waiter.stream = server.connect()
            selector.register(waiter.stream, selectors.EVENT_READ, waiter)
            waiter.block(first=True)
        run_for(SETTLE, selector)
        cpu, (inside, calls), begin = server.cpu(), server.in_scripts(), time.monotonic()
        run_for(MEASURE, selector)
        passed = time.monotonic() - begin
        cpu, (inside_after, calls_after) = server.cpu() - cpu, server.in_scripts()
        for waiter in waiters:
            waiter.stream.close()
        calls = calls_after - calls
        return cpu / passed, calls / passed, (inside_after - inside) / max(1, calls) * 1e6
    finally:
        server.close()


def main():
    for attempts in (False, True):
        for count in [int(word) for word in sys.argv[1:]] or (1000, 3000, 10000):
            share, calls, each = measure(count, attempts)
            print(f"{count} waiters at rest{', as at a server of a quorum' if attempts else ''}: "
                  f"{share:.1%} of the server's core, {calls:.0f} heartbeats/s of {each:.0f} µs"
                  + ("   (to reach: 5 %)" if count == 10000 else ""))


main()
