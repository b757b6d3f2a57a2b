#!/usr/bin/python3
"""rlock beside others that run a command under a lock: whole run, hand-over, waiting, and a holder that dies or is stopped.

Usage: peers.py [ROUNDS]      (default 50)

Those that are not installed are left out: flock, redis-cli, redis-py, etcdctl with a real etcd (ETCD names the program).
All have leases of 10 s, except flock, which has none.
"""

import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from common import RLOCK, TOP, Server, percentile, record

STAMP = os.environ.get("STAMP", str(TOP / "build" / "release" / "tests" / "bench" / "bench_stamp"))
ETCD = os.environ.get("ETCD") or shutil.which("etcd")
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
TTL = 10  # seconds
WAITERS = 10
HOLD_MS = "50"
WAITING = {"rlock": 40}  # seconds; 5 for those that do not renew: their leases end

# The recipe of the manual of SET: a random value, and a release that compares it.
REDIS_CLI = """me=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
until [ "$(redis-cli -s "$1" set "$2" "$me" nx px 10000)" = OK ]; do sleep 0.1; done
name=$2 socket=$1; shift 2; "$@"
redis-cli -s "$socket" eval "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end" 1 \\
  "$name" "$me" >/dev/null
"""
REDIS_PY = """import subprocess, sys, redis
with redis.Redis(unix_socket_path=sys.argv[1]).lock(sys.argv[2], timeout=10):
    subprocess.run(sys.argv[3:])
"""


class Etcd:
    """A private one on free ports; ended by its pid."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        ports = []
        for _ in range(2):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                ports.append(probe.getsockname()[1])
        self.url, peer = (f"http://127.0.0.1:{port}" for port in ports)
        self.process = subprocess.Popen(
            [ETCD, "--data-dir", self.folder.name, "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run(["etcdctl", "--endpoints", self.url, "endpoint", "health"], env=self.environment(),
                             capture_output=True, check=False).returncode:
            time.sleep(0.1)

    def environment(self):
        return os.environ | {"ETCDCTL_API": "3"}

    def close(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def peers(server, etcd):
    """{name: (name of the lock, command) -> words}"""
    flocks = os.path.join(server.folder.name, "flock-")
    found = {
        "rlock": lambda name, words: [RLOCK, "-u", server.url, "run", "-q", "--ttl", f"{TTL}s", name, "--", *words],
        "flock": lambda name, words: ["flock", flocks + name, *words],
        "redis-cli SET NX": lambda name, words: ["sh", "-c", REDIS_CLI, "sh", server.path, f"cli-{name}", *words],
        "redis-py Lock": lambda name, words: ["/usr/bin/python3", "-c", REDIS_PY, server.path, f"py-{name}", *words],
    }
    if etcd:
        os.environ["ETCDCTL_API"] = "3"
        found["etcdctl lock"] = lambda name, words: ["etcdctl", "--endpoints", etcd.url, "lock", "--ttl", str(TTL), name,
                                                     "--", *words]
    return found


def whole_run(words_of):
    times = []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        subprocess.run(words_of("whole", ["true"]), check=True, stdout=subprocess.DEVNULL)
        times.append((time.monotonic() - begin) * 1000)
    return round(statistics.median(times), 2)


def hand_over(words_of, folder):
    """Ten come at once; a gap is from the end of one command to the beginning of the next."""
    stamps = os.path.join(folder, "stamps")
    gaps, job = [], (STAMP, stamps, HOLD_MS)
    for _ in range(max(1, ROUNDS // 10)):
        if os.path.exists(stamps):
            os.unlink(stamps)
        runs = [subprocess.Popen(words_of("hand", job), stdout=subprocess.DEVNULL) for _ in range(10)]
        for run in runs:
            run.wait()
        with open(stamps, encoding="ascii") as file:
            spans = sorted(tuple(map(int, line.split()[:2])) for line in file)
        gaps += [(after[0] - before[1]) / 1e6 for before, after in zip(spans, spans[1:])]
    return round(percentile(gaps, .5), 1), round(percentile(gaps, .99), 1)


def begun(path, count):
    """Waits until so many commands have begun; how long that took."""
    begin = time.monotonic()
    while not os.path.exists(path) or len(open(path, encoding="ascii").read().split()) < count:
        if time.monotonic() - begin > 6 * TTL:
            return None
        time.sleep(0.02)
    return time.monotonic() - begin


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def start(words):
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)


def end(run, how=signal.SIGKILL):
    """With all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, how)
    run.wait()


def befalls(words_of, name, folder, what):
    """After the signal to the holder's process: seconds until the next command begins, and whether the first still runs."""
    path = os.path.join(folder, f"begun-{name}")
    if os.path.exists(path):
        os.unlink(path)
    job = ["sh", "-c", f"echo $$ >>{path}; exec sleep 100"]
    first = start(words_of(name, job))
    begun(path, 1)
    second = start(words_of(name, job))
    time.sleep(1)
    os.kill(first.pid, what)
    took = begun(path, 2)
    with open(path, encoding="ascii") as file:
        pids = [int(line) for line in file]
    beside = took is not None and alive(pids[0])
    end(first)
    end(second)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return None if took is None else round(took, 1), beside


def waiting(peer, words_of, server):
    """Commands that one waiter sends in a minute, and what it keeps resident."""
    holder = start(words_of("wait", ["sleep", "1000"]))
    time.sleep(1)
    waiters = [start(words_of("wait", ["true"])) for _ in range(WAITERS)]
    time.sleep(2)
    own = ("evalsha", "eval", "blpop") if peer == "rlock" else ("evalsha", "eval", "set")  # what its scripts call is not sent
    before, seconds = server.calls(*own), WAITING.get(peer, 5)
    time.sleep(seconds)
    commands = server.calls(*own) - before
    resident = statistics.median([resident_kb(waiter.pid) for waiter in waiters])
    for process in [*waiters, holder]:
        end(process, signal.SIGTERM)
    return round(commands / WAITERS * 60 / seconds, 1), resident


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def measure(name, words_of, server):
    folder = server.folder.name
    p50, p99 = hand_over(words_of, folder)
    commands, resident = waiting(name, words_of, server)
    killed, beside_killed = befalls(words_of, "killed", folder, signal.SIGKILL)
    stopped, beside_stopped = befalls(words_of, "stopped", folder, signal.SIGSTOP)
    return {"peer": name, "whole_run_ms": whole_run(words_of), "hand_over_p50_ms": p50, "hand_over_p99_ms": p99,
            "commands_a_waiting_minute": commands if "etcd" not in name and name != "flock" else None,
            "resident_kb_of_a_waiter": resident, "killed_next_after_s": killed, "killed_runs_beside": beside_killed,
            "stopped_next_after_s": stopped, "stopped_runs_beside": beside_stopped}


def main():
    etcd = Etcd() if ETCD and shutil.which("etcdctl") else None
    rows = []
    try:
        with Server() as server:
            for name, words_of in peers(server, etcd).items():
                rows.append(measure(name, words_of, server))
                print(rows[-1], flush=True)
    finally:
        if etcd:
            etcd.close()
    record("peers", {"rounds": ROUNDS, "rows": rows})


main()
