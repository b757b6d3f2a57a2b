"""A program on a terminal of its own, driven as a person would: type, and look at what is shown."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios

from harness import until


class Terminal:
    """`argv` leads a session there, and ignores no signal, whatever this was started by: nohup, or a shell in the background.
    `raw` is all that it has shown."""

    def __init__(self, argv, environment=None):
        self.raw, self.seen = b"", 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for ignored in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP:
                signal.signal(ignored, signal.SIG_DFL)
            os.execvpe(argv[0], argv, os.environ if environment is None else environment)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def modes(self):
        return termios.tcgetattr(self.fd)[3]

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def take(self, seconds):
        """What it shows within this time: None for nothing, empty when the last process on the terminal is gone."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return b""
        self.raw += piece
        return piece

    @property
    def shown(self):
        return self.raw.decode("utf-8", "replace")

    def state(self):
        """What a failed test prints."""
        return repr(self.raw[-2000:])

    def until(self, holds, what=""):
        """Reads until a state is reached."""
        def more():
            if self.take(0.02) == b"":
                raise AssertionError(f"closed: {what} {self.state()}")
        until(lambda: holds() or more(), lambda: f"{what} {self.state()}", pause=0)

    def see(self, text):
        """Waits for `text` behind what was seen before; returns what came in front of it."""
        wanted = text.encode()
        self.until(lambda: self.raw.find(wanted, self.seen) >= 0, repr(text))
        at = self.raw.find(wanted, self.seen)
        before, self.seen = self.raw[self.seen:at], at + len(wanted)
        return before.decode("utf-8", "replace")

    def status(self):
        """Reads to the end; the exit code, negative for a signal."""
        until(lambda: self.take(0.2) == b"", "the end of the last process on the terminal", pause=0)
        return self.wait()

    def wait(self):
        ended = until(lambda: os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG), f"the end of process {self.pid}")
        self.pid = 0  # the number may be another's from now on
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def hang_up(self):
        """As closing the window does."""
        os.close(self.fd)
        self.fd = -1

    def close(self):
        """However it went."""
        if self.pid > 0:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        if self.fd >= 0:
            self.hang_up()
