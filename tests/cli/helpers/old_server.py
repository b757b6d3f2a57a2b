#!/usr/bin/env python3
"""old_server.py PATH: on the unix socket PATH, what a Redis 5 says to the doctor: an old version, errors to the rest."""
import os
import socket
import sys

INFO = b"redis_version:5.0.14\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:0\r\n"


def answer(words):
    if words[0].upper() == b"PING":
        return b"+PONG\r\n"
    if words[0].upper() == b"INFO":
        return b"$%d\r\n%s\r\n" % (len(INFO), INFO)
    return b"-ERR unknown command\r\n"


def serve(peer):
    stream = peer.makefile("rb")
    while (head := stream.readline()).startswith(b"*"):
        words = []
        for _ in range(int(head[1:])):
            size = int(stream.readline()[1:])
            words.append(stream.read(size + 2)[:-2])
        peer.sendall(answer(words))


listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    connection, _ = listener.accept()
    with connection:
        serve(connection)
