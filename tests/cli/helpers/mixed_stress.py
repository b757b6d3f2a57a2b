#!/usr/bin/env python3
"""mixed_stress.py RLOCK BEAT URL SECONDS [SEED]: every mode at once on one server, with kills, cancels,
force-unlocks and one FLUSHALL, and a checker of what the commands saw. Prints the seed and the counts; exits 1
at a violation. The least limit of those who run is never exceeded (but for one renewal interval after the
FLUSHALL), tokens increase, waiters do not overtake each other, nothing is left.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

RLOCK, BEAT, URL, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else random.SystemRandom().randrange(10**9)
LOCKS, WORKERS = ("red", "green"), 10
TTL = 2.0
MODES = (([], 1), (["-s"], 10**9), (["--slots", "2"], 2), (["--slots", "3"], 3))
ALLOWED = {0, 75, 76, -signal.SIGKILL, -signal.SIGTERM}
ENV = dict(os.environ, RLOCK_URL=URL)
folder = tempfile.TemporaryDirectory()
violations, codes, flushed = [], {}, []
guard = threading.Lock()


def rlock(*words, **options):
    return subprocess.run([RLOCK, *words], env=ENV, capture_output=True, text=True, check=False, **options)


def trace_of(name):
    return os.path.join(folder.name, name)


def one_run(chance):
    name = chance.choice(LOCKS)
    mode, limit = chance.choice(MODES)
    held = chance.choice((10, 60, 250, 400, 2500))
    wait = chance.choice((["-n"], ["-w", "0.5"], ["-w", "20"], ["-w", "20"]))
    extra = ["--min-hold", "0.3"] if chance.random() < 0.1 else []
    command = [BEAT, trace_of(name), str(held), str(limit)]
    if chance.random() < 0.15:
        command = [RLOCK, "run", "-q", "-t", str(TTL), *mode, name, "--", *command]
    process = subprocess.Popen([RLOCK, "run", "-q", "-t", str(TTL), *wait, *mode, *extra, name, "--", *command],
                               env=ENV, stderr=subprocess.DEVNULL, start_new_session=True)
    fate = chance.random()
    if fate < 0.12:
        time.sleep(chance.random() * 0.4)
        process.send_signal(signal.SIGKILL if fate < 0.06 else signal.SIGTERM)
    code = process.wait(timeout=60)
    with guard:
        codes[code] = codes.get(code, 0) + 1
        if code not in ALLOWED:
            violations.append(f"exit code {code}")


def worker(number, until):
    chance = random.Random(SEED * 1000 + number)
    while time.monotonic() < until:
        one_run(chance)


def operator(until):
    chance = random.Random(SEED)
    while time.monotonic() < until:
        time.sleep(0.7)
        rlock("force-unlock", "--all", "--yes", chance.choice(LOCKS))


def flush_once():
    time.sleep(SECONDS / 2)
    client = ["redis-cli", "-s", URL.removeprefix("unix://"), "flushall"]
    subprocess.run(client, stdout=subprocess.DEVNULL, check=True)
    flushed.append(time.monotonic_ns())


def watch_queue(name, until):
    """Nobody overtakes: waiters that two snapshots list are in the same order in both."""
    before = []
    while time.monotonic() < until:
        begin = time.monotonic_ns()
        now = [w["owner"] for w in json.loads(rlock("queue", "--json", name).stdout or '{"waiters":[]}')["waiters"]]
        both = set(before) & set(now)
        if [o for o in before if o in both] != [o for o in now if o in both] and not near_flush(begin):
            violations.append(f"{name}: waiters overtook each other")
        before = now
        time.sleep(0.1)


def near_flush(moment):
    """A lease is put back at the next renewal: a third of the ttl; twice that for slow machines."""
    return any(0 <= moment - when <= TTL * 2 / 3 * 1e9 for when in flushed)


def spans_of(name):
    spans = {}
    with open(trace_of(name), encoding="ascii") as file:
        for line in file:
            word, moment, pid, *rest = line.split()
            if word == "start":
                spans[pid] = {"start": int(moment), "token": int(rest[0]), "owner": rest[1], "limit": int(rest[2])}
            spans[pid]["end"] = int(moment)
    return sorted(spans.values(), key=lambda span: span["start"])


def check_limits(name, spans):
    running = []
    for span in spans:
        running = [other for other in running if other["end"] > span["start"]] + [span]
        owners = {other["owner"] for other in running}
        if len(owners) > min(other["limit"] for other in running) and not near_flush(span["start"]):
            violations.append(f"{name}: {len(owners)} at once, limits {[o['limit'] for o in running]}")


def check_tokens(name, spans):
    """A grant is later than every run that had ended before it started. It is not compared with one that may hold
    the lock beside it: of those the first to be granted may be the last to start."""
    for i, span in enumerate(spans):
        older = [other["token"] for other in spans[max(0, i - 50):i]
                 if other["end"] < span["start"] and 1 in (span["limit"], other["limit"])]
        if older and span["token"] <= max(older):
            violations.append(f"{name}: token {span['token']} after {max(older)}")


def check_nothing_left():
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        states = json.loads(rlock("status", "--json").stdout)["locks"]
        if all(lock["state"] == "free" and lock["waiters"] == 0 for lock in states):
            return
        time.sleep(0.2)
    violations.append("something is left: " + json.dumps(states))


print(f"seed {SEED}", flush=True)
end = time.monotonic() + SECONDS
threads = [threading.Thread(target=worker, args=(n, end)) for n in range(WORKERS)]
threads += [threading.Thread(target=watch_queue, args=(name, end)) for name in LOCKS]
threads += [threading.Thread(target=operator, args=(end,)), threading.Thread(target=flush_once)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check_nothing_left()
total = 0
for lock_name in LOCKS:
    held_spans = spans_of(lock_name)
    total += len(held_spans)
    check_limits(lock_name, held_spans)
    check_tokens(lock_name, held_spans)
print(f"{total} holds, exit codes {codes}, {len(violations)} violations")
for violation in violations[:20]:
    print("violation:", violation)
sys.exit(1 if violations or total == 0 else 0)
