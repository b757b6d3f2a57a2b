"""Nothing of a command outlives its lease, nor rlock, nor its guard, whatever tree of processes it makes.

RLOCK_TTLS=1,5,10,30 RLOCK_ROUNDS=10 RLOCK_CROWD=6000 RLOCK_THOUSANDS=8000 runs the whole."""
import os
import signal
import subprocess
import threading
import time

from breed import KINDS, Trees
from support import PATIENCE, RLOCK, gone, needs_root, note, read, send, stop, until

ROUNDS = int(os.environ.get("RLOCK_ROUNDS", "2"))
TTLS = [int(ttl) for ttl in os.environ.get("RLOCK_TTLS", "3").split(",")]
THOUSANDS = int(os.environ.get("RLOCK_THOUSANDS", "2000"))
CROWD = int(os.environ.get("RLOCK_CROWD", "500"))
ALL = [*KINDS, "ways out"]
STORMS = ["storm 200", "bomb"]  # rlock itself cannot renew beside these at a ttl of 1 s
IGNORED = "trap '' TERM INT HUP; "


class LeaseEnds(Trees):
    """The last sign of life comes before the lease's end."""

    def in_time(self, kind, ttl, stop):
        """Milliseconds between the last sign of life and the lease's end; negative: too late."""
        name = "end-" + kind.replace(" ", "")
        holder = self.plant(name, kind, "-q", "-t", str(ttl), trap=IGNORED, stderr=subprocess.DEVNULL)
        end = stop(holder, name)
        left = (end - self.last_sign(holder)) * 1000
        send(holder.pid, signal.SIGCONT)
        self.assert_ends(holder, 76)
        self.server.call("FLUSHALL")
        return left

    def rlock_stopped(self, holder, name):
        stop(holder.pid)
        return self.server.lease_end(name)

    def server_hung(self, _, name):
        """Just after a renewal, so that no other one is on its way."""
        before = self.server.lease_end(name)
        until(lambda: self.server.lease_end(name) > before, "a renewal")
        end = self.server.lease_end(name)
        self.server.pause()
        self.addCleanup(self.server.go_on)
        return end

    def check(self, what, kinds, ttls, stop, rounds=ROUNDS):
        for kind in kinds:
            for ttl in ttls:
                with self.subTest(kind=kind, ttl=ttl):
                    left = []
                    for _ in range(rounds):
                        left.append(self.in_time(kind, ttl, stop))
                        self.server.go_on()
                    note(f"{what}, {kind}, ttl {ttl} s, {CROWD} others: last sign of life {min(left):.1f} to "
                         f"{max(left):.1f} ms before the lease's end")
                    self.assertGreater(min(left), 0)

    def test_a_forker_ends_in_time_if_rlock_is_stopped(self):
        """A grandchild in a session of its own that goes on forking."""
        self.crowd(CROWD)
        self.check("rlock stopped", ["forker"], TTLS, self.rlock_stopped)

    def test_a_forker_ends_in_time_if_the_server_hangs(self):
        """rlock itself has to end what ignores its TERM."""
        self.crowd(CROWD)
        def hung_and_back(holder, name):
            end = self.server_hung(holder, name)
            holder.family.await_end()
            self.server.go_on()
            return end
        self.check("server hung", ["forker"], TTLS, hung_and_back)

    def test_every_kind_of_tree_ends_in_time_if_rlock_is_stopped(self):
        """Threads that fork, vfork, deep chains, daemons, cleared environments."""
        kinds = [kind for kind in ALL if kind not in ["forker", *STORMS]]
        self.check("rlock stopped", kinds, TTLS[:1], self.rlock_stopped)

    def test_fork_storms_are_killed_in_time_if_rlock_is_stopped(self):
        """The guard runs before what keeps all processors busy, where it may."""
        needs_root()
        self.check("rlock stopped", STORMS, [5], self.rlock_stopped)

    def test_thousands_of_processes_end_in_time_if_rlock_is_stopped(self):
        """So many take their time to die: the guard begins earlier."""
        self.check("rlock stopped", [f"sessions {THOUSANDS}"], [5], self.rlock_stopped)

    def test_copies_of_copies_are_killed_earlier(self):
        """The kernel takes a second to remove a chain of processes that have never called exec."""
        holder = self.plant("copies", "copies 300", "-q", "-t", "4", stderr=subprocess.DEVNULL)
        end = self.rlock_stopped(holder, "copies")
        left = end - self.last_sign(holder)
        note(f"300 copies: the last sign of life {left * 1000:.0f} ms before the lease's end, gone {(end - time.time()) * 1000:.0f} ms before it")
        self.assertGreater(left, 1)
        send(holder.pid, signal.SIGCONT)
        self.assert_ends(holder, 76)

    def test_a_guard_that_is_stopped_again_and_again_is_resumed_or_replaced(self):
        """rlock resumes its guard, or does its work."""
        self.stop = threading.Event()
        def stop_guard(holder, name):
            guard = holder.guard
            end = self.server_hung(holder, name)
            stops = 0
            def stop_on():
                nonlocal stops
                while not gone(guard):
                    os.kill(guard, signal.SIGSTOP)
                    stops += 1
                    time.sleep(0.001)
            stopper = threading.Thread(target=stop_on)
            stopper.start()
            holder.family.await_end()
            stopper.join(PATIENCE)
            self.server.go_on()
            self.assertGreater(stops, 10)
            return end
        self.check("guard stopped in a loop", ["forker", "daemons"], TTLS[:1], stop_guard)


class Killed(Trees):
    def gone_after(self, kind, kill, *options):
        holder = self.plant("killed", kind, "-t", "1h", *options, stderr=subprocess.DEVNULL)
        kill(holder)
        killed = time.time()
        holder.took = (self.last_sign(holder) - killed) * 1000
        return holder

    def test_the_guard_ends_all_if_rlock_is_killed(self):
        """All gone long before the lease ends: the guard did it."""
        for kind in ALL:
            with self.subTest(kind=kind):
                took = []
                for _ in range(ROUNDS):
                    holder = self.gone_after(kind, lambda holder: send(holder.pid, signal.SIGKILL))
                    self.assert_ends(holder, -signal.SIGKILL)
                    took.append(holder.took)
                    self.server.call("FLUSHALL")
                note(f"rlock killed, {kind}: last sign of life after at most {max(took):.1f} ms")

    def test_term_reaches_every_one_of_many(self):
        """One that it misses lives on until the end of --kill-after."""
        count = THOUSANDS // 4
        script = f"i=0; while [ $i -lt {count} ]; do setsid sleep 1000 & i=$((i + 1)); done; echo on; exec sleep 1000"
        holder = self.hold("term", script, "-t", "10m", "-k", "4m")
        sent = time.monotonic()
        send(holder.pid, signal.SIGTERM)
        note(f"TERM to {count} processes: all gone after {(holder.family.await_end() - sent) * 1000:.0f} ms")
        self.assert_ends(holder, -signal.SIGTERM)

    def test_a_killed_guard_ends_the_command_or_keeps_the_lock(self):
        """The command is ended or the lock is kept, never neither: rlock releases when nothing is left."""
        for kind in ALL:
            with self.subTest(kind=kind):
                took = []
                for _ in range(ROUNDS):
                    holder = self.plant("killed", kind, "-t", "1h", stderr=subprocess.DEVNULL)
                    killed = time.time()
                    send(holder.guard, signal.SIGKILL)
                    next_one = self.run_program([RLOCK, "run", "killed", "--", "date", "+%s.%N"])
                    last = self.last_sign(holder)
                    self.assertGreater(float(next_one.stdout), last, "two at once")
                    took.append((last - killed) * 1000)
                    self.assert_ends(holder, 71)
                note(f"guard killed, {kind}: last sign of life after at most {max(took):.1f} ms")

    def test_a_stopped_guard_wakes_up_when_rlock_is_killed(self):
        """The guard wakes up when rlock is gone."""
        for kind in "forker", "ways out":
            with self.subTest(kind=kind):
                holder = self.plant("killed", kind, "-t", "1h", stderr=subprocess.DEVNULL)
                guard = holder.guard
                # rlock first, so that it cannot resume the guard.
                stop(holder.pid)
                stop(guard)
                killed = time.time()
                send(holder.pid, signal.SIGKILL)
                took = (self.last_sign(holder) - killed) * 1000
                note(f"guard stopped, then rlock killed, {kind}: last sign of life after {took:.1f} ms")
                until(lambda: gone(guard), "the end of the guard")
                self.server.call("FLUSHALL")


class Waiting(Trees):
    def test_a_descendant_with_a_cleared_environment_is_waited_for(self):
        """Whatever a descendant did to its environment and session, it is waited for."""
        got = self.run_program([RLOCK, "run", "--wait-descendants", "wait", "--", "sh", "-c",
                                "env -i setsid -f sh -c 'sleep 0.5; echo late'; exit 5"])
        self.assertEqual((got.returncode, got.stdout), (5, "late\n"))

    def test_a_descendant_with_the_lock_file_of_a_server_is_awaited_and_stopped(self):
        """fd 3 on a file called rlock.lock means nothing."""
        os.mkdir("lk")
        open_it = "exec 3>lk/rlock.lock; "
        got = self.run_program([RLOCK, "run", "--wait-descendants", "wait", "--", "sh", "-c",
                                open_it + "setsid -f sh -c 'sleep 0.5; echo late'"])
        self.assertEqual((got.returncode, got.stdout), (0, "late\n"))
        holder = self.hold("wait", open_it + "setsid sleep 1000 & echo on; sleep 1000", "--max-run", "4s", "-k", "50ms")
        self.assert_ends(holder, 124)
        holder.family.await_end()


class Strangers(Trees):
    def stranger(self, **environment):
        return self.start(["sleep", "1000"], env=self.environment | environment)

    def test_a_stranger_with_the_owner_in_a_variable_is_left_alone(self):
        """It is not the command's: neither signals nor the end of the run reach it."""
        holder = self.hold("stranger", "echo $RLOCK_OWNER >owner; echo on; exec sleep 1000", "--max-run", "4s", "-k", "50ms")
        owner = read("owner").strip()
        strangers = [self.stranger(OTHER=owner), self.stranger(RLOCK_OWNER=owner),
                     self.stranger(RLOCK_HELD=f"stranger {owner}")]
        self.assert_ends(holder, 124)
        for one in strangers:
            self.assertIsNone(one.poll())

    def test_a_stranger_whose_files_block_delays_nothing(self):
        """Reading its environment would hang for ever: a fifo stands for the lock on its memory."""
        needs_root("unshare", "-m", "true")
        os.mkfifo("blocks")
        script = ("exec 3>&1 >/dev/null; sleep 1000 & for file in environ cmdline maps; do "
                  "mount --bind blocks /proc/$!/$file || exit 99; done; "
                  "rlock run --max-run 1s -k 50ms blocked -- "
                  "sh -c 'setsid sleep 1000 & sleep 1001' 3>&-; echo $? >&3; kill $!")
        got = self.run_program(["unshare", "-m", "sh", "-c", script])
        self.assertEqual(got.stdout, "124\n", got)
        self.assertTrue(self.free("blocked"))

    def test_no_file_of_a_stranger_is_opened(self):
        """Only stat and lists of children, and those below rlock alone."""
        stranger = self.stranger()
        holder = self.run_program(["strace", "-f", "-qq", "-e", "trace=open,openat,openat2,readlink,readlinkat", "-o", "calls",
                                   RLOCK, "run", "--max-run", "1s", "-k", "50ms", "traced", "--", "sh", "-c",
                                   "env -i setsid sleep 1000 & (setsid sleep 1001 &); sleep 1002"])
        if "ptrace" in holder.stderr.lower():
            self.skipTest("no strace here: " + holder.stderr)
        self.assertEqual(holder.returncode, 124, holder)
        self.assertIsNone(stranger.poll())
        calls = [line for line in read("calls").splitlines() if '"' in line]
        self.assertTrue([line for line in calls if "children" in line])
        for line in calls:
            path = line.split('"')[1]
            self.assertNotIn(f"/proc/{stranger.pid}", path, line)
            if path.startswith("/proc/self/") or not (path.startswith("/proc/") or not path.startswith("/")):
                continue
            self.assertNotIn(path.rpartition("/")[2], ("environ", "cmdline", "maps", "smaps", "exe", "fd"), line)
