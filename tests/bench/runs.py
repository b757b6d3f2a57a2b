#!/usr/bin/python3
"""Whole runs that nobody contends, beside their peers: the median ms, and ratios from one run of this program.

Usage: runs.py [ROUNDS]      (default 300)

RLOCK names the program; PORTABLE and BASELINE others of the kind, which take their turns: another flavour, an older one. On a
busy machine run it as root with `chrt -f 10`: nothing else then gets the processors that it needs.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys

from common import BUILD, RLOCK, Server, in_turn, timed
from harness import free_ports

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
RELEASE_IF_OURS = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end"


def programs(folder):
    """Where a file lies in the page cache moves a run by 10 %: those that are compared are copied afresh."""
    found = {"rlock": RLOCK, "portable": os.environ.get("PORTABLE", str(BUILD / "portable" / "rlock")),
             "baseline": os.environ.get("BASELINE", "")}
    return {name: shutil.copy(path, os.path.join(folder, secrets.token_hex(4)))
            for name, path in found.items() if os.path.exists(path)}


def show(what, medians, *ratios):
    """RATIOS: (one, other, what to reach or nothing)."""
    print(f"{what}, median:  " + "  ".join(f"{name} {value:.2f}" for name, value in medians.items()))
    for one, other, reach in ratios:
        if one in medians and other in medians:
            print(f"  {one} : {other} = {medians[one] / medians[other]:.2f}" + (f"   (to reach: {reach})" if reach else ""))


def whole_run(server):
    ours = programs(server.folder)
    cli = ["redis-cli", "-p", str(server.port)]

    def recipe():
        return sum(map(timed, ([*cli, "set", "bench", "me", "nx", "px", "30000"], ["true"],
                               [*cli, "eval", RELEASE_IF_OURS, "1", "bench", "me"])))

    show("ms of a whole run of `true`", in_turn(ROUNDS, {
        "flock": lambda: timed(["flock", os.path.join(server.folder, "f"), "true"]),
        **{name: lambda path=path: timed([path, "-u", server.tcp, "run", "bench", "--", "true"]) for name, path in ours.items()},
        "redis-cli SET NX + EVAL": recipe}),
        ("rlock", "flock", "1.40"), ("portable", "flock", "1.30"), ("rlock", "redis-cli SET NX + EVAL", ""))


def over_tls(server):
    """With a verified certificate; redis-cli looks at the chain alone."""
    crt, key = (os.path.join(server.folder, name) for name in ("tls.crt", "tls.key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-out", crt, "-keyout", key],
                   check=True, stderr=subprocess.DEVNULL)
    port = str(free_ports(1)[0])
    server.client.execute_command("CONFIG", "SET", "tls-cert-file", crt, "tls-key-file", key, "tls-auth-clients", "no",
                                  "tls-ca-cert-file", crt)
    server.client.execute_command("CONFIG", "SET", "tls-port", port)
    show("ms of a whole run of `true` over TLS", in_turn(ROUNDS, {
        "rlock": lambda: timed([RLOCK, "-u", f"rediss://127.0.0.1:{port}", "--cacert", crt, "run", "tls", "--", "true"]),
        "redis-cli --tls ping": lambda: timed(["redis-cli", "-p", port, "--tls", "--cacert", crt, "ping"])}),
        ("rlock", "redis-cli --tls ping", "1.00"))


def quorum():
    """Five servers beside one of them, then with two of the five hanging."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server("--appendonly", "yes", "--appendfsync", "always")) for _ in range(5)]

        def run(some):
            return timed([RLOCK, *(word for server in some for word in ("-u", server.tcp)), "run", "bench", "--", "true"])

        run(servers)
        medians = in_turn(ROUNDS, {"one": lambda: run(servers[:1]), "five": lambda: run(servers)})
        for server in servers[3:]:
            server.pause()
        medians |= in_turn(ROUNDS, {"five, two hang": lambda: run(servers)})
    show("ms of a whole run of `true` over a quorum (each write synced)", medians, ("five", "one", "1.60"),
         ("five, two hang", "one", "1.40"))


with Server() as one_server:
    whole_run(one_server)
    over_tls(one_server)
quorum()
