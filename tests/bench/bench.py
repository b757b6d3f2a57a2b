"""Benchmarks of rlock beside its peers: medians and ratios from one run. See run.sh."""

import contextlib
import os
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

from measuring import Scripts, Server, free_ports

BUILD, ROUNDS = sys.argv[1], int(sys.argv[2])
RLOCK = os.path.join(BUILD, "src", "rlock")
PORTABLE = os.path.join(BUILD, "portable", "rlock")  # where its libraries are installed
STAMP = os.path.join(BUILD, "tests", "bench", "bench_stamp")
NO_LIMIT = 1_000_000_000
RELEASE_IF_OURS = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end"


def spawn(argv):
    return os.posix_spawnp(argv[0], argv, os.environ)


def timed(*commands):
    """Microseconds for running the commands one after the other."""
    begin = time.perf_counter_ns()
    for argv in commands:
        status = os.waitpid(spawn(argv), 0)[1]
        if status != 0:
            sys.exit(f"{argv} ended with {os.waitstatus_to_exitcode(status)}")
    return (time.perf_counter_ns() - begin) / 1000


def copied(binary, folder):
    """Where a file lies in the page cache moves a run by 10 %: those that are compared are copied afresh."""
    return shutil.copy(binary, os.path.join(folder, secrets.token_hex(4)))


def whole_run(port, folder):
    """The whole life of one uncontended run, interleaved with the peers'."""
    ours = {"rlock": copied(RLOCK, folder)}
    if os.path.exists(PORTABLE):
        ours["portable"] = copied(PORTABLE, folder)
    lock_file = os.path.join(folder, "f")
    cli = ["redis-cli", "-p", str(port)]
    quiet = os.open(os.devnull, os.O_WRONLY)
    saved = os.dup(1)
    os.dup2(quiet, 1)
    times = {name: [] for name in [*ours, "flock", "redis-cli"]}
    for _ in range(ROUNDS):
        times["flock"].append(timed(["flock", lock_file, "true"]))
        for name, binary in ours.items():
            times[name].append(timed([binary, "-u", f"redis://127.0.0.1:{port}", "run", "bench", "--", "true"]))
        times["redis-cli"].append(timed([*cli, "set", "bench", "me", "nx", "px", "30000"], ["true"],
                                        [*cli, "eval", RELEASE_IF_OURS, "1", "bench", "me"]))
    os.dup2(saved, 1)
    median = {name: statistics.median(values) for name, values in times.items()}
    print("whole run of `true`, median ms:  "
          + "  ".join(f"{name} {value / 1000:.2f}" for name, value in median.items()))
    for name, limit in ("rlock", "1.40"), ("portable", "1.30"):
        if name in median:
            print(f"  {name} : flock = {median[name] / median['flock']:.2f}   (to reach: {limit})")
    print(f"  rlock : redis-cli SET NX + EVAL = {median['rlock'] / median['redis-cli']:.2f}")


def certificate(folder):
    """A self-signed one for the loopback address: file names of the certificate and its key."""
    names = [os.path.join(folder, name) for name in ("tls.crt", "tls.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-out", names[0], "-keyout", names[1]], check=True, stderr=subprocess.DEVNULL)
    return names


def whole_run_tls(client, folder):
    """As whole_run, over TLS with a verified certificate; redis-cli looks at the chain alone."""
    crt, key = certificate(folder)
    port = str(free_ports(1)[0])
    client.execute_command("CONFIG", "SET", "tls-cert-file", crt, "tls-key-file", key, "tls-auth-clients", "no",
                           "tls-ca-cert-file", crt)
    client.execute_command("CONFIG", "SET", "tls-port", port)
    saved = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    times = {"rlock": [], "redis-cli --tls ping": []}
    for _ in range(ROUNDS):
        times["rlock"].append(timed([RLOCK, "-u", f"rediss://127.0.0.1:{port}", "--cacert", crt, "run", "tls",
                                     "--", "true"]))
        times["redis-cli --tls ping"].append(timed(["redis-cli", "-p", port, "--tls", "--cacert", crt, "ping"]))
    os.dup2(saved, 1)
    median = {name: statistics.median(values) for name, values in times.items()}
    print("whole run of `true` over TLS, median ms:  "
          + "  ".join(f"{name} {value / 1000:.2f}" for name, value in median.items()))
    print(f"  rlock : redis-cli --tls ping = {median['rlock'] / median['redis-cli --tls ping']:.2f}   (to reach: 1.00)")


def gaps_of(lines):
    """Only where the holder changed: one that takes it again at once has handed nothing over."""
    spans = sorted(tuple(map(int, line.split())) for line in lines)
    return [(after[0] - before[1]) / 1e6 for before, after in zip(spans, spans[1:])
            if after[2] != before[2]]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def rlock_handover(port, folder, rounds):
    """Three contenders; a gap is from the end of one command to the start of the next."""
    stamps = os.path.join(folder, "stamps")
    url = f"redis://127.0.0.1:{port}"

    def contend():
        for _ in range(rounds):
            subprocess.run([RLOCK, "-u", url, "run", "hand", "--", STAMP, stamps, "10"], check=True)

    threads = [threading.Thread(target=contend) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(stamps, encoding="ascii") as file:
        return gaps_of(file)


REDIS_PY = """
import sys, time, redis
client = redis.Redis(port=int(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    with client.lock('hand-py', timeout=30):
        start = time.monotonic_ns()
        time.sleep(0.01)
        print(start, time.monotonic_ns(), sys.argv[3], flush=True)
    time.sleep(0.02)
"""


def redis_py_handover(port, rounds):
    workers = [subprocess.Popen([sys.executable, "-c", REDIS_PY, str(port), str(rounds), str(worker)],
                                stdout=subprocess.PIPE, text=True) for worker in range(3)]
    return gaps_of(line for worker in workers for line in worker.communicate()[0].splitlines())


def handover(port, folder):
    rounds = max(10, ROUNDS // 6)
    ours, theirs = rlock_handover(port, folder, rounds), redis_py_handover(port, rounds)
    for name, gaps in (("rlock", ours), ("redis-py Lock", theirs)):
        print(f"hand-over, {name}: p50 {percentile(gaps, .5):.2f} ms, p99 {percentile(gaps, .99):.2f} ms"
              f" (of {len(gaps)})")
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"  rlock : redis-py = {ratio:.3f}   (to reach: p50 2 ms, p99 5 ms)")


def evalsha_us(client):
    return client.info("commandstats").get("cmdstat_evalsha", {"usec": 0})["usec"]


def server_cost_with(client, waiters):
    """Server microseconds for release, claim, the request of the woken head and one newcomer."""
    client.flushall()
    scripts, name = Scripts(client), f"crowd{waiters}"
    owners = [secrets.token_hex(16) for _ in range(waiters + 1)]
    for owner in owners:
        scripts.acquire(client, name, owner)
    costs = []
    for _ in range(ROUNDS):
        before = evalsha_us(client)
        scripts.release(client, name, owners.pop(0))
        scripts.acquire(client, name, owners[0])
        scripts.acquire(client, name, owners[1])
        costs.append(evalsha_us(client) - before)
        owners.append(secrets.token_hex(16))
        scripts.acquire(client, name, owners[-1])
    return statistics.median(costs)


def server_cost(client):
    costs = {waiters: server_cost_with(client, waiters) for waiters in (10, 100, 1000, 10000)}
    print("server µs a hand-over (release, claim, the next head's look): "
          + "  ".join(f"{waiters} waiters {cost:.0f}" for waiters, cost in costs.items()))
    print(f"  10,000 : 10 waiters = {costs[10000] / costs[10]:.2f}   (to reach: 2.00)")


def shared_cost_with(client, holders):
    """Server microseconds for one more shared holder to come and go beside the others."""
    client.flushall()
    scripts, name = Scripts(client), f"readers{holders}"
    for _ in range(holders):
        scripts.acquire(client, name, secrets.token_hex(16), NO_LIMIT)
    costs = []
    for _ in range(ROUNDS):
        owner = secrets.token_hex(16)
        before = evalsha_us(client)
        scripts.acquire(client, name, owner, NO_LIMIT)
        scripts.release(client, name, owner)
        costs.append(evalsha_us(client) - before)
    return statistics.median(costs)


def shared_cost(client):
    costs = {holders: shared_cost_with(client, holders) for holders in (10, 1000)}
    print("server µs a shared acquire and release: "
          + "  ".join(f"{holders} holders {cost:.0f}" for holders, cost in costs.items()))
    print(f"  1,000 : 10 holders = {costs[1000] / costs[10]:.2f}   (to reach: 1)")


def commands(port, client):
    """What one uncontended run makes the server do."""
    def calls():
        stats = client.info("commandstats")
        return {name[8:]: row["calls"] for name, row in stats.items()}

    timed([RLOCK, "-u", f"redis://127.0.0.1:{port}", "run", "count", "--", "true"])
    before = calls()
    timed([RLOCK, "-u", f"redis://127.0.0.1:{port}", "run", "count", "--", "true"])
    own = {name: n - before.get(name, 0) for name, n in calls().items() if n > before.get(name, 0)}
    inside = {name: n for name, n in own.items() if name.startswith(("evalsha", "client", "select", "auth"))}
    print(f"commands at the server per run: {inside}   (to reach: 2 evalsha and the set-up)")


def waiter_memory(port):
    url = f"redis://127.0.0.1:{port}"
    holder = subprocess.Popen([RLOCK, "-u", url, "run", "mem", "--", "sleep", "60"])
    time.sleep(0.3)
    waiter = subprocess.Popen([RLOCK, "-u", url, "run", "mem", "--", "true"])
    time.sleep(0.5)
    with open(f"/proc/{waiter.pid}/status", encoding="ascii") as file:
        rows = dict(line.split(":", 1) for line in file)
    print(f"a waiter's resident memory: {rows['VmRSS'].strip()}"
          f", of it private {rows['RssAnon'].strip()}   (to reach: 4096 kB)")
    for process in (waiter, holder):
        process.terminate()
        process.wait()


def quorum_run(ports):
    return [RLOCK, *(word for port in ports for word in ("-u", f"redis://127.0.0.1:{port}")), "run", "bench", "--", "true"]


def quorum():
    """Five servers beside one of them, then with two of the five hanging."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server("--appendonly", "yes", "--appendfsync", "always", port=port))
                   for port in free_ports(5)]
        ports = [server.port for server in servers]
        times = {"one": [], "five": [], "five, two hang": []}
        timed(quorum_run(ports))
        before = sum(server.calls("evalsha", "eval") for server in servers)
        for _ in range(ROUNDS):
            times["one"].append(timed(quorum_run(ports[:1])))
            times["five"].append(timed(quorum_run(ports)))
        calls = (sum(server.calls("evalsha", "eval") for server in servers) - before) / ROUNDS - 2
        hung = [server.process.pid for server in servers[3:]]
        try:
            for pid in hung:
                os.kill(pid, signal.SIGSTOP)
            for _ in range(ROUNDS):
                times["five, two hang"].append(timed(quorum_run(ports)))
        finally:
            for pid in hung:
                os.kill(pid, signal.SIGCONT)
        median = {name: statistics.median(values) for name, values in times.items()}
    print("whole run of `true` over a quorum (each write synced), median ms:  "
          + "  ".join(f"{name} {value / 1000:.2f}" for name, value in median.items()))
    print(f"  five : one = {median['five'] / median['one']:.2f} (to reach: 1.60), two hang : one = "
          f"{median['five, two hang'] / median['one']:.2f} (to reach: 1.40)")
    print(f"  messages a grant and release: {calls:.1f}   (to reach: 13)")


with Server(port=free_ports(1)[0]) as the_server:
    whole_run(the_server.port, the_server.folder.name)
    whole_run_tls(the_server.client, the_server.folder.name)
    handover(the_server.port, the_server.folder.name)
    commands(the_server.port, the_server.client)
    waiter_memory(the_server.port)
    server_cost(the_server.client)
    shared_cost(the_server.client)
quorum()
