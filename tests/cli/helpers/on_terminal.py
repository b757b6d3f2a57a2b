"""A program on a terminal of its own."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

PATIENCE = 60  # s: for a busy machine


class Terminal:
    """`argv` leads a session there, and ignores no signal, whatever this was started by: nohup, or a shell in the background."""

    def __init__(self, argv, environment=None):
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

    def take(self, seconds=None):
        """What it shows within this time: None for nothing, empty when the last one on the terminal is gone."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        try:
            return os.read(self.fd, 65536)
        except OSError:
            return b""

    def wait(self):
        """Its exit code, negative for a signal."""
        end = time.monotonic() + PATIENCE
        while (ended := os.waitpid(self.pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > end:
                raise AssertionError(f"process {self.pid} did not end")
            time.sleep(0.01)
        self.pid = 0  # the number may be another's from now on
        return os.waitstatus_to_exitcode(ended[1])

    def close(self):
        """However it went."""
        if self.pid > 0:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        if self.fd >= 0:
            os.close(self.fd)
