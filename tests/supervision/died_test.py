"""A command that dies of a signal has left nothing behind on purpose: the lock is free only when all of that has ended."""
import os
import signal
import sys
import time

from breed import Trees
from support import RLOCK, ROUNDS, child_of, command_of, gone, named_below, pid_in, read, send, stop, until

WORKER = "$B beat & echo on; wait"


class Died(Trees):
    options = []

    def assert_none_beside_the_next(self, what, script, end, how, target=lambda holder: command_of(holder.pid, "sh"),
                                    number=signal.SIGKILL):
        """KILL, or `number`, to the command, or to the process below it that `target` finds."""
        for _ in range(max(1, ROUNDS // 10)):
            holder = self.work("died", script, *self.options)
            send(target(holder), number)
            next_one = self.run_program([RLOCK, "run", "died", "--", "date", "+%s.%N"])
            self.assertGreater(float(next_one.stdout), self.last_sign(holder), what)
            self.assert_ends(holder, end)
            before = self.runs("died")[1]
            self.assertEqual((before["how"], before.get("exit_code"), before.get("signal")), ("released", *how))

    def test_a_killed_command_leaves_nothing(self):
        """As by the OOM killer, by a bug, or by somebody who sends TERM to the command and not to rlock."""
        for number in signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM:
            with self.subTest(number=number):
                self.assert_none_beside_the_next(number, WORKER, -number, (None, number), number=number)

    def test_a_shell_whose_child_was_killed_leaves_nothing(self):
        """It exits with 137."""
        self.assert_none_beside_the_next("137", "sh -c '$B beat & echo on; wait; :'; exit $?", 128 + signal.SIGKILL, (137, None),
                                         lambda holder: child_of(command_of(holder.pid, "sh"), "sh"))

    def test_a_python_script_whose_child_was_killed_leaves_nothing(self):
        """It exits with 256 - 9."""
        script = "import subprocess, sys; sys.exit(subprocess.call(['sh', '-c', '$B beat & echo on; wait; :']))"
        name = os.path.basename(sys.executable)
        self.assert_none_beside_the_next("247", f'{sys.executable} -c "{script}"; exit $?', 256 - signal.SIGKILL, (247, None),
                                         lambda holder: child_of(child_of(command_of(holder.pid, "sh"), name), "sh"))

    def test_a_nested_run_whose_command_was_killed_leaves_nothing(self):
        """The inner command is killed, and the inner rlock ends by the same signal."""
        self.assert_none_beside_the_next("nested", f"$B beat & exec {RLOCK} run inner -- sh -c 'echo on; $B beat & wait'", -signal.SIGKILL,
                                         (None, 9), lambda holder: named_below(holder.pid, "sh"))

    def test_what_is_left_may_clean_up(self):
        """TERM first, KILL --kill-after later."""
        holder = self.hold("clean", "(trap 'sleep 0.3; echo done >clean; exit' TERM; echo on; while :; do sleep 0.05; done) & wait",
                           "-k", "1m", *self.options)
        send(command_of(holder.pid, "sh"), signal.SIGKILL)
        self.assert_ends(holder, -signal.SIGKILL)
        self.assertEqual(read("clean"), "done\n")

    def test_the_guard_ends_leftovers_if_rlock_is_stopped(self):
        """Nobody decides about the rest: the guard ends it before the lease ends."""
        holder = self.work("stopped", WORKER, "-q", "-t", "6", "--no-renew", *self.options)
        command = command_of(holder.pid, "sh")
        end = self.server.lease_end("stopped")
        stop(holder.pid)
        send(command, signal.SIGKILL)
        self.assertLess(self.last_sign(holder), end)
        send(holder.pid, signal.SIGCONT)
        holder.wait()


class DiedContained(Died):
    options = ["--contain"]

    def setUp(self):
        super().setUp()
        tried = self.run_program([RLOCK, "run", "--contain", "tried", "--", "true"])
        if tried.returncode == 71 and "cannot contain" in tried.stderr:
            self.skipTest("no namespaces here: " + tried.stderr)


class DiedUncontained(Trees):
    def test_a_failed_command_names_what_it_left(self):
        """A wrapper may hide that a signal killed its child; daemons that a step has started stay, and a success is silent."""
        daemon = "setsid -f sh -c 'echo $$. >pid; exec sleep 1000' >/dev/null 2>&1; until [ -s pid ]; do sleep 0.01; done; "
        warning = r'^rlock: warning: "left": the command failed with 2 and left a process running without the lock: process {} .*\n$'
        for options, code, says in ((), 2, warning), (("-q",), 2, "^$"), ((), 0, "^$"):
            got = self.run_program([RLOCK, "run", *options, "left", "--", "sh", "-c", f"{daemon} exit {code}"])
            pid = pid_in("pid")
            self.assertFalse(gone(pid))
            send(pid, signal.SIGKILL)
            os.remove("pid")
            self.assertEqual(got.returncode, code)
            self.assertRegex(got.stderr, says.format(pid))

    def left_behind(self, number):
        """A command with a daemon that ignores HUP, and a worker, dies of a signal; the daemon lives on."""
        holder = self.work("left", "nohup $B beat 2>/dev/null & echo $! >daemon; $B beat & echo on; exec sleep 1000", births=2)
        daemon = int(read("daemon"))
        send(named_below(holder.pid, "sleep"), number)
        self.assert_ends(holder, -number)
        self.assertFalse(gone(daemon))
        self.assertTrue(self.free("left"))
        send(daemon, signal.SIGKILL)
        return holder

    def test_a_hangup_spares_what_ignores_it(self):
        """What ignores it goes on, and nothing else does."""
        holder = self.left_behind(signal.SIGHUP)
        holder.family.await_end()

    def test_a_command_that_dies_of_a_closed_pipe_leaves_its_daemons(self):
        """That is how the first of a pipeline ends: its daemons go on."""
        holder = self.left_behind(signal.SIGPIPE)
        before = self.life(holder.life)[0]
        until(lambda: self.life(holder.life)[0] > before + 1e8, "a sign of life")
        self.sweep()

    def test_a_command_that_ends_long_after_a_hangup_leaves_its_worker(self):
        """A HUP that the command took as a request to read its configuration again makes no cancel of its end."""
        holder = self.hold("reload", "trap 'echo >command.hup' HUP; sleep 1000 & echo $! >worker; "
                           "echo on; until [ -e go ]; do sleep 0.05; done; exit 3", "-k", "100ms")
        send(holder.pid, signal.SIGHUP)
        until(lambda: read("command.hup"), "the command has read it again")
        time.sleep(0.3)
        with open("go", "w", encoding="utf-8"):
            pass
        self.assert_ends(holder, 3)
        worker = int(read("worker"))
        self.assertFalse(gone(worker))
        send(worker, signal.SIGKILL)
