#!/usr/bin/python3
"""What grows how, by the scripts alone: many names, and long queues.

Usage: size.py names [N]     (100,000 names; what `rlock status` takes of them)
       size.py queue [N...]  (queues of 10, 1,000, 10,000 and 100,000)
"""

import subprocess
import sys
import time

from common import RLOCK, Scripts, Server, fresh_owner, percentile, recorded, run_commands, shown

PAGE = 1000  # commands sent together


def each_batch(client, count, send):
    for first in range(0, count, PAGE):
        pipe = client.pipeline(transaction=False)
        for number in range(first, min(count, first + PAGE)):
            send(pipe, number)
        pipe.execute()


def status(server, *words):
    """Seconds that it takes, and the longest that another client waits meanwhile."""
    begin = time.monotonic()
    process = subprocess.Popen([RLOCK, "-u", server.url, "status", *words], stdout=subprocess.DEVNULL)
    longest = 0.0
    while process.poll() is None:
        asked = time.monotonic()
        server.client.ping()
        longest = max(longest, time.monotonic() - asked)
        time.sleep(0.001)
    if process.returncode != 0:
        sys.exit(f"rlock status ended with {process.returncode}")
    return round(time.monotonic() - begin, 2), round(longest * 1000, 1)


@recorded("names")
def names(count=100_000):
    with Server() as server:
        scripts, client = Scripts(server.client), server.client
        before = server.memory()
        owners = [fresh_owner() for _ in range(count)]
        each_batch(client, count, lambda pipe, i: scripts.acquire(pipe, f"team/job-{i}", owners[i]))
        held = server.memory()
        spent, calls = server.in_commands()
        each_batch(client, count, lambda pipe, i: scripts.release(pipe, f"team/job-{i}", owners[i]))
        idle, (later, later_calls) = server.memory(), server.in_commands()
        took, waited = status(server)
        all_took, all_waited = status(server, "--all")
        return {
            "names": count, "bytes_a_held_name": (held - before) // count, "bytes_an_idle_name": (idle - before) // count,
            "us_an_acquire": round(spent / calls, 1), "us_a_release": round((later - spent) / (later_calls - calls), 1),
            "status_seconds": took, "others_wait_ms": waited, "status_all_seconds": all_took,
            "others_wait_all_ms": all_waited}


def cost(server, action):
    """The median of what one call costs the server, in µs."""
    return percentile([server.cost(action) for _ in range(200)], 0.5)


@recorded("queue")
def queue(*lengths):
    rows = []
    for length in lengths or (10, 1000, 10_000, 100_000):
        with Server() as server:
            scripts, client = Scripts(server.client), server.client
            owners = [fresh_owner() for _ in range(length + 1)]
            scripts.acquire(client, "queue", owners[0])
            before = server.memory()
            each_batch(client, length, lambda pipe, i: scripts.acquire(pipe, "queue", owners[i + 1]))
            bytes_each = (server.memory() - before) // length
            # Those at the head must not be silent for long; the others have more time.
            each_batch(client, min(length, 5 * PAGE), lambda pipe, i: scripts.acquire(pipe, "queue", owners[i + 1]))

            def hand_over():
                scripts.release(client, "queue", owners.pop(0))
                scripts.acquire(client, "queue", owners[0])
                owners.append(fresh_owner())
                scripts.acquire(client, "queue", owners[-1])

            def last_one_asks():
                scripts.acquire(client, "queue", owners[-1])
            # At once, before others have been silent for too long: the scripts clear those away.
            hand_over_us = cost(server, hand_over)
            if client.zcard("rlock:{queue}:queue") != length:
                sys.exit("some waiters were silent for so long that the hand-overs measure how these are cleared away")
            rows.append(shown({"waiters": length, "bytes_a_waiter": bytes_each,
                               "us_to_join": cost(server, lambda: scripts.acquire(client, "queue", fresh_owner())),
                               "us_a_heartbeat": cost(server, last_one_asks), "us_a_hand_over": hand_over_us}))
    return {"rows": rows}


run_commands({"names": names, "queue": queue}, __doc__)
