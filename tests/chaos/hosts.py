"""Worker hosts: a network and pid namespace each, on one bridge, so that one monotonic clock serves all;
where the machine does not grant that, plain processes on the loopback interface, and the reason printed.
"""
import json
import os
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = "02:00:00:00:de:ad"  # the link address of no host: what is sent there is lost silently
DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def sh(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def refusal(*words):
    """Why a command does not work here; empty when it does."""
    try:
        tried = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return "" if tried.returncode == 0 else (tried.stderr.strip() or f"{words[0]} failed")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(url, config="/dev/null"):
    """For an rlock that uses these servers, whatever the tests themselves run under."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RLOCK")}
    return ours | {"RLOCK_URL": url, "RLOCK_CONFIG": config}


class Host:
    """One host: the agent that runs rlock there, spoken to in lines of JSON."""

    def __init__(self, number, prefix):
        self.number = number
        words = [sys.executable, "-B", os.path.join(HERE, "workers.py")]
        self.process = subprocess.Popen(prefix + words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, **words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def receive(self):
        """The next line; an empty dictionary when the agent is gone."""
        return json.loads(self.process.stdout.readline() or "{}")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Here:
    """Where servers run that need no hosts."""

    address = "127.0.0.1"

    def inside(self):
        """What is put before a server's command line."""
        return DIES_WITH_US

    def port(self, _):
        return free_port()


class Loopback(Here):
    """Without namespaces: no faults between hosts and server but those of the proxy."""

    def __init__(self, count, why):
        print(f"hosts share this machine's network: {why}; no link faults")
        self.hosts = [Host(number, []) for number in range(count)]

    def crowded(self, _):
        """They would slow down everything on this machine."""
        return False

    def faults(self):
        return {}

    def close(self):
        for host in self.hosts:
            host.end()


class Namespaces:
    """A bridge in a namespace of its own, where the servers live; hosts hang on it by veth pairs."""

    address = "10.77.0.1"

    def __init__(self, count):
        self.net = subprocess.Popen(DIES_WITH_US + ["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"],
                                    stdout=subprocess.PIPE)
        self.net.stdout.readline()
        self._in_net("ip", "link", "set", "lo", "up")
        self._in_net("ip", "link", "add", "br0", "type", "bridge")
        self._in_net("ip", "address", "add", self.address + "/24", "dev", "br0")
        self._in_net("ip", "link", "set", "br0", "up")
        self.hosts = []
        for number in range(count):
            self._add(number)

    def _add(self, number):
        prefix = DIES_WITH_US + ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        host = Host(number, prefix)
        host.receive()  # it is inside by now
        self.hosts.append(host)
        self._in_net("ip", "link", "add", f"h{number}", "type", "veth", "peer", "name", "eth0", "netns",
                     str(host.process.pid))
        self._in_net("ip", "link", "set", f"h{number}", "master", "br0", "up")
        self._in_host(number, "ip", "link", "set", "lo", "up")
        self._in_host(number, "ip", "address", "add", self._of(number) + "/24", "dev", "eth0")
        self._in_host(number, "ip", "link", "set", "eth0", "up")

    def _of(self, number):
        return f"10.77.0.{number + 10}"

    def inside(self):
        return DIES_WITH_US + ["nsenter", "--net", "--target", str(self.net.pid)]

    def crowded(self, host):
        return host.number % 2 == 0

    def _in_net(self, *words):
        sh("nsenter", "--net", "--target", str(self.net.pid), *words)

    def _in_host(self, number, *words):
        sh("nsenter", "--net", "--target", str(self.hosts[number].process.pid), *words)

    def port(self, wanted):
        return wanted

    def faults(self):
        found = {"link_down": self.link_down, "requests_lost": self.requests_lost, "replies_lost": self.replies_lost}
        return found | ({"lossy": self.lossy} if shutil.which("nft") else {})

    def link_down(self, number):
        self._in_net("ip", "link", "set", f"h{number}", "down")
        return lambda: self._in_net("ip", "link", "set", f"h{number}", "up")

    def requests_lost(self, number):
        self._in_host(number, "ip", "neigh", "replace", self.address, "lladdr", NOBODY, "nud", "permanent",
                      "dev", "eth0")
        return lambda: self._in_host(number, "ip", "neigh", "del", self.address, "dev", "eth0")

    def replies_lost(self, number):
        where = self._of(number)
        self._in_net("ip", "neigh", "replace", where, "lladdr", NOBODY, "nud", "permanent", "dev", "br0")
        return lambda: self._in_net("ip", "neigh", "del", where, "dev", "br0")

    def lossy(self, number):
        """Three packets in ten are lost, each way."""
        chains = [f"chain {way} {{ type filter hook {way} priority 0; numgen random mod 100 < 30 drop; }}"
                  for way in ("input", "output")]
        self._in_host(number, "nft", "\n".join(["table ip chaos {", *chains, "}"]))
        return lambda: self._in_host(number, "nft", "delete table ip chaos")

    def close(self):
        for host in self.hosts:
            host.end()
        self.net.kill()
        self.net.wait()
        self.net.stdout.close()


def make(count):
    why = refusal("unshare", "--net", "--pid", "--fork", "--mount-proc", "ip", "link", "add", "br0", "type", "bridge")
    if why:
        hosts = Loopback(count, why)
        for host in hosts.hosts:
            host.receive()
        return hosts
    return Namespaces(count)
