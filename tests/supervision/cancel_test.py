"""After a request to stop the lock is free only when all that the command left behind has ended."""
import os
import signal
import subprocess
import time

from breed import BREED, Trees
from support import RLOCK, ROUNDS, child_of, children_of, gone, has_read_signals, note, pid_in, read, send, stat_of, stop, until

# As a script does it: a shell makes its background jobs ignore INT and QUIT.
WORKERS = "$B beat & $B beat & echo on; wait"
STUBBORN = "(trap '' TERM; exec $B beat) & "
# Requests within half a second are one.
ONE_REQUEST = 0.5


class Cancel(Trees):
    def assert_none_beside_the_next(self, what, number, script, *options):
        before = []
        for _ in range(ROUNDS):
            holder = self.work("cancelled", script, *options, births=2)
            send(holder.pid, number)
            next_one = self.run_program([RLOCK, "run", "cancelled", "--", "date", "+%s.%N"])
            before.append((float(next_one.stdout) - self.last_sign(holder)) * 1000)
            self.assert_ends(holder, -number)
        note(f"{what}: last sign of life {min(before):.1f} to {max(before):.1f} ms before the next run")
        self.assertGreater(min(before), 0)

    def test_an_int_ends_the_workers_of_a_shell(self):
        self.assert_none_beside_the_next("INT", signal.SIGINT, WORKERS)

    def test_a_term_ends_the_workers_of_a_shell(self):
        self.assert_none_beside_the_next("TERM", signal.SIGTERM, WORKERS)

    def test_workers_that_ignore_term_are_killed(self):
        """KILL comes after --kill-after."""
        self.assert_none_beside_the_next("TERM ignored", signal.SIGTERM, STUBBORN * 2 + "echo on; wait", "-k", "100ms")

    def test_the_lock_is_renewed_meanwhile(self):
        """--kill-after is longer than the lease."""
        holder = self.work("renewed", STUBBORN + "echo on; exec sleep 1000", "-t", "10", "-k", "10m")
        before = self.server.lease_end("renewed")
        send(holder.pid, signal.SIGTERM)
        until(lambda: self.server.lease_end("renewed") > before + 2, "renewals")
        send(holder.pid, signal.SIGTERM)  # the next kills
        self.assert_ends(holder, -signal.SIGTERM)
        self.assert_nothing_left("renewed")

    def assert_the_next_kills(self, first, kill):
        holder = self.work("next", STUBBORN + "echo on; exec sleep 1000", "-k", "10m", "--event-log", "log")
        send(holder.pid, first)
        until(lambda: "cancelled" in read("log"), "the first signal")
        self.assertIsNone(holder.poll())
        time.sleep(ONE_REQUEST)
        kill(holder.pid)
        self.assert_ends(holder, -first)
        holder.family.await_end()

    def test_the_next_signal_kills(self):
        self.assert_the_next_kills(signal.SIGINT, lambda pid: send(pid, signal.SIGTERM))

    def test_the_next_signal_of_another_sender_kills(self):
        self.assert_the_next_kills(signal.SIGTERM, lambda pid: subprocess.run(["kill", "-TERM", str(pid)], check=True))

    def test_two_at_once_are_one(self):
        """As timeout(1) and GNU parallel send them: what is left has its --kill-after."""
        def grace(at):
            log = f"log.{at}"
            holder = self.work(f"twice{at}", STUBBORN + "echo on; exec sleep 1000", "-k", "10m", "--event-log", log)
            begin = time.monotonic()
            send(holder.pid, signal.SIGTERM)
            until(lambda: "cancelled" in read(log), "the first signal")
            send(holder.pid, signal.SIGTERM)
            if time.monotonic() - begin < ONE_REQUEST:
                time.sleep(0.1)
            killed = '"killed"' in read(log)
            time.sleep(ONE_REQUEST)
            send(holder.pid, signal.SIGTERM)
            self.assert_ends(holder, -signal.SIGTERM)
            holder.family.await_end()
            return not killed
        # A busy machine may keep rlock from the second one for longer than that.
        self.assertTrue(any(grace(at) for at in range(5)))

    def test_a_term_to_the_guard_is_one_to_rlock(self):
        """`pkill -P RLOCK` reaches nothing else."""
        holder = self.work("parent", STUBBORN + "echo on; exec sleep 1000", "-k", "100ms")
        send(child_of(holder.pid, "lease-guard"), signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        holder.family.await_end()

    def test_a_term_to_both_is_one(self):
        """As systemd sends it, and even if the guard gets it late: what is left has its --kill-after."""
        holder = self.work("both", "(trap '' TERM; while :; do $B beat & sleep 0.2; kill $!; done) & "
                           "echo on; exec sleep 1000", "-k", "10m", "--event-log", "log")
        send(holder.pid, signal.SIGTERM)
        until(lambda: "cancelled" in read("log"), "the first signal")
        time.sleep(ONE_REQUEST)
        guard = child_of(holder.pid, "lease-guard")
        send(guard, signal.SIGTERM)
        until(lambda: has_read_signals(guard), "the guard has read it")
        self.await_births(holder.life, self.life(holder.life)[1] + 3)
        self.assertNotIn('"killed"', read("log"))
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        holder.family.await_end()

    def test_a_term_of_the_command_to_its_parent_is_none(self):
        """Like its `kill 0`."""
        holder = self.hold("child", "trap 'exit 4' TERM; echo on; kill -TERM $PPID; sleep 0.5; exit 3")
        self.assert_ends(holder, 3)

    def test_a_term_comes_before_other_signals(self):
        """The guard needs longer to pass a signal on to so many processes than rlock needs to get the next one."""
        holder = self.hold("many", f"trap '' USR1; trap 'exit 5' TERM; {BREED} life many 1500 & wait", "-k", "100ms", "--wait-descendants")
        for _ in range(600):
            send(holder.pid, signal.SIGUSR1)
            time.sleep(0.001)
        asked = time.monotonic()
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, 5)
        note(f"600 USR1 for 1500 processes, then TERM: the command exits {time.monotonic() - asked:.1f} s later")

    def test_stop_after_kills_what_a_term_did_not_end(self):
        """KILL to a command that goes on so long after a TERM; a HUP asks it for something else."""
        with open("errors", "wb") as errors:
            holder = self.work("stop", "trap '' TERM; trap 'echo >hup' HUP; $B beat & echo on; while :; do sleep 0.05; done",
                               "--stop-after", "300ms", stderr=errors)
        send(holder.pid, signal.SIGHUP)
        until(lambda: read("hup"), "the hangup")
        time.sleep(0.5)
        self.assertIsNone(holder.poll())
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGKILL)
        holder.family.await_end()
        self.assertIn('"stop": the command is still running 300ms after rlock passed on TERM; rlock kills it (--stop-after)\n', read("errors"))
        self.assertEqual(self.runs("stop")[0]["signal"], signal.SIGKILL)
        self.assert_nothing_left("stop")

    def test_stop_after_limits_what_is_left(self):
        """A command that ends in time keeps its code; what it leaves has no longer time."""
        holder = self.work("rest", STUBBORN + "trap 'exit 5' TERM; echo on; while :; do sleep 0.05; done",
                           "--stop-after", "500ms", "-k", "10m")
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, 5)
        holder.family.await_end()
        self.assert_nothing_left("rest")

    def test_a_command_that_ignores_term_is_reported_and_killed(self):
        with open("errors", "wb") as errors:
            holder = self.work("ignored", "trap '' TERM; echo $$ >command; $B beat & echo on; while :; do sleep 1; done",
                               "-k", "200ms", stderr=errors)
        send(holder.pid, signal.SIGTERM)
        command = int(read("command"))
        until(lambda: "the command is still running 1s after rlock passed on TERM" in (text := read("errors"))
              and text.endswith(f"kill -KILL {command}\n"), "the line")
        until(lambda: "ending, still running after TERM; to kill it: kill -KILL "
              in self.run_program([RLOCK, "status", "ignored"]).stdout, "the state")
        send(holder.pid, signal.SIGTERM)
        self.assertIsNone(holder.poll())
        send(command, signal.SIGKILL)
        self.assert_ends(holder, -signal.SIGKILL)
        holder.family.await_end()
        self.assertEqual(read("errors").count("still running"), 1)
        self.assert_nothing_left("ignored")

    def test_descendants_that_ignore_it_are_reported(self):
        with open("errors", "wb") as errors:
            holder = self.work("left", "(trap '' TERM; exec $B beat) & echo $! >worker; echo $$ >command; echo on", "--wait-descendants",
                               "-k", "200ms", stderr=errors)
        until(lambda: stat_of(int(read("command"))) is None, "the command's end")
        send(holder.pid, signal.SIGTERM)
        until(lambda: "processes of the command are still running 1s after rlock passed on TERM" in read("errors"), "the line")
        send(int(read("worker")), signal.SIGKILL)
        self.assert_ends(holder, 0)

    def test_the_innermost_run_reports_a_command_that_ignores_term(self):
        with open("errors", "wb") as errors:
            holder = self.work("outer", f"exec {RLOCK} run -k 200ms inner -- sh -c 'trap \"\" TERM; echo $$ >command; $B beat & "
                               "echo on; while :; do sleep 1; done'", "-k", "200ms", stderr=errors)
        send(holder.pid, signal.SIGTERM)
        command = int(read("command"))
        until(lambda: f"kill -KILL {command}\n" in read("errors"), "the line")
        send(command, signal.SIGKILL)
        self.assert_ends(holder, -signal.SIGKILL)
        holder.family.await_end()
        self.assertEqual(read("errors").count("still running"), 1)

    def test_a_cancelled_command_keeps_its_code(self):
        holder = self.work("code", "trap 'exit 5' INT; $B beat & echo on; wait")
        send(holder.pid, signal.SIGINT)
        self.assert_ends(holder, 5)
        holder.family.await_end()

    def test_a_hangup_spares_what_ignores_it(self):
        with open("errors", "wb") as errors:
            holder = self.work("hangup", "nohup $B beat 2>/dev/null & echo $! >daemon; $B beat & echo on; exec sleep 1000",
                               births=2, stderr=errors)
        daemon = int(read("daemon"))
        send(holder.pid, signal.SIGHUP)
        self.assert_ends(holder, -signal.SIGHUP)
        self.assertFalse(gone(daemon))
        self.assertIn(f"process {daemon} (breed) of", read("errors"))
        self.assertTrue(self.free("hangup"))
        send(daemon, signal.SIGKILL)
        holder.family.await_end()

    def test_a_hangup_spares_what_ignores_it_although_the_guard_dies(self):
        """rlock kills the rest of its group in the place of the guard, but not the group."""
        worker = 'trap "" TERM; trap : HUP; echo $$. >worker; while :; do $B beat & sleep 1; kill $!; done'
        with open("errors", "wb") as errors:
            holder = self.work("hangup", f"setsid sh -c 'nohup $B beat 2>/dev/null & echo $!. >daemon; {worker}' & "
                               "echo on; exec sleep 1000", "-k", "10m", "--event-log", "log", births=2, stderr=errors)
        daemon, worker = pid_in("daemon"), pid_in("worker")
        send(holder.pid, signal.SIGHUP)
        until(lambda: '"terminating"' in read("log"), "the grace period")
        send(child_of(holder.pid, "lease-guard"), signal.SIGKILL)
        self.assert_ends(holder, -signal.SIGHUP)
        self.assertTrue(gone(worker))
        self.assertFalse(gone(daemon))
        self.assertIn(f"process {daemon} (breed) of", read("errors"))
        send(daemon, signal.SIGKILL)
        holder.family.await_end()

    def test_an_end_by_itself_leaves_daemons_alone(self):
        holder = self.work("daemon", "setsid $B beat & echo $! >daemon; echo on; sleep 0.5; exit 3")
        self.assert_ends(holder, 3)
        self.assert_nothing_left("daemon")
        daemon = int(read("daemon"))
        self.assertFalse(gone(daemon))
        send(daemon, signal.SIGKILL)
        holder.family.await_end()


class Grace(Trees):
    def test_what_outlives_the_command_has_its_time(self):
        """A shell in front dies at once of the TERM of --max-run; its worker cleans up."""
        holder = self.hold("grace", "(trap 'sleep 0.5; echo done >clean; exit' TERM; echo on; while :; do sleep 0.05; done) & "
                           "wait", "--max-run", "4s", "-k", "30s", stderr=subprocess.DEVNULL)
        self.assert_ends(holder, 124)
        self.assertEqual(read("clean"), "done\n")


class CancelThenStop(Trees):
    """rlock passes a request to stop on and is then stopped itself, so that the guard decides about what the command leaves."""

    def leave(self, number, handler, *options):
        """The command handles the request; then rlock is stopped, and the command exits with 0 once `go` is there."""
        holder = self.hold("left", f"trap ': >asked' {signal.Signals(number).name[3:]}; echo on; until [ -e asked ]; do sleep 0.05; done; "
                           "until [ -e go ]; do sleep 0.05; done; " + handler, "-q", *(options or ("-t", "6", "--no-renew")))
        send(holder.pid, number)
        until(lambda: os.path.exists("asked"), "the request")
        stop(holder.pid)
        return holder

    def end_command(self):
        with open("go", "w", encoding="utf-8"):
            pass

    def test_the_guard_ends_a_worker_before_the_lease_expires(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
            with self.subTest(number=number):
                holder = self.leave(number, f"{BREED} life beat &")
                end = self.server.lease_end("left")
                self.end_command()
                holder.family.await_end()
                self.assertLess(self.life("life")[0] / 1e9, end)
                send(holder.pid, signal.SIGCONT)
                holder.wait()
                for name in "asked", "go", "life":
                    os.remove(name)

    def test_the_time_for_which_rlock_is_stopped_does_not_count(self):
        """The command exited soon after the HUP, although rlock learns it only after --kill-after."""
        holder = self.leave(signal.SIGHUP, f"{BREED} life beat &", "-t", "1m", "-k", "3s")
        asked = time.monotonic()
        self.end_command()
        until(lambda: self.life("life")[1] > 0 and not children_of(children_of(holder.pid)[0], "sh"), "the command's end")
        if time.monotonic() - asked > 2.5:
            self.skipTest("this machine is too busy")
        until(lambda: time.monotonic() > asked + 3.5, "--kill-after")
        send(holder.pid, signal.SIGCONT)
        self.assert_ends(holder, 0)
        holder.family.await_end()

    def test_a_worker_that_ignores_a_hangup_lives(self):
        holder = self.leave(signal.SIGHUP, f"nohup {BREED} life beat 2>/dev/null & echo $!. >daemon; sleep 1000 & echo $!. >worker")
        self.end_command()
        daemon, worker = pid_in("daemon"), pid_in("worker")
        until(lambda: gone(worker), "the end of the worker")
        send(holder.pid, signal.SIGCONT)
        holder.wait()
        self.assertFalse(gone(daemon))
        send(daemon, signal.SIGKILL)

    def test_a_service_that_was_reloaded_leaves_its_daemons(self):
        """A HUP longer ago than --kill-after asked for nothing but that."""
        holder = self.leave(signal.SIGHUP, f"{BREED} life beat & echo $!. >daemon", "-t", "6", "--no-renew", "-k", "50ms")
        time.sleep(0.2)
        self.end_command()
        daemon = pid_in("daemon")
        end = self.server.lease_end("left")
        until(lambda: time.time() > end, "the end of the lease")
        self.assertFalse(gone(daemon))
        send(holder.pid, signal.SIGCONT)
        holder.wait()
        self.assertFalse(gone(daemon))
        send(daemon, signal.SIGKILL)
