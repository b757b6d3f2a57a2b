"""A relay in front of a server, which can hold back all bytes for a while: a network that stalls."""

import contextlib
import socket
import threading


class Relay:
    """Listens at `here` for those who want the server at `there`; both are paths, or both are (host, port)."""

    def __init__(self, here, there):
        self.there, self.family = there, socket.AF_UNIX if isinstance(there, str) else socket.AF_INET
        self.passing = threading.Event()
        self.passing.set()
        self.listener = socket.socket(self.family)
        self.listener.bind(here)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(self.family)
                server.connect(self.there)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.passing.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def stall(self):
        self.passing.clear()

    def go_on(self):
        self.passing.set()

    def close(self):
        self.go_on()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
