"""A HUP after a TERM, as a service manager sends it, is no second request to stop."""
import signal
import time

from breed import Trees
from cancel_test import ONE_REQUEST
from support import RLOCK, has_read_signals, mutant, read, send, until


class Hangup(Trees):
    def after_a_hangup(self, program):
        """A run in the --kill-after of what is left, to which a HUP came after a TERM, as a service manager sends it."""
        holder = self.work("hangup", "(trap '' TERM; echo on; while :; do $B beat & sleep 0.2; kill $!; done) & "
                           "exec sleep 1000", "-k", "10m", "--event-log", "log", program=program)
        send(holder.pid, signal.SIGTERM)
        until(lambda: "cancelled" in read("log"), "the first signal")
        time.sleep(ONE_REQUEST)
        send(holder.pid, signal.SIGHUP)
        until(lambda: has_read_signals(holder.pid), "the hangup")
        return holder

    def assert_killed(self, holder):
        until(lambda: '"killed"' in read("log"), "the kill of what is left")
        self.assert_ends(holder, -signal.SIGTERM)
        holder.family.await_end()

    def test_a_hangup_does_not_kill(self):
        holder = self.after_a_hangup(RLOCK)
        births = self.life(holder.life)[1]
        until(lambda: self.life(holder.life)[1] > births + 2, "the life of what is left")
        self.assertNotIn('"killed"', read("log"))
        send(holder.pid, signal.SIGTERM)
        self.assert_killed(holder)

    def test_a_hangup_that_kills_is_noticed(self):
        self.assert_killed(self.after_a_hangup(mutant("hangup_insists")))
