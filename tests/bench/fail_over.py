"""The time from a master's death to the next grant, over a Sentinel group. See run.sh."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time

import redis
from measuring import free_ports

BUILD = sys.argv[1]
RLOCK = os.path.join(BUILD, "src", "rlock")
STAMP = os.path.join(BUILD, "tests", "bench", "bench_stamp")
SENTINEL_CONF = """
port {port}
bind 127.0.0.1
dir {folder}
logfile {folder}/log{port}
sentinel monitor bench 127.0.0.1 {master} 2
sentinel down-after-milliseconds bench 1000
sentinel failover-timeout bench 3000
"""


def until(true, limit=30):
    """Waits until the servers are ready."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        with contextlib.suppress(redis.exceptions.RedisError):
            if true():
                return
        time.sleep(0.01)
    sys.exit("the servers did not become ready")


@contextlib.contextmanager
def sentinel_group():
    """A master with two replicas and three sentinels; ended by their pids."""
    ports = free_ports(6)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        def start(*argv):
            process = subprocess.Popen(["redis-server", *argv], stdout=subprocess.DEVNULL)
            stack.callback(lambda: (process.kill(), process.wait()))
            return process

        def data_server(port, *argv):
            return start("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
                         "--repl-diskless-sync-delay", "0", *argv)

        master = data_server(ports[0])
        for port in ports[1:3]:
            data_server(port, "--replicaof", "127.0.0.1", str(ports[0]))
        first = redis.Redis(port=ports[0])
        until(lambda: sum(row.get("state") == "online" for name, row in first.info("replication").items()
                          if name.startswith("slave") and isinstance(row, dict)) == 2)
        for port in ports[3:]:
            conf = os.path.join(folder, f"{port}.conf")
            with open(conf, "w", encoding="ascii") as file:
                file.write(SENTINEL_CONF.format(port=port, folder=folder, master=ports[0]))
            start(conf, "--sentinel")
        for port in ports[3:]:
            sentinel = redis.Redis(port=port)
            until(lambda: (sentinel.sentinel_master("bench")["num-slaves"],
                           sentinel.sentinel_master("bench")["num-other-sentinels"]) == (2, 2))
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports[3:])
        yield master, ports[3], f"redis+sentinel://{hosts}/bench", folder


def fail_over():
    """The master is killed under a queue of runs: when does the next of them start?"""
    with sentinel_group() as (master, sentinel_port, url, folder):
        stamps = os.path.join(folder, "stamps")
        sentinel = redis.Redis(port=sentinel_port)
        old = sentinel.sentinel_get_master_addr_by_name("bench")
        stop = threading.Event()

        def contend():
            while not stop.is_set():
                subprocess.run([RLOCK, "-u", url, "run", "-w", "60", "over", "--", STAMP, stamps, "10"], check=False)

        threads = [threading.Thread(target=contend) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        killed = time.monotonic_ns()
        master.kill()
        until(lambda: sentinel.sentinel_get_master_addr_by_name("bench") != old)
        elected = time.monotonic_ns()
        until(lambda: starts_in(stamps)[-1] > elected)
        stop.set()
        for thread in threads:
            thread.join()
        starts = starts_in(stamps)
        # The longest silence: one granted just before the end may start after it.
        _, granted = max(zip(starts, starts[1:]), key=lambda pair: pair[1] - pair[0])
    print(f"fail-over, kill -9 of the master -> next grant: {(granted - killed) / 1e9:.2f} s, of it until a sentinel"
          f" names the new one {(elected - killed) / 1e9:.2f} s (down-after 1 s)")


def starts_in(stamps):
    with open(stamps, encoding="ascii") as file:
        return sorted(int(line.split()[0]) for line in file)


fail_over()
