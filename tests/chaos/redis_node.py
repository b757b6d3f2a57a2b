"""A redis-server of a run, with what the checker reads of it."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
import redis_talk  # noqa: E402, F401: others import it from here
from redis_server import RedisServer  # noqa: E402

# What was written outlives the server's process, and no run here outlives the machine.
KEEPS = ("--appendonly", "yes", "--appendfsync", "no")
# s: who was killed with a reply unread says so with one packet, which a bad link loses.
KEEPALIVE = "5"


class Node(RedisServer):
    def __init__(self, hosts, folder, port, words=KEEPS):
        super().__init__(*words, folder=folder, port=port, before=hosts.inside())
        self.hosts = hosts
        # As a deployment has it: a replica that became the master is the master after a restart as well.
        self.conf = os.path.join(folder, "conf")
        open(self.conf, "a", encoding="ascii").close()
        self.life = 0  # each begins without data

    @property
    def data(self):
        return os.path.join(self.folder, f"data-{self.life}")

    def command(self):
        return ["redis-server", self.conf, "--port", str(self.port), "--bind", self.hosts.address, "--protected-mode",
                "no", "--unixsocket", self.socket, "--dir", self.data, "--save", "", "--auto-aof-rewrite-percentage",
                "0", "--busy-reply-threshold", "200", "--tcp-keepalive", KEEPALIVE, *self.words]

    def start(self):
        os.makedirs(self.data, exist_ok=True)
        super().start()

    def ledger(self):
        """The files in which it wrote down all that it did, oldest first."""
        found = []
        for life in range(self.life + 1):
            folder = os.path.join(self.folder, f"data-{life}", "appendonlydir")
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            found += [os.path.join(folder, name) for name in names if name.endswith(".incr.aof")]
        return found

    def leftovers(self):
        keys = self.call("KEYS", "*")
        wrong = [f"{key} lives for ever" for key in keys if self.call("PTTL", key) == -1]
        now = int(self.call("TIME")[0]) * 1000
        wrong += [f"{key} still has waiters" for key in keys if key.endswith(":alive") and self.call("ZCOUNT", key, now, "+inf") > 0]
        return wrong + [f"a connection is left: {line}" for line in self.clients()]

    def clients(self):
        """Those that are neither of the test itself nor servers."""
        ours = (self.socket, "name=sentinel-", "flags=S", "flags=M")
        return [line for line in self.call("CLIENT", "LIST").splitlines() if not any(word in line for word in ours)]
