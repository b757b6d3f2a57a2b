"""Worker hosts: a network and pid namespace each, on one bridge, so that one monotonic clock serves all;
where the machine does not grant that, plain processes on the loopback interface, and the reason printed.
"""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../harness"))
from harness import DIES_WITH_US, environment, free_ports, refusal, until  # noqa: E402, F401: others import them from here

NOBODY = "02:00:00:00:de:ad"  # the link address of no host: what is sent there is lost silently


def sh(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def within(process):
    """Before a command line: in that one's network."""
    return ["nsenter", "--net", "--target", str(process.pid)]


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
        return free_ports(1)[0]


class Loopback(Here):
    """Without namespaces: no faults between hosts and server but those of the proxy."""

    def __init__(self, count, why):
        print(f"hosts share this machine's network: {why}; no link faults")
        self.hosts = [Host(number, []) for number in range(count)]
        for host in self.hosts:
            host.receive()

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
        for words in ("link set lo up", "link add br0 type bridge", f"address add {self.address}/24 dev br0", "link set br0 up"):
            self._in_net(words)
        self.hosts = []
        for number in range(count):
            self._add(number)

    def _add(self, number):
        prefix = DIES_WITH_US + ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        host = Host(number, prefix)
        host.receive()  # it is inside by now
        self.hosts.append(host)
        self._in_net(f"link add h{number} type veth peer name eth0 netns {host.process.pid}")
        self._in_net(f"link set h{number} master br0 up")
        for words in ("link set lo up", f"address add {self._of(number)}/24 dev eth0", "link set eth0 up"):
            self._in_host(number, words)

    def _of(self, number):
        return f"10.77.0.{number + 10}"

    def inside(self):
        return DIES_WITH_US + within(self.net)

    def crowded(self, host):
        return host.number % 2 == 0

    def _in_net(self, words):
        sh(*within(self.net), "ip", *words.split())

    def _in_host(self, number, words):
        sh(*within(self.hosts[number].process), "ip", *words.split())

    def port(self, wanted):
        return wanted

    def faults(self):
        found = {"link_down": self.link_down, "requests_lost": self.requests_lost, "replies_lost": self.replies_lost}
        return found | ({"lossy": self.lossy} if shutil.which("nft") else {})

    def link_down(self, number):
        self._in_net(f"link set h{number} down")
        return lambda: self._in_net(f"link set h{number} up")

    def requests_lost(self, number):
        self._in_host(number, f"neigh replace {self.address} lladdr {NOBODY} nud permanent dev eth0")
        return lambda: self._in_host(number, f"neigh del {self.address} dev eth0")

    def replies_lost(self, number):
        where = self._of(number)
        self._in_net(f"neigh replace {where} lladdr {NOBODY} nud permanent dev br0")
        return lambda: self._in_net(f"neigh del {where} dev br0")

    def lossy(self, number):
        """Three packets in ten are lost, each way."""
        chains = [f"chain {way} {{ type filter hook {way} priority 0; numgen random mod 100 < 30 drop; }}"
                  for way in ("input", "output")]
        inside = within(self.hosts[number].process)
        sh(*inside, "nft", "\n".join(["table ip chaos {", *chains, "}"]))
        return lambda: sh(*inside, "nft", "delete table ip chaos")

    def close(self):
        for host in self.hosts:
            host.end()
        self.net.kill()
        self.net.wait()
        self.net.stdout.close()


def make(count):
    why = refusal("unshare", "--net", "--pid", "--fork", "--mount-proc", "ip", "link", "add", "br0", "type", "bridge")
    return Loopback(count, why) if why else Namespaces(count)
