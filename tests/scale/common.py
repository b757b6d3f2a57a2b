"""A server for measurements, the scripts as a client calls them, and where the numbers go."""

import datetime
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import time

import redis

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "bench"))
from script_texts import KEYS, script_text  # noqa: E402

DATA = TOP / "docs" / "report" / "data"
RLOCK = os.environ.get("RLOCK", str(TOP / "build" / "release" / "src" / "rlock"))


class Program:
    """A `process` of our own with a `folder`, both of which end with the block."""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()


class Server(Program):
    """A redis-server on a unix socket, ended by its pid."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        self.words = ["redis-server", "--port", "0", "--unixsocket", self.path, "--dir", self.folder.name, "--save", "",
                      "--maxclients", "15000", "--logfile", os.path.join(self.folder.name, "log"), *options]
        self.client = redis.Redis(unix_socket_path=self.path)
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words)
        while True:
            try:
                return self.client.ping()
            except redis.exceptions.RedisError:
                if self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    @property
    def url(self):
        return f"unix://{self.path}"

    def memory(self):
        return self.client.info("memory")["used_memory"]

    def cpu(self):
        """Seconds of the whole process."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            row = file.read().rsplit(")", 1)[1].split()
        return (int(row[11]) + int(row[12])) / os.sysconf("SC_CLK_TCK")

    def in_commands(self):
        """Microseconds inside commands, and how many scripts there were."""
        stats = self.client.info("commandstats")
        own = [row for name, row in stats.items() if name in ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_blpop")]
        return sum(row["usec"] for row in own), self.calls("evalsha", "eval")

    def calls(self, *commands):
        """How many of these were sent to it."""
        stats = self.client.info("commandstats")
        return sum(stats.get("cmdstat_" + command, {"calls": 0})["calls"] for command in commands)


class Scripts:
    """The scripts of the native format, sent as rlock sends them."""

    def __init__(self, client):
        self.sha = {name: client.script_load(script_text(name)) for name in ("acquire", "release")}

    def call(self, to, script, name, *arguments):
        keys = [f"rlock:{{{name}}}:{suffix}" for suffix in KEYS]
        return to.evalsha(self.sha[script], len(KEYS), *keys, *arguments)

    def acquire(self, to, name, owner):
        return self.call(to, "acquire", name, owner, 0, 1, 3_600_000, 0, 1, "wait", "", "scale")

    def release(self, to, name, owner):
        return self.call(to, "release", name, owner, "0", "released", "exit:0")


def fresh_owner():
    return secrets.token_hex(16)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def busy():
    """What else this machine had to do: the load of the last minute for each of its processors."""
    return round(os.getloadavg()[0] / os.cpu_count(), 1)


def record(name, values):
    """Prints the numbers, and keeps them for docs/report."""
    command = " ".join(["tests/scale/" + os.path.basename(sys.argv[0]), *sys.argv[1:]])
    kept = {"command": command, "date": datetime.date.today().isoformat(), "load": busy(), **values}
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="ascii")
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items() if not isinstance(value, list)))
