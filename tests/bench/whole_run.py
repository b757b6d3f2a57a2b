#!/usr/bin/env python3
"""Times `rlock run x -- true` against `flock f true`, interleaved, on a private server on loopback TCP.

    tests/bench/whole_run.py RLOCK [ROUNDS]

RLOCK is a release build. Prints both medians and their ratio; 1.3 is to be reached on an idle machine.
"""
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, server):
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    sys.exit("redis-server did not start")


def microseconds(argv, env):
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], argv, env)
    code = os.waitpid(pid, 0)[1]
    if code != 0:
        sys.exit(f"{argv} failed: {code}")
    return (time.perf_counter_ns() - begin) / 1000


def main():
    rlock = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL)
        try:
            wait_for(port, server)
            env = {**os.environ, "RLOCK_URL": f"redis://127.0.0.1:{port}"}
            tools = {"flock": ["/usr/bin/flock", f"{folder}/lock", "/bin/true"],
                     "rlock": [rlock, "run", "bench", "--", "/bin/true"]}
            times = {name: [] for name in tools}
            for _ in range(rounds):
                for name, argv in tools.items():
                    times[name].append(microseconds(argv, env))
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, median in medians.items():
        print(f"{name}: {median:.0f} µs (median of {rounds})")
    print(f"ratio: {medians['rlock'] / medians['flock']:.2f}")


main()
