"""A redis-server of the test's own, reached by its unix socket whatever the network does."""
import os
import subprocess

import redis_talk
from harness import DIES_WITH_US, until


class RedisServer:
    """`before` is put before its command line. It keeps folder, socket and port when it is killed and started again."""

    def __init__(self, folder, *words, port=0, before=None, environment=None):
        self.folder, self.words, self.port = folder, list(words), port
        self.before = DIES_WITH_US if before is None else before
        self.environment = {**os.environ, **(environment or {})}
        self.socket = os.path.join(folder, "redis.socket")
        self.process = None

    def command(self):
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.socket,
                "--dir", self.folder, "--save", "", *self.words]

    def start(self):
        """Returns once it answers."""
        with open(os.path.join(self.folder, "redis.txt"), "a+b") as log:
            self.process = subprocess.Popen([*self.before, *self.command()], stdout=log, stderr=log, env=self.environment)
            # It reads all that it wrote down.
            until(lambda: self.answer("PING") == "PONG" or self.process.poll() is not None, "a redis-server", 120)
            if self.process.returncode is not None:
                log.seek(0)
                raise RuntimeError(f"redis-server did not come up: {log.read().decode()}")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def call(self, *words):
        return redis_talk.call(self.socket, *words)

    def answer(self, *words):
        """None instead of an error."""
        try:
            return self.call(*words)
        except (OSError, redis_talk.Refused):
            return None
