"""Servers whose clock a test sets, an rlock, and what the servers hold: read, written down, and restored on any day."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness
import redis_server

NAME = "job"  # of the lock in every situation
SLEEPS = ("sleep", "1000")

# All keys at one moment: name, type, time to live, value.
DUMP = """
local read = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}}
local found, time = {}, redis.call('TIME')
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local words = read[kind]
  found[#found + 1] = {key, kind, redis.call('PTTL', key), redis.call(words[1], key, unpack(words, 2))}
end
return {time[1] * 1000 + math.floor(time[2] / 1000), found}
"""
WRITES = {"hash": "HSET", "zset": "ZADD", "list": "RPUSH", "string": "SET"}


def mutant(name):
    return pathlib.Path(os.environ["MUTANTS"]) / name


def pairs(flat):
    return list(zip(flat[::2], flat[1::2]))


def value_of(kind, value):
    """As a state has it: a hash by its fields, a sorted set by its scores."""
    return dict(sorted(pairs(value))) if kind == "hash" else dict(pairs(value)) if kind == "zset" else value


def words_of(kind, value):
    """The arguments of the command that writes it."""
    if kind == "hash":
        return [word for pair in value.items() for word in pair]
    if kind == "zset":
        return [word for member, score in value.items() for word in (score, member)]
    return value if kind == "list" else [value]


def lasting(value, each_server=()):
    """Of what rlock shows, what does not pass with the time, without the fields of which each server of a quorum has its own."""
    if isinstance(value, dict):
        return {name: lasting(item, each_server) for name, item in value.items()
                if name in ("ttl_ms", "urgent_ms") or not name.endswith("_ms") and name not in each_server}
    return [lasting(item, each_server) for item in value] if isinstance(value, list) else value


class Lab:
    """`program` is an rlock. The clock of the servers is that of this host, and stands still once freeze() has set it."""

    def __init__(self, program, servers=1):
        self.program, self.started, self.now = str(program), [], 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rlock-compat."))
        self.clock = self.folder / "clock"
        self.clock.write_bytes(struct.pack("q", 0))
        os.environ["CLOCK_FROZEN_FILE"] = str(self.clock)  # of the servers
        self.ttl = "1m" if servers > 1 else "1h"  # the longest over a quorum
        # Members of a quorum: what they acknowledge is on disk.
        options = ["--appendonly", "yes", "--appendfsync", "always"] if servers > 1 else []
        self.servers = [redis_server.RedisServer(*options) for _ in range(servers)]
        self.environment = harness.environment(" ".join(server.url for server in self.servers)) | {"TZ": "UTC"}

    def __enter__(self):
        for server in self.servers:
            server.start()
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
            process.wait()
        for server in self.servers:
            server.end()
        shutil.rmtree(self.folder)

    # ---- the clock ----

    def freeze(self, now):
        """The clocks of the servers and of each rlock stand still at this time in ms."""
        self.now = now
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("q", now * 1000))
        self.environment |= {"LD_PRELOAD": os.environ["CLOCK_LIBRARY"], "CLOCK_FROZEN_FILE": str(self.clock)}

    def passes(self, seconds):
        if self.now:
            self.freeze(self.now + seconds * 1000)
        else:
            for server in self.servers:
                server.move_clock(seconds)

    # ---- rlock ----

    def ended(self, code, *words):
        """The process, which ended with this exit code."""
        ended = subprocess.run([self.program, *words], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False)
        if ended.returncode != code:
            raise AssertionError(f"exit code {ended.returncode}, not {code}: rlock {' '.join(words)}\n{ended.stdout}{ended.stderr}")
        return ended

    def rlock(self, *words, code=0):
        """What it prints."""
        return self.ended(code, *words).stdout

    def refusal(self, *words):
        """The message with which it refuses what another version stored."""
        return self.ended(78, *words).stderr

    def json(self, *words, code=0):
        return json.loads(self.rlock(*words, "--json", code=code))

    def start(self, *words):
        """In a session of its own, which ends with the lab."""
        process = subprocess.Popen([*harness.DIES_WITH_US, self.program, *words], env=self.environment, cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def acquire(self, *options):
        """The lease."""
        return self.json("acquire", "-n", "-t", self.ttl, *options, NAME)

    def holds(self, *options, command=SLEEPS):
        """A run that holds the lock with a lease of an hour."""
        process = self.start("run", "-t", self.ttl, *options, NAME, "--", *command)
        harness.until(lambda: any(holder["pid"] == process.pid for holder in self.holders()), "a run holds the lock")
        return process

    def waits(self, *options):
        """A run in the queue; its command may not run. It stops once it has a place, so that it asks for nothing more."""
        process = self.start("run", "-t", self.ttl, "-w", "1h", *options, NAME, "--", *SLEEPS)
        harness.until(lambda: any(waiter["pid"] == process.pid for waiter in self.waiters()), "a run waits")
        process.send_signal(signal.SIGSTOP)
        return process

    def status(self):
        return self.json("status", NAME)["locks"][0]

    def holders(self):
        return self.status()["holders"]

    def waiters(self):
        return self.json("queue", NAME)["waiters"]

    def queue(self):
        """The owner ids."""
        return [waiter["owner"] for waiter in self.waiters()]

    def is_held_by(self, *owners):
        held = [holder["owner"] for holder in self.holders()]
        assert sorted(held) == sorted(owners), f"held by {held}, not by {owners}"

    def is_busy(self, *options, code=75):
        """Nobody else is granted the lock, in whatever mode that these servers take."""
        for mode in ([], ["--shared"], ["--slots", "5"])[:1 if len(self.servers) > 1 else 3]:
            self.does_not_run(*mode, *options, code=code)

    def does_not_run(self, *options, code=75):
        self.rlock("run", "-n", *options, NAME, "--", "touch", "ran", code=code)
        assert not (self.folder / "ran").exists(), "the command ran"

    def runs(self, *options):
        """The token of a run that is granted the lock at once."""
        return int(self.rlock("run", "-n", *options, NAME, "--", "sh", "-c", "echo $RLOCK_TOKEN"))

    def runs_after(self, token):
        """A run that is granted the lock at once, with a greater token."""
        issued = self.runs()
        assert issued > token, f"the token {issued} was issued after {token}"

    # ---- what the servers hold ----

    def dump(self):
        """(time in ms, the keys of each server)."""
        now, states = 0, []
        for server in self.servers:
            now, found = server.call("EVAL", DUMP, 0)
            states.append({key: {"type": kind, "expires": now + left if left >= 0 else None, "value": value_of(kind, value)}
                           for key, kind, left, value in sorted(found)})
        return now, states

    def shown(self):
        """What rlock shows of the lock, apart from what passes with the time."""
        shown = {"status": self.status(), "queue": self.waiters(), "history": self.json("history", NAME)["runs"]}
        return lasting(shown, ("since",) if len(self.servers) > 1 else ())

    def restore(self, state):
        self.freeze(state["now"])
        for server, keys in zip(self.servers, state["servers"]):
            for key, entry in keys.items():
                server.call(WRITES[entry["type"]], key, *words_of(entry["type"], entry["value"]))
                if entry["expires"] is not None:
                    server.call("PEXPIREAT", key, entry["expires"])
