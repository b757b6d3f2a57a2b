"""Those that peers.py compares: how each runs a command under a lock, and the server that it needs for this."""

import contextlib
import importlib.metadata
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import urllib.request
from dataclasses import dataclass
from typing import Callable

import common
from common import RLOCK, resident_kb, until
from harness import DIES_WITH_US, etcd, free_ports
from relay import Relay

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
ETCD = os.environ.get("ETCD") or shutil.which("etcd")
NODE_MODULES = os.environ.get("NODE_MODULES", str(common.TOP / "build" / "peers" / "node_modules"))

# The recipe of the manual of SET: a random value, and a release that compares it.
REDIS_CLI = """me=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
until [ "$(redis-cli -s "$1" set "$2" "$me" nx ex "$3" 2>/dev/null)" = OK ]; do sleep 0.1; done
socket=$1 name=$2; shift 3; "$@"
redis-cli -s "$socket" eval "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end" 1 \\
  "$name" "$me" >/dev/null
"""
REDIS_PY = """import subprocess, sys, redis
with redis.Redis(unix_socket_path=sys.argv[1]).lock(sys.argv[2], timeout=int(sys.argv[3])):
    subprocess.run(sys.argv[4:])
"""


class Redis(common.Server):
    """With everything that it acknowledged after a restart, if it is `durable`."""

    def __init__(self, durable):
        super().__init__(*(("--appendonly", "yes", "--appendfsync", "always") if durable else ()))
        self.address = self.socket

    def commands(self, sent):
        return self.calls(*sent)

    def relay(self):
        here = os.path.join(self.folder, f"relay-{secrets.token_hex(4)}")
        return Relay(here, self.socket), here


class HttpServer(common.Program):
    """A private one on free ports of the loopback interface, ended by its pid; it keeps its data when it restarts."""

    def __init__(self, count, words, ready):
        self.folder = tempfile.mkdtemp()
        self.ports, self.words, self.ready = free_ports(count), words, ready
        self.address = f"http://127.0.0.1:{self.ports[0]}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(DIES_WITH_US + self.words(self.folder, self.ports), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        until(lambda: self.process.poll() is not None or self.ready(self.address), pause=0.1)
        if self.process.returncode is not None:
            raise RuntimeError(f"{self.process.args[3]} ended with {self.process.returncode}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def memory(self):
        return resident_kb(self.process.pid) * 1024

    def commands(self, sent):
        """Messages from clients, by the server's own count; None if it has no such count."""
        if not sent:
            return None
        return sum(float(line.split()[-1]) for line in get(self.address + "/metrics").splitlines() if line.startswith(sent))

    def relay(self):
        port = free_ports(1)[0]
        return Relay(("127.0.0.1", port), ("127.0.0.1", self.ports[0])), f"http://127.0.0.1:{port}"


class NoServer(common.Program):
    """flock needs only a folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.address = os.path.join(self.folder, "lock-")


@dataclass
class Peer:
    name: str
    words: Callable  # (address, name of the lock, seconds of the lease, command) -> words
    server: Callable  # (durable) -> server
    version: Callable[[], str]
    missing: str = ""  # why it is not measured
    sent: tuple = ()  # the commands that clients send
    renews: bool = True
    lease = 10  # seconds

    def long_lease(self):
        """For measurements without faults: nobody loses it on the way, also those that do not renew, and on a busy machine."""
        return 60 if self.renews else 600


def get(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


def answers(path):
    def ready(address):
        with contextlib.suppress(OSError):
            return "error" not in get(address + path) and get(address + path).strip() not in ('""', "")
        return False
    return ready


def first_line(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def node_version():
    found = {name: get_json_version(os.path.join(NODE_MODULES, name, "package.json")) for name in ("redlock", "ioredis")}
    return ", ".join([*(f"{name} {version}" for name, version in found.items()), "node " + first_line("node", "--version")])


def get_json_version(path):
    with open(path, encoding="utf-8") as file:
        return next(line.split('"')[3] for line in file if line.strip().startswith('"version"'))


def needs(*programs):
    lacking = [program for program in programs if not shutil.which(program)]
    return f"not measured: no {' and no '.join(lacking)}" if lacking else ""


def with_redis():
    scripts = ("evalsha", "eval", "subscribe")
    python = importlib.metadata.version("redis")
    lacks_node = needs("node") or ("" if os.path.isdir(os.path.join(NODE_MODULES, "redlock")) else
                                   "not measured: no redlock in NODE_MODULES")
    return [
        Peer("rlock", lambda address, name, lease, job: [
            RLOCK, "-u", f"unix://{address}", "run", "-q", "--ttl", f"{lease}s", name, "--", *job],
            Redis, lambda: first_line(RLOCK, "--version"), sent=("evalsha", "eval", "blpop")),
        Peer("redis-cli SET NX", lambda address, name, lease, job: [
            "sh", "-c", REDIS_CLI, "sh", address, f"cli-{name}", str(lease), *job],
            Redis, lambda: first_line("redis-cli", "--version"), needs("redis-cli"), ("set", "eval"), renews=False),
        Peer("redis-py Lock", lambda address, name, lease, job: [
            PYTHON, "-c", REDIS_PY, address, f"py-{name}", str(lease), *job],
            Redis, lambda: f"redis {python}", sent=("set", "evalsha", "eval"), renews=False),
        Peer("node-redlock using", lambda address, name, lease, job: [
            "env", f"NODE_PATH={NODE_MODULES}", "node", str(HERE / "node_redlock.js"), address, name, str(lease), *job],
            Redis, node_version, lacks_node, scripts),
        Peer("fair lock of hash, list, zset", lambda address, name, lease, job: [
            PYTHON, str(HERE / "fair_lock.py"), address, name, str(lease), *job],
            Redis, lambda: f"tests/scale/fair_lock.py, redis {python}", sent=scripts),
    ]


def with_others():
    return [
        Peer("flock", lambda address, name, lease, job: ["flock", address + name, *job],
             lambda durable: NoServer(), lambda: first_line("flock", "--version"), needs("flock")),
        Peer("etcdctl lock", lambda address, name, lease, job: [
            "env", "ETCDCTL_API=3", "etcdctl", "--endpoints", address, "lock", "--ttl", str(lease), name, "--", *job],
            lambda durable: HttpServer(2, lambda folder, ports: etcd(ETCD, folder, ports)[0], answers("/health")), lambda: first_line(ETCD, "--version"),
            needs(ETCD or "etcd", "etcdctl"), ("grpc_server_msg_received_total",)),
    ]


def everybody():
    return with_redis()[:1] + with_others()[:1] + with_redis()[1:] + with_others()[1:]
