#!/usr/bin/env python3
"""A name server at 127.0.0.1 for which every name has the address 127.0.0.1, and no IPv6 address unless HOW is late_v6.

name_server.py HOW
HOW: silent (answers nothing), only_v4 (answers no query for IPv6), loses_first (answers not the first two
queries, which are for both kinds of addresses), late_v6 (the IPv6 address is ::1, and comes after 5 s). Prints a line when it is up, and one for each query that it does not answer.
"""

import socket
import sys
import threading

HOW = sys.argv[1]
TYPE_A = 1
V4 = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x7f\x00\x00\x01"  # the name of the query, A, IN, for 0 s
V6 = b"\xc0\x0c\x00\x1c\x00\x01\x00\x00\x00\x00\x00\x10" + bytes(15) + b"\x01"  # the same, AAAA

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("up", flush=True)
count = 0
while True:
    query, client = server.recvfrom(512)
    count += 1
    end = query.index(b"\0", 12) + 5  # of the question: the name, type and class
    asks_for_v4 = query[end - 3] == TYPE_A
    if HOW == "silent" or (HOW == "only_v4" and not asks_for_v4) or (HOW == "loses_first" and count <= 2):
        print("lost", flush=True)
        continue
    answer = V4 if asks_for_v4 else V6 if HOW == "late_v6" else b""
    header = query[:2] + b"\x81\x80\x00\x01" + (1 if answer else 0).to_bytes(2, "big") + b"\0\0\0\0"
    delay = 5 if answer == V6 else 0
    threading.Timer(delay, server.sendto, (header + query[12:end] + answer, client)).start()
