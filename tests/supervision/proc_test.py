"""On a terminal, where /proc is refused, missing or another namespace's: the command itself is reached all the same."""
import signal

from support import RLOCK, STRACE, Case, child_of, gone, needs_root, pid_in, read, send, until
from terminal import Terminal

NO_ORPHANS = [*STRACE, "-e", "trace=prctl", "-e", "inject=prctl:error=EPERM"]
REFUSED = [*STRACE, "-P", "/proc", "-e", "trace=openat", "-e", "inject=openat:error=ENFILE"]
MISSING = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "sh"]
OTHER_NAMESPACE = ["unshare", "-pf", "--kill-child"]


class Proc(Case):
    def held(self, before, *options):
        """A terminal whose command is up."""
        needs_root(*before, "true")
        command = ["sh", "-c", "echo $$. >pid; echo on; exec sleep 1000"]
        terminal = Terminal([*before, RLOCK, "run", *options, "held", "--", *command], self.environment)
        self.addCleanup(terminal.close)
        terminal.see("on\r\n")
        return terminal

    def test_a_missing_proc_is_warned_of(self):
        """One line, since what leaves the session of the command is out of reach; none where the kernel ends all."""
        warning = r'^rlock: warning: "warned": /proc .* may outlive the lease; rlock doctor checks this host\n$'
        for before in MISSING, OTHER_NAMESPACE:
            needs_root(*before, "true")
            got = self.run_program([*before, RLOCK, "run", "warned", "--", "true"])
            self.assertRegex(got.stderr, warning, got)
        got = self.run_program([*OTHER_NAMESPACE, RLOCK, "run", "--contain", "warned", "--", "true"])
        self.assertEqual((got.returncode, got.stderr), (0, ""), got)
        self.assertEqual(self.run_program([RLOCK, "run", "warned", "--", "true"]).stderr, "")

    def test_a_sandbox_that_loses_orphans_is_warned_of(self):
        """A sandbox refuses what makes rlock and its guard the parents of orphans; where the kernel ends all it does not matter."""
        needs_root(*NO_ORPHANS, "true")
        got = self.run_program([*NO_ORPHANS, RLOCK, "run", "warned", "--", "true"])
        warning = r'^rlock: warning: "warned": .*PR_SET_CHILD_SUBREAPER: .* may outlive the lease; rlock doctor checks this host\n$'
        self.assertRegex(got.stderr, warning, got)
        got = self.run_program([*NO_ORPHANS, RLOCK, "run", "--contain", "warned", "--", "true"])
        self.assertEqual((got.returncode, got.stderr), (0, ""), got)
        got = self.run_program([*NO_ORPHANS, RLOCK, "doctor"])
        self.assertRegex(got.stdout, r"(?m)^ *warn +proc .*PR_SET_CHILD_SUBREAPER\n *-> allow it", got)

    def test_rlock_without_proc_stops_the_command_in_time(self):
        """The command is ended in time all the same."""
        terminal = self.held(REFUSED, "--max-run", "4s", "-k", "100ms")
        self.assertEqual(terminal.status(), 124)
        self.assertNotIn("could not stop", terminal.shown)
        self.assertTrue(gone(pid_in("pid")))

    def test_a_guard_without_proc_ends_the_command(self):
        """rlock is stopped past its lease: the guard ends the command."""
        terminal = self.held(REFUSED, "-t", "5", "--no-renew")
        rlock = child_of(terminal.pid, "rlock")
        send(rlock, signal.SIGSTOP)
        until(lambda: gone(pid_in("pid")), "the end of the command")
        send(rlock, signal.SIGCONT)
        self.assertEqual(terminal.status(), 76)

    def test_descendants_are_waited_for_while_proc_is_refused(self):
        """Who cannot be looked for may be there. --wait-descendants"""
        needs_root(*REFUSED, "true")
        briefly = [*REFUSED[:-1], REFUSED[-1] + ":when=1..3"]
        other = f"(sleep 0.5; env -u RLOCK_HELD {RLOCK} run -n left -- true; echo $? >other) &"
        done = self.run_program([*briefly, RLOCK, "run", "--wait-descendants", "left", "--", "sh", "-c", other])
        self.assertEqual(done.returncode, 0)
        self.assertEqual(read("other"), "75\n")

    def test_a_signal_reaches_the_command_if_proc_is_refused(self):
        """kill(1) reaches the command."""
        terminal = self.held(REFUSED)
        send(child_of(terminal.pid, "rlock"), signal.SIGTERM)
        self.assertEqual(terminal.status(), -signal.SIGTERM)

    def test_a_signal_reaches_the_command_if_proc_is_missing(self):
        """kill(1) reaches the command."""
        terminal = self.held(MISSING)
        send(terminal.pid, signal.SIGTERM)
        self.assertEqual(terminal.status(), -signal.SIGTERM)

    def test_a_signal_reaches_the_command_if_proc_is_of_another_namespace(self):
        """kill(1) reaches the command, and nobody of those numbers outside."""
        terminal = self.held(OTHER_NAMESPACE)
        send(child_of(terminal.pid, "rlock"), signal.SIGINT)
        self.assertEqual(terminal.status(), 128 + signal.SIGINT)
