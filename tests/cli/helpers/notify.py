#!/usr/bin/python3
"""Stands for a service: notify.py TEXT sends one report of its own to NOTIFY_SOCKET."""
import os
import socket
import sys

address = os.environ["NOTIFY_SOCKET"]
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
    sender.sendto(sys.argv[1].encode(), "\0" + address[1:] if address.startswith("@") else address)
