"""A HUP after a TERM, as a service manager sends it, is no second request to stop."""
import os
import signal
import time

from breed import Trees
from cancel_test import ONE_REQUEST
from support import RLOCK, has_read_signals, mutant, read, send, until


class Hangup(Trees):
    def hangup_kills(self, program):
        """Whether a HUP after a TERM, as a service manager sends it, ends the --kill-after of what is left."""
        log = f"log.{os.path.basename(program)}"
        holder = self.work("hangup", "(trap '' TERM; echo on; while :; do $B beat & sleep 0.2; kill $!; done) & "
                           "exec sleep 1000", "-k", "10m", "--event-log", log, program=program)
        send(holder.pid, signal.SIGTERM)
        until(lambda: "cancelled" in read(log), "the first signal")
        time.sleep(ONE_REQUEST)
        send(holder.pid, signal.SIGHUP)
        until(lambda: has_read_signals(holder.pid), "the hangup")
        births = self.life(holder.life)[1]
        until(lambda: self.life(holder.life)[1] > births + 2 or '"killed"' in read(log), "what the hangup does")
        killed = '"killed"' in read(log)
        if not killed:
            send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        holder.family.await_end()
        return killed

    def test_a_hangup_does_not_kill(self):
        self.assertFalse(self.hangup_kills(RLOCK))

    def test_a_hangup_that_kills_is_noticed(self):
        self.assertTrue(self.hangup_kills(mutant("hangup_insists")))
