"""A master, its replicas, and three sentinels that watch them."""
import functools
import os

from hosts import until
from redis_node import Node
from replicated import Replicated, facts, replicas

NAME = "the-master"


class Watcher(Node):
    def command(self):
        return ["redis-server", self.conf, "--sentinel"]

    def watch(self, port, down_after):
        lines = [f"port {self.port}", f"bind {self.hosts.address}", "protected-mode no", f"unixsocket {self.socket}",
                 f"dir {self.folder}", f"sentinel monitor {NAME} {self.hosts.address} {port} 2",
                 f"sentinel down-after-milliseconds {NAME} {down_after}", f"sentinel failover-timeout {NAME} 3000"]
        with open(self.conf, "w", encoding="ascii") as conf:
            conf.write("\n".join(lines) + "\n")
        self.start()

    def master_port(self):
        address = self.answer("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        return address and address[1]

    def knows_all(self, count):
        words = self.call("SENTINEL", "MASTER", NAME)
        known = dict(zip(words[::2], words[1::2]))
        return (known["num-slaves"], known["num-other-sentinels"]) == (str(count), "2")


class SentinelGroup(Replicated):
    replicas = 2
    never_promoted = 0  # of them

    def __init__(self, hosts, folder, down_after=1000):
        super().__init__(hosts, folder)
        self.down_after = down_after  # ms
        self.watchers = [Watcher(hosts, os.path.join(folder, f"sentinel-{number}"), hosts.port(26379 + number))
                         for number in range(3)]

    def start(self):
        for number in range(1 + self.replicas):
            spare = number > self.replicas - self.never_promoted
            self.add(f"node-{number}", *(("--replica-priority", "0") if spare else ()))
        for node in self.nodes[1:]:
            node.call("REPLICAOF", self.hosts.address, str(self.nodes[0].port))
            node.call("CONFIG", "REWRITE")
        until(lambda: replicas(self.nodes[0]) == self.replicas)
        for watcher in self.watchers:
            watcher.watch(self.nodes[0].port, self.down_after)
        for watcher in self.watchers:
            until(functools.partial(watcher.knows_all, self.replicas))

    def stop(self):
        for watcher in self.watchers:
            watcher.kill()
        super().stop()

    def url(self, _host):
        addresses = ",".join(f"{self.hosts.address}:{watcher.port}" for watcher in self.watchers)
        return f"redis+sentinel://{addresses}/{NAME}"

    def masters(self):
        return [self.at(self.watchers[0].master_port())]

    def sound(self):
        ports = {watcher.master_port() for watcher in self.watchers}
        if len(ports) != 1:
            return False
        master = self.at(ports.pop())
        return facts(master, "replication").get("role") == "master" and replicas(master) == self.replicas

    def planned(self, _master):
        self.watchers[0].answer("SENTINEL", "FAILOVER", NAME)  # refused while one is still under way


class LargeSentinelGroup(SentinelGroup):
    """One of whose replicas never becomes the master, but confirms what the others have to have."""
    replicas = 3
    never_promoted = 1
