"""Waits that count the time in which the host is suspended. No test can suspend the host: what each thread waits for is
read from the kernel."""
import os
import signal
import time

from support import RLOCK, Case, read, send, until


class Suspend(Case):
    def setUp(self):
        super().setUp()
        if not read("/proc/self/syscall"):
            self.skipTest("this kernel does not show what a process waits for")

    def assert_waits(self, pid, threads):
        """ppoll(2) without a timeout, which would stand still in a suspend, beside an armed timer on the clock that does not."""
        def waits():
            tasks = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
            call = read(f"/proc/{pid}/task/{tasks[-1]}/syscall").split()
            # Their arguments are fds, count and timeout: none is 0 for ppoll, -1 for poll.
            timers = [info for fd in os.listdir(f"/proc/{pid}/fdinfo") if f"clockid: {time.CLOCK_BOOTTIME}\n" in
                      (info := read(f"/proc/{pid}/fdinfo/{fd}")) and "it_value: (0, 0)" not in info]
            no_timeout = len(call) > 3 and call[3] in ("0x0", "0xffffffff", "0xffffffffffffffff")
            return len(tasks) == threads and no_timeout and timers
        until(waits, "a wait without a timeout, beside an armed timer")

    def test_a_suspended_holder_loses_its_lock(self):
        holder = self.hold("slept", "echo on; exec sleep 1000")
        self.assert_waits(holder.pid, 2)

    def test_a_suspended_waiter_keeps_its_place(self):
        self.hold("slept", "echo on; exec sleep 1000")
        waiter = self.start([RLOCK, "run", "-q", "slept", "--", "true"])
        until(lambda: "position" in self.run_program([RLOCK, "queue", "--json", "slept"]).stdout, "a waiter")
        self.assert_waits(waiter.pid, 1)
        for number in signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT:
            send(waiter.pid, number)
        self.assert_waits(waiter.pid, 1)  # none of these ends a wait
        send(waiter.pid, signal.SIGTERM)
        self.assert_ends(waiter, -signal.SIGTERM)
