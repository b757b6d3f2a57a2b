"""What keeps the guard in time and in place, each beside a faulty rlock that the same test notices."""
import ctypes
import os
import signal
import subprocess
import threading
import time

from breed import BREED, Trees
from shell import Shell, await_session
from support import PATIENCE, RLOCK, child_of, gone, mutant, needs_root, send, stop, stopped, until
from terminal import Terminal

PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


class Guard(Trees):
    def ends_in_time_while_reaping(self, program):
        """Whether the tree ends before its lease where the guard finds more dead than it can reap until then."""
        holder = self.work("reaping", "$B daemons & " * 4 + "echo on; exec sleep 1000", "-q", "-t", "20", program=program)
        guard = child_of(holder.pid, "lease-guard")
        for pid in holder.pid, guard:
            stop(pid)
        end = self.server.lease_end("reaping")
        slow = self.start(["strace", "-qq", "-o", "/dev/null", "-e", "trace=waitid", "-e",
                           "inject=waitid:delay_exit=5000", "-p", str(guard)], stderr=subprocess.PIPE)
        until(lambda: time.time() > end - 7, "enough of the dead")
        if slow.poll() is not None:
            self.skipTest("no strace here: " + slow.stderr.read().decode())
        send(guard, signal.SIGCONT)
        until(lambda: time.time() > end, "the lease's end")
        in_time = self.life(holder.life)[0] / 1e9 < end - 0.02
        send(holder.pid, signal.SIGKILL)
        slow.terminate()
        holder.family.await_end()
        return in_time

    def test_reaping_does_not_hold_up_the_end(self):
        self.assertTrue(self.ends_in_time_while_reaping(RLOCK))

    def test_a_reaping_without_bound_is_noticed(self):
        self.assertFalse(self.ends_in_time_while_reaping(mutant("reaps_without_pause")))

    def leads_a_session(self, program):
        """rlock as the leader of a session, as below `ssh -t`: whether it goes on at ^Z, as there is no shell."""
        terminal = Terminal([program, "run", "leader", "--", "sh", "-c", "echo on; read -r x; : >got; exec sleep 1000"],
                            self.environment)
        self.addCleanup(terminal.close)
        terminal.see("on\r\n")
        await_session(terminal)
        terminal.type("\x1a")
        terminal.type("1\n")
        until(lambda: stopped(terminal.pid) or os.path.exists("got"), "an effect")
        return not stopped(terminal.pid)

    def test_a_session_leader_is_not_stopped(self):
        self.assertTrue(self.leads_a_session(RLOCK))

    def test_a_guard_in_the_session_of_rlock_is_noticed(self):
        self.assertFalse(self.leads_a_session(mutant("guard_in_session")))

    def ends_without_guard(self, program, reaps=True, patience=PATIENCE):
        """The guard is held by a tracer: neither stopped nor dead. Whether --max-run ends the tree all the same. A tracer that
        does not wait, as gdb at its prompt, leaves the guard that rlock killed a zombie that rlock cannot reap."""
        holder = self.hold("traced", "setsid sleep 1000 & echo on; sleep 1000", "-q", "--max-run", "4s", "-k", "50ms",
                           program=program)
        guard = child_of(holder.pid, "lease-guard")
        done, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)
        failed = []

        def trace():
            libc = ctypes.CDLL(None, use_errno=True)
            libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
            if libc.ptrace(PTRACE_SEIZE, guard, None, None) or libc.ptrace(PTRACE_INTERRUPT, guard, None, None):
                failed.append(os.strerror(ctypes.get_errno()))
            done.set()
            if not reaps:
                over.wait()
            while not failed:
                if os.WIFSIGNALED(os.waitpid(guard, WALL)[1]):
                    return
        threading.Thread(target=trace, daemon=True).start()
        done.wait()
        if failed:
            self.skipTest("no ptrace here: " + failed[0])
        try:
            holder.wait(patience)
        except subprocess.TimeoutExpired:
            over.set()
            send(guard, signal.SIGKILL)
            self.assert_ends(holder, 124)
            return False
        self.assertEqual(holder.returncode, 124)
        holder.family.await_end()
        return True

    def test_a_guard_that_makes_no_progress_is_replaced(self):
        needs_root()
        self.assertTrue(self.ends_without_guard(RLOCK))

    def test_a_guard_whose_tracer_does_not_wait_is_replaced(self):
        needs_root()
        self.assertTrue(self.ends_without_guard(RLOCK, reaps=False))

    def on_one_processor(self, script, *options):
        """A run on one processor, for which rlock, guard and command compete."""
        processor = str(min(os.sched_getaffinity(0)))
        needs_root("taskset", "-c", processor, "chrt", "-f", "1", "true")
        return self.hold("real-time", script, "-q", *options, before=["taskset", "-c", processor])

    def test_a_command_of_real_time_does_not_starve_the_guard(self):
        """The guard of a stopped rlock runs before a command of the lowest priority of real time."""
        os.mkfifo("go")
        go = os.open("go", os.O_RDWR)
        self.addCleanup(os.close, go)
        holder = self.on_one_processor("echo on; read -r _ <go; exec chrt -f 1 sh -c 'while :; do :; done'", "-t", "5", "--no-renew")
        guard = child_of(holder.pid, "lease-guard")
        until(lambda: os.sched_getscheduler(guard) == os.SCHED_FIFO, "real time")
        self.assertEqual(os.sched_getparam(guard).sched_priority, os.sched_get_priority_max(os.SCHED_FIFO))
        send(holder.pid, signal.SIGSTOP)
        os.write(go, b"\n")
        holder.family.await_end()

    def test_a_successor_keeps_the_usual_class(self):
        """What ends the tree in the place of the guard has the share of the processor that real time leaves to all others."""
        holder = self.on_one_processor("chrt -f 2 sh -c 'echo on; while :; do :; done' & wait", "-t", "60")
        self.addCleanup(self.server.go_on)
        self.server.pause()  # so that rlock still waits for the release when all is ended
        send(child_of(holder.pid, "lease-guard"), signal.SIGKILL)
        holder.family.await_end()
        self.assertEqual(os.sched_getscheduler(holder.pid), os.SCHED_OTHER)
        self.server.go_on()
        self.assert_ends(holder, 71)
        self.assertEqual(self.last_end("real-time"), "no-guard")

    def test_trust_in_an_ending_that_began_is_noticed(self):
        needs_root()
        self.assertFalse(self.ends_without_guard(mutant("trusts_stuck_guard"), patience=8))


class Jobs(Trees):
    """An interactive shell whose job rlock is."""

    def job(self, script, *options, end=""):
        shell = Shell(self)
        life = os.path.join(self.folder, "life")
        shell.enter(f"rlock run {' '.join(options)} job -- sh -c '{script.replace('$B', f'{BREED} {life}')}'{end}")
        self.await_births(life, script.count("$B"))
        return shell, shell.rlock(), life

    def test_the_guard_survives_a_kill_of_the_job_and_ends_the_rest(self):
        """`kill -9 %1` takes rlock, the command and their group; the guard, elsewhere, the rest."""
        shell, rlock, life = self.job("setsid $B beat & env -i setsid $B beat & $B beat", end=" &")
        shell.enter("kill -9 %1")
        until(lambda: gone(rlock), "the end of rlock")
        self.await_quiet(life)

    def test_a_shell_that_exits_ends_its_stopped_job(self):
        """Nothing of the group is left: the hangup ends it, as it ends any other job."""
        shell, rlock, life = self.job("$B beat & $B beat")
        shell.type("\x1a")
        until(lambda: stopped(rlock), "rlock stopped")
        shell.enter("exit")
        shell.enter("exit")
        until(lambda: gone(rlock), "the end of rlock")
        self.await_quiet(life)
        until(lambda: self.free("job"), "the lock's release")
