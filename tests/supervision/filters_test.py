"""A seccomp filter, as SystemCallFilter= of systemd sets one, kills for system calls that rlock can do without. [docs/SUPERVISION.md, "Seccomp filters"]"""
import os
import signal

from support import FILTERED, RLOCK, Case, child_of, needs, read, send, until

OPTIONAL = [FILTERED, "kill", "mlockall", "sched_setscheduler", "--"]
# Longer than it takes the guard to settle.
A_SECOND = ["sh", "-c", "sleep 1; exit 5"]


def kill_filter(*calls):
    return [FILTERED, "kill", *calls, "--"]


class Filters(Case):
    def setUp(self):
        super().setUp()
        needs(*OPTIONAL, "true")

    def test_a_run_does_without_a_forbidden_call(self):
        """Neither memory that is locked nor real time: the run goes on as without the filter."""
        for calls in ["mlockall"], ["sched_setscheduler"], ["mlockall", "sched_setscheduler"]:
            with self.subTest(calls=calls):
                got = self.run_program([*kill_filter(*calls), RLOCK, "run", "filtered", "--", *A_SECOND])
                self.assertEqual((got.returncode, got.stderr), (5, ""))
                self.assert_nothing_left("filtered")

    def test_the_guard_makes_the_call_that_is_allowed(self):
        """Where one of them is allowed, the guard makes it."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        for call, made in ("sched_setscheduler", self.locked), ("mlockall", self.in_real_time):
            with self.subTest(call=call):
                holder = self.hold("one", "echo on; exec sleep 1000", before=kill_filter(call))
                guard = child_of(holder.pid, "lease-guard")
                until(lambda made=made, guard=guard: made(guard), "the other call")
                send(holder.pid, signal.SIGTERM)
                self.assert_ends(holder, -signal.SIGTERM)

    def locked(self, pid):
        return "VmLck:\t       0 kB" not in read(f"/proc/{pid}/status")

    def in_real_time(self, pid):
        return os.sched_getscheduler(pid) == os.SCHED_FIFO

    def test_a_forbidden_call_that_the_guard_needs_is_named(self):
        """71, and the message says what killed the guard."""
        got = self.run_program([*kill_filter("setsid"), RLOCK, "run", "filtered", "--", "sleep", "1000"])
        self.assertEqual(got.returncode, 71, got)
        self.assertRegex(got.stderr, r'^rlock: "filtered" at .*: the guard process was killed by signal 31 \(SIGSYS\): a seccomp '
                                     r'filter forbids a system call; in a systemd unit, .*SystemCallFilter=; '
                                     r'(the command was not started|rlock stopped the command)\n$')
        self.assert_nothing_left("filtered")

    def test_the_signal_that_killed_the_guard_is_named(self):
        """The message names the signal."""
        with open("err", "w", encoding="utf-8") as err:
            holder = self.hold("killed", "echo on; exec sleep 1000", stderr=err)
        send(child_of(holder.pid, "lease-guard"), signal.SIGKILL)
        self.assert_ends(holder, 71)
        self.assertIn("the guard process was killed by signal 9 (SIGKILL); rlock stopped the command\n", read("err"))

    def test_a_sandbox_without_sockets_is_named(self):
        """77 at once, and the message says where rlock can run: the name servers are not blamed, nor is the server waited for."""
        for url in "unix:///run/redis.sock", "redis://127.0.0.1:1", "redis://db1.example":
            with self.subTest(url=url):
                got = self.run_program([FILTERED, "EPERM", "socket", "--", RLOCK, "run", "--url", url, "filtered", "--", "true"])
                self.assertEqual(got.returncode, 77, got)
                self.assertRegex(got.stderr, r"^rlock: .*: Operation not permitted: a sandbox \(seccomp, SELinux\) forbids this process "
                                             r"to open sockets; run rlock outside the sandbox, or allow sockets in it")

    def test_a_filter_against_contain_is_named(self):
        """What a filter refuses to --contain: the message names the option of the unit."""
        for action, call, code, said in (
                ("ENOSYS", "clone3", 5, ""),
                ("kill", "mount", 71, "killed by signal 31 (SIGSYS); a seccomp filter may forbid it: in a systemd unit, allow @mount by SystemCallFilter="),
                ("EPERM", "mount", 71, "in a systemd unit, allow @mount by SystemCallFilter="),
        ):
            with self.subTest(action=action, call=call):
                before = (FILTERED, action, call, "--")
                got = self.run_program([*before, RLOCK, "run", "--contain", "filtered", "--", "sh", "-c", "exit 5"])
                if os.geteuid() != 0 and got.returncode == 71 and "CAP_SYS_ADMIN" in got.stderr:
                    self.skipTest("needs root")
                self.assertEqual(got.returncode, code, got)
                self.assertIn(said, got.stderr)
