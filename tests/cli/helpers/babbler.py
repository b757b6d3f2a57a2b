#!/usr/bin/env python3
"""Listens on the unix socket PATH and answers whatever comes with a line that is not Redis's."""
import os
import socket
import sys

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    peer, _ = listener.accept()
    with peer:
        peer.recv(4096)
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
