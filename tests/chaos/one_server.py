"""One redis-server that forgets nothing when it is killed, with a proxy before it for every other host."""
import json
import os
import signal
import struct
import subprocess
import sys
import time

import redis_talk
import topology
from hosts import HERE

PROXY_MODES = {"delay": 1.6, "stall": 0, "trickle": 0.4, "swallow": 0}


class OneServer(topology.Topology):
    server = proxy = None

    def start(self):
        self.port = self.hosts.port(6379)
        self.socket = os.path.join(self.folder, "redis.socket")
        self.clock = os.path.join(self.folder, "clock")
        self.lives = 0
        self._shift(0)
        self._serve()
        behind = [host.number for host in self.hosts.hosts if host.number % 2 == 1]
        self.proxied = {number: self.hosts.port(7000 + number) for number in behind}
        words = [sys.executable, "-B", os.path.join(HERE, "proxy.py"), self.hosts.address, str(self.port),
                 self.hosts.address, *map(str, self.proxied.values())]
        self.proxy = subprocess.Popen(self.hosts.inside() + words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)
        self.proxy.stdout.readline()

    def _serve(self):
        data = os.path.join(self.folder, f"data-{self.lives}")
        os.makedirs(data, exist_ok=True)
        # appendfsync no: what was written outlives the server's process, and no run here outlives the machine.
        words = ["redis-server", "--port", str(self.port), "--bind", self.hosts.address, "--protected-mode", "no",
                 "--unixsocket", self.socket, "--dir", data, "--save", "", "--appendonly", "yes",
                 "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", "--busy-reply-threshold", "200"]
        env = dict(os.environ)
        if self.clock_library:
            env |= {"LD_PRELOAD": self.clock_library, "CHAOS_CLOCK": self.clock}
        with open(os.path.join(self.folder, "redis.txt"), "ab") as log:
            self.server = subprocess.Popen(self.hosts.inside() + words, stdout=log, stderr=log, env=env)
        give_up = time.monotonic() + 20
        while self._ping() != "PONG":
            if self.server.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("redis-server did not come up: see redis.txt")
            time.sleep(0.01)

    def _ping(self):
        try:
            return self.call("PING")
        except (OSError, redis_talk.Refused):
            return None

    def call(self, *words):
        return redis_talk.call(self.socket, *words)

    def stop(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        if self.proxy is not None:
            self.proxy.stdin.close()
            self.proxy.wait()
            self.proxy.stdout.close()

    def url(self, host):
        return f"redis://{self.hosts.address}:{self.proxied.get(host, self.port)}"

    def operator_url(self):
        return f"unix://{self.socket}"

    def ledgers(self):
        found = []
        for life in range(self.lives + 1):
            folder = os.path.join(self.folder, f"data-{life}", "appendonlydir")
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            found += [os.path.join(folder, name) for name in names if name.endswith(".incr.aof")]
        return [found]

    # ---- faults ----

    def faults(self):
        return {"server_stopped": self.stopped, "server_killed": self.killed, "server_emptied": self.emptied,
                "clients_killed": self.clients_killed, "scripts_flushed": self.once("SCRIPT", "FLUSH"),
                "flushed": self.once("FLUSHALL"), "paused": self.paused, "long_script": self.long_script,
                "no_memory": self.setting("maxmemory", "1", "0"),
                "no_replicas": self.setting("min-replicas-to-write", "1", "0"),
                "evicted": self.evicted, "overwritten": self.overwritten, "clock_shifted": self.clock_shifted,
                **{f"replies_{mode}": self.harmed(mode) for mode in PROXY_MODES}}

    def once(self, *words):
        """What needs no undoing."""
        def do(_seconds, _chance):
            self.call(*words)
        return do

    def stopped(self, _seconds, _chance):
        self.server.send_signal(signal.SIGSTOP)
        return lambda: self.server.send_signal(signal.SIGCONT)

    def killed(self, _seconds, _chance):
        self.server.kill()
        self.server.wait()
        return self._serve

    def emptied(self, seconds, chance):
        self.lives += 1
        return self.killed(seconds, chance)

    def clients_killed(self, _seconds, _chance):
        self.call("CLIENT", "KILL", "TYPE", "normal")

    def paused(self, seconds, _chance):
        self.call("CLIENT", "PAUSE", str(int(seconds * 1000)), "ALL")

    def long_script(self, _seconds, _chance):
        """The server answers BUSY meanwhile; the script has not written and can be killed."""
        line = redis_talk.start(self.socket, "EVAL", "while true do end", "0")

        def end():
            self.call("SCRIPT", "KILL")
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

    def _shift(self, seconds):
        with open(self.clock, "w+b" if not os.path.exists(self.clock) else "r+b") as file:
            file.write(struct.pack("i", seconds))

    def clock_shifted(self, _seconds, chance):
        self._shift(chance.choice((-60, 60)))
        return lambda: self._shift(0)

    def harmed(self, mode):
        def harm(seconds, chance):
            port = chance.choice(list(self.proxied.values()))
            self._order(port, mode, PROXY_MODES[mode])
            return lambda: self._order(port, "pass", 0)
        return harm

    def _order(self, port, mode, seconds):
        self.proxy.stdin.write(json.dumps({"port": port, "mode": mode, "seconds": seconds}) + "\n")
        self.proxy.stdin.flush()

    def leftovers(self):
        keys = self.call("KEYS", "*")
        wrong = [f"{key} lives for ever" for key in keys if self.call("PTTL", key) == -1]
        wrong += [f"{key} still has members" for key in keys
                  if key.endswith((":queue", ":alive")) and self.call("ZCARD", key) > 0]
        clients = self.call("CLIENT", "LIST").splitlines()
        return wrong + [f"a connection is left: {line}" for line in clients if "redis.socket" not in line]
