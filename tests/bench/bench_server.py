"""A redis-server of the benchmark's own."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time

import redis


def free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@contextlib.contextmanager
def redis_server(*options):
    """A private server on a free loopback port; ended by its pid."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_ports(1)[0]
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                   "--dir", folder, "--logfile", os.path.join(folder, "log"), *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(port=port)
            for _ in range(500):
                try:
                    client.ping()
                    break
                except redis.exceptions.ConnectionError:
                    time.sleep(0.01)
            yield port, client, folder
        finally:
            process.terminate()
            process.wait()
