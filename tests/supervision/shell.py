"""A terminal with an interactive bash on it, driven as a person would: type, and look at what is shown."""
import os
import termios

from support import child_of, gone, named_below, stopped, until
from terminal import Terminal

PROMPT = "ready> "


def await_session(terminal):
    """The guard of the rlock there has left its session; before, it passes on once more what the terminal sends."""
    guard = child_of(terminal.pid, "lease-guard")
    until(lambda: os.getpgid(guard) != terminal.pid, "a guard of its own group")


class Shell(Terminal):
    """bash with job control. Quotes inside a typed word (`us''able`) keep its echo from passing for output."""

    def __init__(self, case, shell="bash"):
        argv = ["bash", "--norc", "--noprofile", "--noediting", "-i"] if shell == "bash" else [shell, "-i"]
        super().__init__(argv, case.environment | {"PS1": PROMPT, "TERM": "xterm", "LESS": "", "LESSHISTFILE": "-"})
        case.addCleanup(self.close)
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

    def begin_inner(self, *options):
        """A bash below rlock: ^Z, fg and ^C work inside."""
        self.enter(f"PS1=in'ner> ' rlock run {' '.join(options)} inner -- bash --norc --noprofile --noediting -i")
        self.see("inner> ")
        self.enter("sleep 1000")
        sleep = named_below(self.rlock(), "sleep")
        self.type("\x1a")
        self.see("Stopped")
        self.see("inner> ")
        assert stopped(sleep)
        self.enter("fg")
        until(lambda: self.foreground() == sleep, "sleep in the foreground")
        self.type("\x03")
        self.see("inner> ")
        assert gone(sleep)

    def end_inner(self):
        """Its code comes back."""
        self.enter("exit 5")
        self.see(PROMPT)
        self.enter("echo co''de=$?")
        self.see("code=5")
        self.see(PROMPT)
        self.assert_usable()

    def rlock(self):
        """The pid of the rlock that the shell itself started."""
        return child_of(self.pid, "rlock")
