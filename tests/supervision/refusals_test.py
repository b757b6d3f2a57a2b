"""The system refuses processes, threads or descriptors, or an exec hangs. [docs/SUPERVISION.md, "Order of a run"]"""
import os
import re
import signal
import subprocess

from support import RLOCK, STRACE, Case, child_of, command_of, needs_root, note, read, send, until, gone

# Nobody else's: processes are counted for each user, and root's are not limited.
NOBODY = 61184
LONG = 'echo on; exec sleep 1000'


def as_nobody(*limits):
    """In the order in which they become true: prlimit, then the user, then the program."""
    return ["prlimit", *limits, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


class Refusals(Case):
    def refused(self, name, argv, code=71):
        """One line that names the lock, and nothing left at the server."""
        got = self.run_program(argv)
        self.assertEqual(got.returncode, code, got)
        self.assertRegex(got.stderr, rf'^rlock: .*"{name}".*\n$')
        self.assert_nothing_left(name)
        return got

    def test_a_lack_of_processes_starts_nothing(self):
        """NPROC at each step: no guard, no command, no renewal thread: 71; with one more it runs."""
        needs_root("setpriv", f"--reuid={NOBODY}", "true")
        for processes, missing in (1, "guard"), (2, "command"), (3, "thread"):
            with self.subTest(missing=missing):
                argv = [*as_nobody(f"--nproc={processes}"), RLOCK, "run", "-t", "12", "nproc", "--", "sleep", "1000"]
                self.assertIn(missing, self.refused("nproc", argv).stderr)
        enough = [*as_nobody("--nproc=4"), RLOCK, "run", "-t", "12", "nproc", "--", "sh", "-c", "exec sleep 8.5"]
        self.assertEqual(self.run_program(enough).returncode, 0)

    def test_a_lack_of_descriptors_starts_nothing(self):
        """NOFILE at each step: 71 until there are enough, and nothing half-started."""
        codes = {}
        for limit in range(3, 24):
            argv = ["prlimit", f"--nofile={limit}", RLOCK, "run", "nofile", "--", "touch", "ran"]
            got = self.run_program(argv, close_fds=True)
            codes[limit] = got.returncode
            # The loader of shared libraries needs one, too: with 127 the kernel never got as far as rlock.
            if got.returncode not in (0, 127):
                self.assertRegex(got.stderr, r"^rlock: .*Too many open files", (limit, got))
                self.assertEqual(got.returncode, 71, (limit, got))
                self.assertFalse(os.path.exists("ran"), limit)
            self.assert_nothing_left("nofile")
            # One that is enough today may not be in the next run: the guard may come before the answer or after it.
            if os.path.exists("ran"):
                os.remove("ran")
        note(f"enough descriptors from {min(limit for limit, code in codes.items() if code == 0)} on")
        self.assertEqual([code for limit, code in codes.items() if limit >= 20], [0] * 4)

    def script(self, text):
        """A command that the delay can be for."""
        with open(self.folder + "/command", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(file.name, 0o755)
        return file.name

    def delayed(self, command, microseconds):
        """strace that holds up the exec of COMMAND, and nothing else."""
        return [*STRACE, "-P", command, "-e", "trace=execve", "-e", f"inject=execve:delay_enter={microseconds}"]

    def test_an_exec_that_hangs_beyond_the_lease_starts_nothing(self):
        """An exec that hangs past the lease: the command never starts, 76."""
        needs_root(*self.delayed("/bin/true", 0), "true")
        script = self.script(": >started")
        hanging = [*self.delayed(script, 5_000_000), RLOCK, "run", "--no-renew", "-t", "1", "hung", "--", script]
        got = self.run_program(hanging)
        self.assertEqual(got.returncode, 76, got)
        self.assertRegex(got.stderr, r'(?m)^rlock: lost "hung".*the command was not started; rlock help 76')  # strace may talk, too
        self.assertFalse(os.path.exists("started"))
        self.assert_nothing_left("hung")

    def test_the_guard_kills_an_exec_that_hangs_beyond_the_lease(self):
        """The guard does not hang with the exec, and ends it in time by itself."""
        needs_root(*self.delayed("/bin/true", 0), "true")
        script = self.script(": >started")
        # strace keeps what is killed until the delay is over. On a busy machine rlock is stopped seconds after the start.
        holder = self.start([*self.delayed(script, 12_000_000), RLOCK, "run", "-t", "2", "hung", "--", script],
                            stderr=subprocess.DEVNULL)
        runner = child_of(holder.pid, "rlock")
        command = command_of(runner, "lease-guard")
        send(runner, signal.SIGSTOP)
        until(lambda: gone(command), "the end of the command")
        send(runner, signal.SIGCONT)
        self.assert_ends(holder, 76)
        self.assertFalse(os.path.exists("started"))
        self.assert_nothing_left("hung")

    def test_an_exec_that_hangs_for_less_than_the_lease_starts(self):
        """One that hangs for less does start."""
        needs_root(*self.delayed("/bin/true", 0), "true")
        argv = [*self.delayed("/bin/true", 300_000), RLOCK, "run", "slow", "--", "/bin/true"]
        self.assertEqual(self.run_program(argv).returncode, 0)

    def test_a_kill_during_the_exec_is_reported_as_a_signal(self):
        """An exec that hangs and is killed, by a user or for want of memory: that signal is reported, no exit code."""
        needs_root(*self.delayed("/bin/true", 0), "true")
        script = self.script("exec sleep 1000")
        hanging = [*self.delayed(script, 8_000_000), RLOCK, "run", "hung", "--", script]
        holder = self.start(hanging, stderr=subprocess.DEVNULL)  # strace wonders, too
        runner = child_of(holder.pid, "rlock")
        # Until its exec the command has the guard's name.
        send(command_of(runner, "lease-guard"), signal.SIGKILL)
        self.assert_ends(holder, -signal.SIGKILL)
        self.assert_nothing_left("hung")

    def test_an_event_log_on_a_disk_that_hangs_delays_nothing(self):
        """No write to it delays a renewal or the release."""
        log = self.folder + "/log"
        hanging = [*STRACE, "-P", log, "-e", "trace=write", "-e", "inject=write:delay_enter=9000000"]
        needs_root("strace", "-qq", "-o", "/dev/null", "true")
        got = self.run_program([*hanging, RLOCK, "run", "-t", "8", "--event-log", log, "slow", "--", "sleep", "12"])
        self.assertEqual(got.returncode, 0, got)
        self.assertIn("acquired", read(log))
        self.assert_nothing_left("slow")

    def test_messages_on_a_disk_that_hangs_delay_nothing(self):
        """The command starts, the lease is renewed and the lock is released, whatever -v has to say."""
        messages = self.folder + "/messages"
        hanging = [*STRACE, "-P", messages, "-e", "trace=write", "-e", "inject=write:delay_enter=9000000"]
        needs_root("strace", "-qq", "-o", "/dev/null", "true")
        renewed = 'until [ "$(grep -c renewed log)" -ge 2 ]; do sleep 0.1; done'
        got = self.run_program([*hanging, "sh", "-c", 'exec "$@" 2>messages', "sh",
                                RLOCK, "run", "-v", "-t", "8", "--event-log", "log", "slow", "--", "sh", "-c", renewed])
        self.assertEqual(got.returncode, 0, got)
        self.assert_nothing_left("slow")

    def test_each_system_call_of_the_start_fails_once(self):
        """Whatever fails between grant and command: the command's code or 71, and no key left."""
        needs_root("strace", "-qq", "-o", "/dev/null", "true")
        for call in "pipe2", "socketpair", "timerfd_create", "signalfd4", "mmap", "eventfd2", "clone,clone3":
            for nth in range(1, 4):
                inject = ["strace", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error=EMFILE:when={nth}"]
                got = self.run_program([*inject, RLOCK, "run", "inject", "--", "sh", "-c", "exit 5"])
                if call != "mmap":  # the loader's own calls come first
                    self.assertIn(got.returncode, (5, 71), (call, nth, got))
                self.assert_nothing_left("inject")

    def test_a_killed_guard_that_cannot_be_replaced_ends_the_command(self):
        """Where the guard is killed and no process can be started the command is ended, 71."""
        needs_root("setpriv", f"--reuid={NOBODY}", "true")
        holder = self.hold("unguarded", LONG, before=as_nobody("--nproc=1000"), stderr=subprocess.PIPE)
        subprocess.run([*as_nobody(), "prlimit", f"--pid={holder.pid}", "--nproc=1"], check=True)
        send(child_of(holder.pid, "lease-guard"), signal.SIGKILL)
        holder.family.await_end()
        self.assert_ends(holder, 71)
        self.assertTrue(re.fullmatch(rb'rlock: .*"unguarded".*guard.*\n', holder.stderr.read()))
        self.assert_nothing_left("unguarded")
