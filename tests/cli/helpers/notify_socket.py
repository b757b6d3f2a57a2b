#!/usr/bin/python3
"""Stands for a service manager: notify_socket.py ADDRESS FILE appends each report that comes to ADDRESS to FILE, as one line."""
import socket
import sys

address, path = sys.argv[1:]
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("\0" + address[1:] if address.startswith("@") else address)
with open(path, "a", encoding="utf-8") as reports:
    while True:
        print(receiver.recv(4096).decode().replace("\n", "; "), file=reports, flush=True)
