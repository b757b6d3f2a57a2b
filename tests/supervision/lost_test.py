"""A lease that others may have by now: the command gets no grace period beside them."""
import os
import signal
import subprocess

from breed import Trees
from support import RLOCK, mutant, read, send, until

STUBBORN = "trap '' TERM; echo $RLOCK_OWNER. >owner; $B beat & echo on; while :; do sleep 0.1; done"


class LostLease(Trees):
    def gets_a_grace_period(self, program, forget, mode=()):
        """Whether a command that ignores TERM goes on when another run has the lock. Lease and --kill-after are long, so that
        only the loss ends it."""
        if os.path.exists("owner"):
            os.remove("owner")
        options = ["-q", "-t", "1h", "-k", "1h", *mode]
        holder = self.work("lost", STUBBORN, *options, "--event-log", "log", program=program, stderr=subprocess.DEVNULL)
        owner = read("owner").strip(".\n")
        self.server.call(*forget)
        next_one = self.hold("lost", "echo on; exec sleep 1000", *options)
        # The next renewal is due in 20 minutes: a wake asks for one at once.
        self.server.call("RPUSH", f"rlock:{{lost}}:wake:{owner}", "1")
        until(lambda: '"terminating"' in read("log") or '"killed"' in read("log"), "the end of the lease")
        grace = '"terminating"' in read("log")
        if not grace:
            self.assert_ends(holder, 76)
            holder.family.await_end()
        send(next_one.pid, signal.SIGTERM)
        self.assert_ends(next_one, -signal.SIGTERM)
        return grace

    def test_a_lost_lock_with_a_new_holder_has_no_grace_period(self):
        """The lock was deleted and taken, or the server lost its data and all slots are taken."""
        for forget, mode in ((["DEL", "rlock:{lost}:holders"], []), (["FLUSHALL"], []), (["FLUSHALL"], ["--slots", "1"])):
            with self.subTest(forget=forget, mode=mode):
                self.assertFalse(self.gets_a_grace_period(RLOCK, forget, mode))

    def test_a_grace_period_beside_the_next_holder_is_noticed(self):
        self.assertTrue(self.gets_a_grace_period(mutant("grace_beside_another"), ["DEL", "rlock:{lost}:holders"]))
