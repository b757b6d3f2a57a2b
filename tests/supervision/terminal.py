"""A terminal with an interactive bash on it, driven as a person would: type, and look at what is shown."""
import fcntl
import os
import pty
import select
import struct
import termios
import time

from support import PATIENCE, child_of, send, until

PROMPT = "ready> "


class Terminal:
    """`argv` leads a session on a terminal of its own; what it shows is read by see()."""

    def __init__(self, argv, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, environment)
        self.shown = ""
        self.seen = 0

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def see(self, text):
        """Waits for `text` behind what was seen before; returns what came in front of it."""
        end = time.monotonic() + PATIENCE
        while (at := self.shown.find(text, self.seen)) < 0:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0] or not self._read():
                raise AssertionError(f"{text!r} is not shown after {self.shown[self.seen:]!r}")
        before = self.shown[self.seen:at]
        self.seen = at + len(text)
        return before

    def _read(self):
        try:
            piece = os.read(self.fd, 4096)
        except OSError:  # the last one on the terminal is gone
            return False
        self.shown += piece.decode("utf-8", "replace")
        return bool(piece)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.fd)[3]

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def hang_up(self):
        """As closing the window does."""
        os.close(self.fd)
        self.fd = -1

    def status(self):
        """Reads to the end; the exit code, negative for a signal."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self):
        """Of a test, however it went."""
        try:
            send(self.pid, 9)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        if self.fd >= 0:
            os.close(self.fd)


class Shell(Terminal):
    """bash with job control. Quotes inside a typed word (`us''able`) keep its echo from passing for output."""

    def __init__(self, case, shell="bash"):
        argv = ["bash", "--norc", "--noprofile", "--noediting", "-i"] if shell == "bash" else [shell, "-i"]
        super().__init__(argv, case.environment | {"PS1": PROMPT, "TERM": "xterm", "LESS": "", "LESSHISTFILE": "-"})
        case.addCleanup(self.end)
        self.see(PROMPT)

    def enter(self, line):
        self.type(line + "\n")

    def says(self, line):
        """What a command prints."""
        self.enter(f"echo be''gin; {line}; echo e''nd")
        self.see("begin\r\n")
        said = self.see("end\r\n")
        self.see(PROMPT)
        return said.replace("\r", "")

    def assert_usable(self):
        """Cooked, with an echo, and a shell that answers."""
        wanted = termios.ICANON | termios.ECHO
        until(lambda: self.modes() & wanted == wanted, "a cooked terminal")
        self.says("true")

    def rlock(self):
        """The pid of the rlock that the shell itself started."""
        return child_of(self.pid, "rlock")
