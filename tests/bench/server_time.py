"""What a run costs the server: microseconds inside commands, and memory. See run.sh.

With BASELINE in the environment (the path of another rlock) each measure runs that one, too, in turn with ours.
"""

import os
import statistics
import subprocess
import sys
import threading

from measuring import Server, free_ports

ROUNDS = int(sys.argv[2])
BINARIES = {"rlock": os.path.join(sys.argv[1], "src", "rlock")}
if os.environ.get("BASELINE"):
    BINARIES["baseline"] = os.environ["BASELINE"]
RELEASE_IF_OURS = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end"


def command_us(client):
    """Microseconds that the server has spent in the commands of its clients, BLPOP's included."""
    stats = client.info("commandstats")
    names = ("evalsha", "eval", "set", "blpop")
    return sum(stats.get("cmdstat_" + name, {"usec": 0})["usec"] for name in names)


def spent(client, action):
    before = command_us(client)
    action()
    return command_us(client) - before


def run(binary, port, *words):
    subprocess.run([binary, "-u", f"redis://127.0.0.1:{port}", "run", *words, "--", "true"], check=True)


def uncontended(port, client):
    """An acquire and a release that nobody else wants, beside the two commands of the plain recipe."""
    release = client.script_load(RELEASE_IF_OURS)

    def plain():
        client.set("plain", "me", nx=True, px=30000)
        client.evalsha(release, 1, "plain", "me")

    costs = {name: [] for name in (*BINARIES, "SET NX PX and compare-and-delete")}
    for _ in range(ROUNDS):
        for name, binary in BINARIES.items():
            costs[name].append(spent(client, lambda b=binary, n=name: run(b, port, f"free-{n}")))
        costs["SET NX PX and compare-and-delete"].append(spent(client, plain))
    report("server µs of an uncontended run", costs)


def contended(port, client, binary, name):
    """Three contenders, each at once again: nearly every run is a hand-over. Microseconds for each."""
    runs = max(10, ROUNDS // 10)

    def contend():
        for _ in range(runs):
            run(binary, port, f"hand-{name}")

    def all_three():
        threads = [threading.Thread(target=contend) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return spent(client, all_three) / (3 * runs)


def hand_over(port, client):
    costs = {name: [] for name in BINARIES}
    for _ in range(5):
        for name, binary in BINARIES.items():
            costs[name].append(contended(port, client, binary, name))
    report("server µs of a run that waits for its turn", costs)


def report(what, costs):
    median = {name: statistics.median(values) for name, values in costs.items()}
    print(f"{what}, median:  " + "  ".join(f"{name} {value:.0f}" for name, value in median.items()))
    for other, value in median.items():
        if other != "rlock":
            print(f"  rlock : {other} = {median['rlock'] / value:.2f}")


def memory_of(client, prefix):
    return sum(client.memory_usage(key) for key in client.scan_iter(prefix + "*", count=1000))


def hold_memory(port, client):
    """Bytes that a lone hold takes above the same name when it is free."""
    for name, binary in BINARIES.items():
        lock = f"memory-{name}"
        run(binary, port, lock)
        idle = memory_of(client, "rlock:{" + lock + "}")
        with subprocess.Popen([binary, "-u", f"redis://127.0.0.1:{port}", "run", lock, "--", "sh", "-c",
                               "echo; read -r _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            held = memory_of(client, "rlock:{" + lock + "}")
            holder.stdin.write(b"\n")
        print(f"memory at the server, {name}: an idle name {idle} bytes, a lone hold {held - idle} more")


with Server(port=free_ports(1)[0]) as server:
    uncontended(server.port, server.client)
    hand_over(server.port, server.client)
    hold_memory(server.port, server.client)
