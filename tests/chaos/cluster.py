"""Three masters with a replica each, whose slots move."""
from hosts import sh, until
from replicated import Replicated, facts, replicas

MASTERS = 3
AT_ONCE = 100  # keys of a slot: more than a lock has but for its wakes


class Cluster(Replicated):
    def start(self):
        for number in range(2 * MASTERS):
            self.add(f"node-{number}", "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port",
                     str(self.hosts.port(16379 + number)))
        addresses = [f"{self.hosts.address}:{node.port}" for node in self.nodes]
        sh(*self.hosts.inside(), "redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", "1",
           "--cluster-yes")
        until(self.sound)

    def url(self, _host):
        return "redis+cluster://" + ",".join(f"{self.hosts.address}:{node.port}" for node in self.nodes[:MASTERS])

    def masters(self):
        return [node for node in self.nodes if facts(node, "replication").get("role") == "master"]

    def sound(self):
        settled = all("cluster_state:ok" in (node.answer("CLUSTER", "INFO") or "") for node in self.nodes)
        masters = self.masters()
        return settled and len(masters) == MASTERS and all(replicas(master) == 1 for master in masters)

    def some_master(self, chance):
        """Rather one that has something to lose."""
        busy = [node for node in self.masters() if node.call("DBSIZE") > 0]
        return chance.choice(busy or self.masters())

    def planned(self, master):
        replica = facts(master, "replication")["slave0"]
        port = dict(word.split("=") for word in replica.split(","))["port"]
        self.at(port).answer("CLUSTER", "FAILOVER")

    # ---- slots ----

    def faults(self):
        return super().faults() | {"slot_moved": self.slot_moved}

    def slot_moved(self, _seconds, chance):
        """Half of a lock's keys at first."""
        source = self.some_master(chance)
        keys = sorted(source.call("KEYS", "rlock:*"))
        if not keys:
            return None
        slot = str(source.call("CLUSTER", "KEYSLOT", chance.choice(keys)))
        target = chance.choice([node for node in self.masters() if node is not source])
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.call("CLUSTER", "MYID"))
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.call("CLUSTER", "MYID"))
        move(slot, source, target, chance.randrange(10))
        return lambda: self.end_move(slot, source, target)

    def end_move(self, slot, source, target):
        while move(slot, source, target, AT_ONCE):
            pass
        for node in (target, source, *self.masters()):
            node.call("CLUSTER", "SETSLOT", slot, "NODE", target.call("CLUSTER", "MYID"))


def move(slot, source, target, most):
    """How many keys there were to be moved."""
    keys = source.call("CLUSTER", "GETKEYSINSLOT", slot, str(most))
    if keys:
        source.call("MIGRATE", source.hosts.address, str(target.port), "", "0", "5000", "KEYS", *keys)
    return len(keys)
