#!/usr/bin/env python3
"""The proxy itself: who vanishes behind it does so at the server, too, as without a proxy."""
import os
import socket
import subprocess
import sys
import unittest

from hosts import HERE, free_ports

PATIENCE = 30  # s
TCP_REPAIR = 19  # linux/tcp.h: a socket that is closed in this state says nothing to its peer


class Proxy(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.server.settimeout(PATIENCE)
        port = free_ports(1)[0]
        words = [sys.executable, "-B", os.path.join(HERE, "proxy.py"), "127.0.0.1", str(self.server.getsockname()[1]),
                 "127.0.0.1", str(port)]
        self.proxy = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.proxy.wait)
        self.addCleanup(self.proxy.stdin.close)
        self.addCleanup(self.proxy.stdout.close)
        self.proxy.stdout.readline()
        self.client = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(self.client.close)
        self.behind, _ = self.server.accept()
        self.addCleanup(self.behind.close)
        self.behind.settimeout(PATIENCE)

    def test_bytes_pass_both_ways(self):
        self.client.sendall(b"there")
        self.assertEqual(self.behind.recv(5), b"there")
        self.behind.sendall(b"back")
        self.assertEqual(self.client.recv(4), b"back")

    def test_a_client_that_closes_leaves_the_server(self):
        self.client.close()
        self.assertEqual(self.behind.recv(1), b"")

    def test_a_client_that_vanishes_leaves_the_server(self):
        """As one that was killed with a reply unread on a link that lost the only packet which said so."""
        try:
            self.client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError as error:
            self.skipTest(f"no socket can vanish here: {error}")
        self.client.close()
        self.assertEqual(self.behind.recv(1), b"")


if __name__ == "__main__":
    unittest.main()
