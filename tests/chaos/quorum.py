"""Several servers as one, of which a minority is ill at a time, or a majority is gone."""
import os
import time

import topology
from one_server import PROXY_MODES, OneServer

ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")
# One that starts empty in the place of another may not look as if it forgot nothing.
FORGETFUL = ("--appendonly", "yes", "--appendfsync", "everysec")
NO_VOTE = 61  # s: the longest quorum lease, and the second that INFO rounds away
EMPTY_AGAIN = 60  # s between: else a server that does not vote would be the only fault
MINOR = ["server_stopped", "server_killed", "clients_killed", "scripts_flushed", "paused", "long_script", "no_memory",
         "no_replicas", *(f"replies_{mode}" for mode in PROXY_MODES)]


class Quorum(topology.Topology):
    def __init__(self, count, hosts, folder):
        super().__init__(hosts, folder)
        self.count = count
        self.servers = [OneServer(hosts, os.path.join(folder, f"server-{number}"), number, ALWAYS) for number in range(count)]
        self.ill = set()
        self.empty_at = 0.0  # not before

    def start(self):
        for server in self.servers:
            server.start()

    def stop(self):
        for server in self.servers:
            server.stop()

    def url(self, host):
        return " ".join(server.url(host) for server in self.servers)

    def operator_url(self):
        return " ".join(server.operator_url() for server in self.servers)

    def ledgers(self):
        return [server.node.ledger() for server in self.servers]

    def leftovers(self):
        return [text for server in self.servers for text in server.leftovers()]

    # ---- faults ----

    def minority(self):
        return (self.count - 1) // 2

    def room(self, name, pending):
        if name.startswith("majority"):
            return not pending
        if name == "server_emptied" and time.monotonic() < self.empty_at:
            return False
        return len(pending) < self.minority() and not any(other.startswith("majority") for other in pending)

    def lasts(self, name, seconds):
        return NO_VOTE if name == "server_emptied" else seconds

    def excuses(self, name):
        return name.startswith("majority")

    def faults(self):
        minor = {name: self.at_one(name) for name in MINOR}
        return minor | {"server_emptied": self.emptied, "majority_stopped": self.at_most("server_stopped"),
                        "majority_killed": self.at_most("server_killed")}

    def well(self, chance, count):
        """Servers that are in order, and now are not."""
        chosen = chance.sample([server for server in self.servers if server.number not in self.ill], count)
        self.ill |= {server.number for server in chosen}
        return chosen

    def harm(self, servers, name, seconds, chance):
        undone = [server.faults()[name](seconds, chance) for server in servers]

        def end():
            for undo in filter(callable, undone):
                undo()
            self.ill -= {server.number for server in servers}
        return end

    def at_one(self, name):
        return lambda seconds, chance: self.harm(self.well(chance, 1), name, seconds, chance)

    def at_most(self, name):
        """A majority, and more of them from time to time."""
        def do(seconds, chance):
            count = chance.randint(self.minority() + 1, self.count)
            return self.harm(self.well(chance, count), name, seconds, chance)
        return do

    def emptied(self, _seconds, chance):
        """Back at once and without data: it may not vote until every lease that it forgot is over."""
        server, = self.well(chance, 1)
        server.emptied(0, chance)
        server.node.words = list(FORGETFUL)
        server.node.start()
        begin = time.monotonic()

        def end():
            if time.monotonic() < begin + NO_VOTE - 1:
                return  # the run is over: it votes no more
            server.call("CONFIG", "SET", "appendfsync", "always")
            server.node.words = list(ALWAYS)
            self.ill.discard(server.number)
            self.empty_at = time.monotonic() + EMPTY_AGAIN
        return end
