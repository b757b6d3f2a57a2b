"""What all measurements share: programs, a server, the scripts as a client calls them, and where the numbers go."""

import contextlib
import datetime
import functools
import json
import os
import pathlib
import re
import secrets
import statistics
import subprocess
import sys
import time

import redis

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests" / "harness"))
import harness  # noqa: E402
from redis_server import RedisServer  # noqa: E402

DATA = TOP / "docs" / "report" / "data"
BUILD = TOP / "build" / "release"
RLOCK = os.environ.get("RLOCK", str(BUILD / "src" / "rlock"))
STAMP = os.environ.get("STAMP", str(BUILD / "tests" / "bench" / "stamp"))
QUIET = 1.5  # processes that want a processor, for each that there is: beside more of them no number is kept
BUSY = 75  # the exit code then
KEYS = ("holders", "limits", "queue", "alive", "who", "meta", "released", "history", "never", "once")


# ---- programs ----

def timed(words):
    """ms of a command, whose output nobody sees."""
    begin = time.perf_counter_ns()
    pid = os.posix_spawnp(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0)
                                                                    for number in (1, 2)])
    status = os.waitpid(pid, 0)[1]
    if status != 0:
        sys.exit(f"{words} ended with {os.waitstatus_to_exitcode(status)}")
    return (time.perf_counter_ns() - begin) / 1e6


def in_turn(rounds, measures):
    """The median of what each of them returns, {name: what measures}. They take turns: what else the machine does then
    befalls all alike."""
    seen = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            seen[name].append(measure())
    return {name: statistics.median(values) for name, values in seen.items()}


def row_of(pid, file, name):
    """The number in that row of /proc/PID/FILE."""
    with open(f"/proc/{pid}/{file}", encoding="ascii") as rows:
        return sum(int(row.split()[1]) for row in rows if row.startswith(name))


def resident_kb(pid):
    return row_of(pid, "status", "VmRSS")


def cpu_us(pid):
    """Of all its threads."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1000


until = functools.partial(harness.until, pause=0.001)


def spans_in(path):
    """When the commands of STAMP began and ended, ns."""
    with open(path, encoding="ascii") as file:
        return sorted(tuple(map(int, line.split()[:2])) for line in file)


def gaps_of(spans):
    """ms from the end of a command to the beginning of the next."""
    spans = sorted(spans)
    return [(after[0] - before[1]) / 1e6 for before, after in zip(spans, spans[1:])]


# ---- servers ----

class Server(RedisServer):
    """On a unix socket, and on a `port` of the loopback interface."""

    def __init__(self, *options):
        super().__init__("--maxclients", "15000", *options, port=harness.free_ports(1)[0])
        self.client = redis.Redis(unix_socket_path=self.socket)
        self.tcp = f"redis://127.0.0.1:{self.port}"

    def memory(self):
        return self.client.info("memory")["used_memory"]

    def cpu(self):
        """Seconds of the whole process."""
        return cpu_us(self.process.pid) / 1e6

    def in_commands(self):
        """Microseconds inside commands, and how many scripts there were."""
        stats = self.client.info("commandstats")
        own = [row for name, row in stats.items() if name in ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_blpop")]
        return sum(row["usec"] for row in own), self.calls("evalsha", "eval")

    def cost(self, action):
        """Microseconds inside commands that it takes."""
        before = self.in_commands()[0]
        action()
        return self.in_commands()[0] - before

    def calls(self, *commands):
        """How many of these were sent to it."""
        stats = self.client.info("commandstats")
        return sum(stats.get("cmdstat_" + command, {"calls": 0})["calls"] for command in commands)


def script_text(name):
    """As the newest build embeds it."""
    built = max(TOP.glob("build/*/src/lua/scripts.cpp"), key=os.path.getmtime).read_text(encoding="ascii")
    literals = re.search(rf"const Script {name}{{\"\w+\",\n(.*?)}};", built, re.DOTALL)[1]
    return bytes.fromhex("".join(re.findall(r"\\x(..)", literals))).decode()


class Scripts:
    """The scripts of the native format, sent as rlock sends them."""

    def __init__(self, client):
        self.sha = {name: client.script_load(script_text(name)) for name in ("acquire", "release")}

    def call(self, to, script, name, *arguments):
        keys = [f"rlock:{{{name}}}:{suffix}" for suffix in KEYS]
        return to.evalsha(self.sha[script], len(KEYS), *keys, *arguments)

    def acquire(self, to, name, owner):
        return self.call(to, "acquire", name, "owner", owner, "limit", 1, "ttl", 3_600_000, "responsive", 1, "record", "scale")

    def release(self, to, name, owner):
        return self.call(to, "release", name, "owner", owner, "entry", "0", "how", "released", "note", "exit:0")


# ---- numbers ----

def fresh_owner():
    return secrets.token_hex(16)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def load():
    """How many processes wanted a processor in the last minute, for each one that there is."""
    return os.getloadavg()[0] / os.cpu_count()


def commit():
    return subprocess.run(["git", "-C", str(TOP), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          check=True).stdout.strip()


def begin_quietly(may_be_busy=False):
    """What numbers that are to be kept depend on: the day, the load of the machine, and how many ms it takes to run `true`.
    Ends the program on a busy machine, unless the numbers are better on a quiet one at most by what nobody states."""
    busy = load()
    if busy > QUIET and not may_be_busy:
        print(f"not measured: the load of this machine is {busy:.1f} for each processor, and docs/report keeps no number "
              f"that began above {QUIET}", file=sys.stderr)
        sys.exit(BUSY)
    process_ms = statistics.median(timed(["true"]) for _ in range(100))
    return {"date": datetime.date.today().isoformat(), "load": round(busy, 1), "process_ms": round(process_ms, 1)}


def shown(row):
    print(row, flush=True)
    return row


def recorded(name, busy=False):
    """Prints the numbers that a measurement returns, and keeps them for docs/report; `busy`: also those of a busy machine."""
    def decorate(measure):
        def measure_and_keep(*arguments):
            machine = begin_quietly(busy)
            values = measure(*arguments)
            kept = {"command": " ".join(["tests/bench/" + os.path.basename(sys.argv[0]), *sys.argv[1:]]), "commit": commit(), **machine,
                    **values}
            DATA.mkdir(parents=True, exist_ok=True)
            (DATA / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="ascii")
            print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items() if not isinstance(value, list)))
        return measure_and_keep
    return decorate


def run_commands(commands, usage):
    """The command that the first word names, with the numbers after it."""
    word, *numbers = sys.argv[1:] or [""]
    if word not in commands:
        sys.exit(usage)
    commands[word](*map(int, numbers))
