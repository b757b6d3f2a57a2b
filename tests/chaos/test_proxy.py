#!/usr/bin/env python3
"""The proxy itself: who vanishes behind it does so at the server, too, as without a proxy."""
import os
import socket
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from harness import PATIENCE, free_ports  # noqa: E402
from proxy import Proxy  # noqa: E402

TCP_REPAIR = 19  # linux/tcp.h: a socket that is closed in this state says nothing to its peer


class Proxied(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.server.settimeout(PATIENCE)
        self.port, = free_ports(1)
        self.proxy = Proxy(self.server.getsockname(), "127.0.0.1", [self.port])
        self.addCleanup(self.proxy.end)
        self.client = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(self.client.close)
        self.behind, _ = self.server.accept()
        self.addCleanup(self.behind.close)
        self.behind.settimeout(PATIENCE)

    def test_bytes_pass_both_ways(self):
        self.client.sendall(b"there")
        self.assertEqual(self.behind.recv(5), b"there")
        self.behind.sendall(b"back")
        self.assertEqual(self.client.recv(4), b"back")

    def test_a_proxy_that_holds_passes_nothing(self):
        self.proxy.order(self.port, "hold")
        for one, other in (self.client, self.behind), (self.behind, self.client):
            one.sendall(b"late")
            other.settimeout(0.2)
            self.assertRaises(TimeoutError, other.recv, 4)
            other.settimeout(PATIENCE)
        self.proxy.order(self.port, "pass")
        for other in self.client, self.behind:
            self.assertEqual(other.recv(4), b"late")

    def test_a_distant_server_answers_later(self):
        port, = free_ports(1)
        near = Proxy(self.server.getsockname(), "127.0.0.1", [port])
        self.addCleanup(near.end)
        client = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(client.close)
        behind, _ = self.server.accept()
        self.addCleanup(behind.close)
        behind.settimeout(PATIENCE)
        client.settimeout(PATIENCE)
        self.proxy.order(self.port, "far", 1)
        for one, other, near_one, near_other in (self.client, self.behind, client, behind), (self.behind, self.client, behind, client):
            one.sendall(b"far")
            near_one.sendall(b"near")
            self.assertEqual(near_other.recv(4), b"near")
            other.setblocking(False)
            self.assertRaises(BlockingIOError, other.recv, 3)
            other.settimeout(PATIENCE)
            self.assertEqual(other.recv(3), b"far")

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
