"""rlock stopped or starved: its command is dead before the lease ends. [docs/SUPERVISION.md, "The guard"]"""
import signal
import subprocess
import time

from support import PATIENCE, RLOCK, Case, gone, note, pid_in, send, until

LEASE = 10  # seconds; a fifth of it is the margin, which is what a starved process may be late by


class Stops(Case):
    def test_a_command_that_ended_while_rlock_was_stopped_keeps_its_code(self):
        """What it left behind goes on, as after any normal end, also when the lease is over."""
        holder = self.start([RLOCK, "run", "-t", "6", "--no-renew", "ended", "--", "sh", "-c",
                             "setsid sleep 1000 & echo $!. >left; until [ -e go ]; do sleep 0.01; done; exit 6"])
        left = pid_in("left")
        send(holder.pid, signal.SIGSTOP)
        open("go", "w", encoding="utf-8").close()
        until(lambda: self.free("ended"), "the end of the lease")
        self.assertFalse(gone(left))
        send(left, signal.SIGKILL)
        send(holder.pid, signal.SIGCONT)
        self.assert_ends(holder, 6)

    def test_a_command_that_ends_with_its_lease_has_one_end(self):
        """Around the moment at which rlock ends the command of a lease of 1 s that is not renewed."""
        for hundredths in range(60, 70):
            holder = self.start([RLOCK, "run", "-q", "-t", "1", "--no-renew", "-k", "100ms", "ends", "--", "sh", "-c",
                                 f"sleep 0.{hundredths}; exit 9"])
            self.assertIn(holder.wait(PATIENCE), (9, 76))

    def hogs(self, count):
        for _ in range(count):
            self.start(["sh", "-c", "while :; do :; done"])

    def starved(self, name, script, *before):
        holder = self.hold(name, script, "-t", str(LEASE), "--no-renew", before=before, stderr=subprocess.DEVNULL)
        holder.lease_end = self.server.lease_end(name)
        return holder

    def left(self, holder):
        """Seconds from the end of the command to that of its lease."""
        holder.family.await_end()
        return holder.lease_end - time.time()

    def test_hogs_do_not_delay_the_end(self):
        """Nice 19 and SCHED_IDLE beside 8 hogs: dead before the lease ends, by the guard (rlock being
        stopped) and by rlock itself."""
        family = "setsid sleep 1000 & echo on; sleep 1001"
        ignores_term = "trap '' TERM; echo on; while :; do sleep 1000; done"
        guarded = [self.starved("nice-guard", family, "nice", "-n", "19"),
                   self.starved("idle-guard", family, "chrt", "-i", "0")]
        alone = [self.starved("nice-rlock", ignores_term, "nice", "-n", "19"),
                 self.starved("idle-rlock", ignores_term, "chrt", "-i", "0")]
        self.hogs(8)
        for holder in guarded:
            send(holder.pid, signal.SIGSTOP)
        left = [self.left(holder) for holder in alone + guarded]
        note(f"beside 8 hogs: dead {', '.join(f'{seconds:.2f}' for seconds in left)} s before the end of a lease of {LEASE} s")
        self.assertGreater(min(left), 0)
        for holder in guarded:
            send(holder.pid, signal.SIGCONT)
        for holder in guarded + alone:
            self.assert_ends(holder, 76)
