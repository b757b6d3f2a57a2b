#!/usr/bin/env python3
"""Runs COMMAND on a terminal of its own; what it prints comes out on stdout. USR1 types ^C there, and
what stdin has is typed once COMMAND has asked (its first output).

Ends as COMMAND ends, 128 + N for a signal.
"""
import os
import pty
import signal
import sys

pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGUSR1, lambda *_: os.write(terminal, b"\x03"))
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # the last one on the terminal is gone
        break
    if not piece:
        break
    os.write(1, piece)
    if not sys.stdin.isatty() and (typed := sys.stdin.buffer.read()):
        os.write(terminal, typed)
# Python resets its handlers before it exits: a late USR1 would kill it.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
