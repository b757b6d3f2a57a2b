#!/usr/bin/env python3
"""The checker against a lock runner that is known to fail: `etcdctl lock`, its holder stopped longer than its lease.
Exit codes: 0 caught, 1 not caught, 77 no etcd here.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import checker
import history
from hosts import DIES_WITH_US, free_ports, until

LIMIT, TTL = 150, 2  # s
WORKERS = 3
PROGRAMS = ("etcd", "etcdctl")


def serve(folder):
    """An etcd of our own on free ports, and where it listens."""
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    words = ["etcd", "--data-dir", os.path.join(folder, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
    with open(os.path.join(folder, "etcd.txt"), "wb") as log:
        server = subprocess.Popen(DIES_WITH_US + words, stdout=log, stderr=log)
    until(lambda: server.poll() is not None or etcdctl(client, "endpoint", "health").wait() == 0, "an etcd")
    if server.poll() is not None:
        raise RuntimeError("etcd did not come up")
    return server, client


def etcdctl(client, *words, **options):
    env = dict(os.environ, ETCDCTL_API="3", ETCDCTL_ENDPOINTS=client)
    return subprocess.Popen(["etcdctl", *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            **options)


class Workers:
    """A few `etcdctl lock` in a row each, one of whom is stopped past its lease from time to time."""

    def __init__(self, client, folder):
        self.client, self.folder, self.chance = client, folder, random.Random(1)
        self.running = []
        self.count = 0

    def keep_going(self):
        self.running = [runner for runner in self.running if runner.poll() is None]
        while len(self.running) < WORKERS:
            self.count += 1
            whose = ["env", f"RLOCK_OWNER=etcd{self.count}", f"RLOCK_TOKEN={self.count}"]
            held = str(self.chance.choice((300, 1000, 5000)))  # ms
            job = [os.environ["CHAOS_JOB"], self.folder, "lock", held, "plain", "0"]
            lock = etcdctl(self.client, "lock", "--ttl", str(TTL), "lock", *whose, *job, start_new_session=True)
            self.running.append(lock)

    def stop_one(self):
        holder = self.chance.choice(self.running)
        holder.send_signal(signal.SIGSTOP)
        time.sleep(TTL * 2)
        holder.send_signal(signal.SIGCONT)

    def end(self):
        """With their commands, which etcdctl would leave behind."""
        for runner in self.running:
            if runner.poll() is None:
                os.killpg(runner.pid, signal.SIGKILL)
            runner.wait()


def search(folder):
    server, client = serve(folder)
    workers = Workers(client, folder)
    begin = time.monotonic()
    try:
        while time.monotonic() - begin < LIMIT:
            workers.keep_going()
            time.sleep(0.5)
            workers.stop_one()
            found = checker.check(history.read(folder, [], [], 0), ["no overlap"])
            if found:
                print(f"etcdctl lock: caught in {time.monotonic() - begin:.0f} s ({found[0]})")
                return 0
    finally:
        workers.end()
        server.kill()
        server.wait()
    print(f"etcdctl lock: SURVIVED {LIMIT} s")
    return 1


def main():
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        print(f"skipped: no {' and '.join(missing)} here (Debian: etcd-server, etcd-client)")
        return 77
    with tempfile.TemporaryDirectory(prefix="rlock-chaos-") as folder:
        return search(folder)


if __name__ == "__main__":
    sys.exit(main())
