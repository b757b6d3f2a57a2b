#!/usr/bin/env python3
"""Runs COMMAND on a terminal of its own; what it prints comes out on stdout. USR1 types ^C there, and
what stdin has is typed once COMMAND has asked (its first output).

Ends as COMMAND ends, 128 + N for a signal.
"""
import os
import signal
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../../harness"))
from terminal import Terminal  # noqa: E402

pressed = []
signal.signal(signal.SIGUSR1, lambda *_: pressed.append("\x03"))
terminal = Terminal(sys.argv[1:])
while (piece := terminal.take(0.05)) != b"":
    if pressed:
        terminal.type(pressed.pop())
    if piece:
        os.write(1, piece)
        if not sys.stdin.isatty() and (typed := sys.stdin.read()):
            terminal.type(typed)
# Python resets its handlers before it exits: a late USR1 would kill it.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
code = terminal.wait()
sys.exit(code if code >= 0 else 128 - code)
