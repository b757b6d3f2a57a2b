"""One redis-server that forgets nothing when it is killed, with a proxy before it for every other host."""
import topology
from hosts import until
from proxy import Proxy
from redis_node import KEEPS, Node, redis_talk

PROXY_MODES = {"delay": 1.6, "stall": 0, "trickle": 0.4, "swallow": 0}


class OneServer(topology.Topology):
    """`number` distinguishes it from others on the same network."""
    proxy = None

    def __init__(self, hosts, folder, number=0, words=KEEPS):
        super().__init__(hosts, folder)
        self.number = number
        self.node = Node(hosts, folder, hosts.port(6379 + number), words)
        self.call = self.node.call

    def start(self):
        self.node.start()
        behind = [host.number for host in self.hosts.hosts if host.number % 2 == 1]
        self.proxied = {number: self.hosts.port(7000 + 100 * self.number + number) for number in behind}
        self.proxy = Proxy((self.hosts.address, self.node.port), self.hosts.address, self.proxied.values(), self.hosts.inside())

    def stop(self):
        self.node.kill()
        if self.proxy is not None:
            self.proxy.end()

    def url(self, host):
        return f"redis://{self.hosts.address}:{self.proxied.get(host, self.node.port)}"

    def operator_url(self):
        return self.node.url

    def ledgers(self):
        return [self.node.ledger()]

    # ---- faults ----

    def faults(self):
        return {"server_stopped": self.stopped, "server_killed": self.killed, "server_emptied": self.emptied,
                "clients_killed": self.once("CLIENT", "KILL", "TYPE", "normal"), "scripts_flushed": self.once("SCRIPT", "FLUSH"),
                "flushed": self.once("FLUSHALL"), "paused": self.paused, "long_script": self.long_script,
                "no_memory": self.setting("maxmemory", "1", "0"),
                "no_replicas": self.setting("min-replicas-to-write", "1", "0"),
                "evicted": self.evicted, "overwritten": self.overwritten, "clock_shifted": self.clock_shifted,
                **{f"replies_{mode}": self.harmed(mode) for mode in PROXY_MODES}}

    def once(self, *words):
        """What needs no undoing."""
        return lambda _seconds, _chance: self.call(*words)

    def stopped(self, _seconds, _chance):
        self.node.pause()
        return self.node.go_on

    def killed(self, _seconds, _chance):
        self.node.kill()
        return self.node.start

    def emptied(self, seconds, chance):
        self.node.life += 1
        return self.killed(seconds, chance)

    def paused(self, seconds, _chance):
        self.call("CLIENT", "PAUSE", str(int(seconds * 1000)), "ALL")

    def long_script(self, _seconds, _chance):
        """The server answers BUSY meanwhile; the script has not written and can be killed."""
        line = redis_talk.start(self.node.socket, "EVAL", "while true do end", "0")

        def end():
            self.call("SCRIPT", "KILL")
            until(lambda: self.node.answer("PING") == "PONG")  # the next fault is an order to it
            line.close()
        return end

    def setting(self, name, bad, good):
        def set_bad(_seconds, _chance):
            self.call("CONFIG", "SET", name, bad)
            return lambda: self.call("CONFIG", "SET", name, good)
        return set_bad

    def evicted(self, _seconds, chance):
        """As an eviction does it: one key of a lock, or all."""
        keys = self.call("KEYS", "rlock:*")
        locks = sorted({key.split("}")[0] for key in keys})
        if not locks:
            return
        lock = chance.choice(locks)
        mine = [key for key in keys if key.startswith(lock)]
        self.call("UNLINK", *(mine if chance.random() < 0.5 else [chance.choice(mine)]))

    def overwritten(self, _seconds, chance):
        """By hand, with something that is no lock: rlock has to leave it alone."""
        keys = [key for key in self.call("KEYS", "rlock:*") if key.endswith(":holders")]
        if not keys:
            return None
        key, strange = chance.choice(sorted(keys)), "not a lock"
        self.call("SET", key, strange)

        def end():
            # A restart without data may have come between.
            if self.call("GET", key) not in (strange, None):
                raise RuntimeError(f"{key} was not left alone")
            self.call("DEL", key)
        return end

    def clock_shifted(self, _seconds, chance):
        seconds = chance.choice((-60, 60))
        self.node.move_clock(seconds)
        return lambda: self.node.move_clock(-seconds)

    def harmed(self, mode):
        def harm(seconds, chance):
            port = chance.choice(list(self.proxied.values()))
            self.proxy.order(port, mode, PROXY_MODES[mode])
            return lambda: self.proxy.order(port, "pass")
        return harm

    def leftovers(self):
        return self.node.leftovers()
