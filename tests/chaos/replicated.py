"""Servers with replicas: fail-over does the same to a lock in a Sentinel group and in a Cluster."""
import topology
from hosts import until
from redis_node import KEEPS, Node

WORDS = (*KEEPS, "--repl-diskless-sync-delay", "0")
LONGER = 3  # x what was drawn: an end is noticed after a second, and a new master takes another


class Replicated(topology.Topology):
    """Each kind also has

    masters()        the nodes that serve locks now
    planned(master)  asks for a fail-over while all are well
    sound()          whether nothing is left of the last fault
    """

    def __init__(self, hosts, folder):
        super().__init__(hosts, folder)
        self.nodes = []

    def add(self, name, *words):
        node = Node(self.hosts, f"{self.folder}/{name}", self.hosts.port(6379 + len(self.nodes)), [*WORDS, *words])
        self.nodes.append(node)
        node.start()

    def stop(self):
        for node in self.nodes:
            node.kill()

    def operator_url(self):
        return self.url(None)

    def at(self, port):
        return next(node for node in self.nodes if node.port == int(port))

    def room(self, _name, pending):
        return not pending and self.sound()

    def lasts(self, name, seconds):
        return seconds if name == "slot_moved" else seconds * LONGER

    def leftovers(self):
        until(self.sound)
        return [text for master in self.masters() for text in master.leftovers()]

    # ---- faults ----

    def faults(self):
        return {"master_killed": self.killed, "master_stopped": self.stopped, "planned_failover": self.failed_over,
                "writes_lost": self.writes_lost, "clients_killed": self.clients_killed}

    def some_master(self, chance):
        return chance.choice(self.masters())

    def killed(self, _seconds, chance):
        master = self.some_master(chance)
        master.kill()
        return master.start

    def stopped(self, _seconds, chance):
        """It believes to be the master still when it goes on."""
        master = self.some_master(chance)
        master.pause()
        return master.go_on

    def failed_over(self, _seconds, chance):
        self.planned(self.some_master(chance))

    def clients_killed(self, _seconds, chance):
        self.some_master(chance).call("CLIENT", "KILL", "TYPE", "normal")

    def writes_lost(self, _seconds, chance):
        """The replicas miss what is written last, and one of them is to be the master."""
        master = self.some_master(chance)
        master.call("ACL", "SETUSER", "default", "-psync", "-sync")
        master.call("CLIENT", "KILL", "TYPE", "replica")
        before = offset(master)
        until(lambda: offset(master) > before + 2000)  # a few scripts
        master.kill()

        def end():
            master.start()
            master.call("ACL", "SETUSER", "default", "+@all")  # it may have been written to the file
        return end


def facts(node, section):
    """A section of INFO; empty where the node is silent."""
    lines = (node.answer("INFO", section) or "").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def offset(node):
    return int(facts(node, "replication")["master_repl_offset"])


def replicas(node):
    """How many have all that it had."""
    return sum("state=online" in text for name, text in facts(node, "replication").items() if name.startswith("slave"))
