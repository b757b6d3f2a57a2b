"""What bench and scale share: a server for measurements, and the scripts as a client calls them."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time

import redis

TOP = pathlib.Path(__file__).resolve().parents[2]
KEYS = ("holders", "limits", "queue", "alive", "who", "meta", "released", "history", "never", "once")


def script_text(name):
    """As the newest build embeds it."""
    built = max(TOP.glob("build/*/src/lua/scripts.cpp"), key=os.path.getmtime).read_text(encoding="ascii")
    literals = re.search(rf"const Script {name}{{\"\w+\",\n(.*?)}};", built, re.DOTALL)[1]
    return bytes.fromhex("".join(re.findall(r"\\x(..)", literals))).decode()


def free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


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
    """A redis-server on a unix socket, and on `port` of the loopback interface unless that is 0; ended by its pid."""

    def __init__(self, *options, port=0):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        self.port = port
        self.words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", self.path, "--dir",
                      self.folder.name, "--save", "", "--maxclients", "15000", "--logfile", os.path.join(self.folder.name, "log"), *options]
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

    def acquire(self, to, name, owner, limit=1):
        return self.call(to, "acquire", name, owner, 0, limit, 3_600_000, 0, 1, "wait", "", "scale")

    def release(self, to, name, owner):
        return self.call(to, "release", name, owner, "0", "released", "exit:0")
