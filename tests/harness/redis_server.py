"""A redis-server of the test's own, reached by its unix socket whatever the network does."""
import os
import shutil
import signal
import struct
import subprocess
import tempfile

import redis_talk
from harness import DIES_WITH_US, until


class RedisServer:
    """`before` is put before its command line. It keeps folder, socket and port when it is killed and started again. The test
    moves its clock if CLOCK_LIBRARY, tests/support/shifted_clock.cpp, is in the environment."""

    def __init__(self, *words, folder=None, port=0, before=DIES_WITH_US):
        self.words, self.port, self.before = list(words), port, before
        self.folder = folder or tempfile.mkdtemp(prefix="rlock-server.")
        os.makedirs(self.folder, exist_ok=True)
        self.socket = os.path.join(self.folder, "s")
        self.url = f"unix://{self.socket}"
        self.clock = os.path.join(self.folder, "clock")
        self.process = None

    def command(self):
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.socket,
                "--dir", self.folder, "--save", "", *self.words]

    def start(self):
        """Returns once it answers."""
        environment = os.environ
        if library := os.environ.get("CLOCK_LIBRARY"):
            environment = {**os.environ, "LD_PRELOAD": library, "CLOCK_SHIFT_FILE": self.clock}
            self.move_clock(0)
        with open(os.path.join(self.folder, "log"), "a+b") as log:
            self.process = subprocess.Popen([*self.before, *self.command()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment)
            # It reads all that it wrote down.
            until(lambda: self.answer("PING") == "PONG" or self.process.poll() is not None, "a redis-server", 120)
            if self.process.returncode is not None:
                log.seek(0)
                raise RuntimeError(f"redis-server did not come up: {log.read().decode()}")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end()

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end(self):
        """With all that it stored."""
        self.kill()
        shutil.rmtree(self.folder)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def move_clock(self, seconds):
        """Its wall clock, from where that is."""
        if not os.path.exists(self.clock):
            with open(self.clock, "wb") as file:
                file.write(struct.pack("i", 0))
        with open(self.clock, "r+b") as file:  # which the server has mapped
            shift, = struct.unpack("i", file.read())
            file.seek(0)
            file.write(struct.pack("i", shift + seconds))

    def call(self, *words):
        return redis_talk.call(self.socket, *words)

    def answer(self, *words):
        """None instead of an error."""
        try:
            return self.call(*words)
        except (OSError, redis_talk.Refused):
            return None
