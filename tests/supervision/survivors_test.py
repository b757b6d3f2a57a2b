"""A process of another user in the tree: rlock cannot end it, so it keeps the lock, and says so."""
import os
import re
import shutil
import signal
import time

from breed import BREED, Trees
from support import RLOCK, children_of, command_of, gone, mutant, needs_root, read, send, until

NOBODY = ["setpriv", "--reuid", "nobody", "--clear-groups"]
MAY_CONTAIN = [*NOBODY, "--inh-caps", "+sys_admin", "--ambient-caps", "+sys_admin"]
LINE = re.compile(r"rlock: .*process (\d+) \(root-breed\) of root", re.M)


class OfAnotherUser(Trees):
    """rlock as nobody; `root-breed` is setuid root, and becomes root for real."""

    def setUp(self):
        super().setUp()
        needs_root(*NOBODY, RLOCK, "--version")
        self.program = os.path.join(self.folder, "root-breed")
        shutil.copy(BREED, self.program)
        os.chmod(self.program, 0o4755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("no setuid programs in " + self.folder)
        os.chmod(self.folder, 0o777)

    def run_over(self, name, *options, script="$ROOT & echo on; exec sleep 1000", program=RLOCK, before=NOBODY):
        """rlock as nobody over a process of root."""
        life = os.path.join(self.folder, "life")
        errors = open("errors", "wb")
        self.addCleanup(errors.close)
        # After a failed test the unprivileged rlock would wait for ever for this process.
        self.addCleanup(self.end_root)
        holder = self.hold(name, script.replace("$ROOT", f"{self.program} {life} root"), *options,
                           before=before, stderr=errors, program=program)
        until(lambda: self.life(life)[1] > 0 and self.roots(), "a process of root")
        holder.life = life
        return holder

    def roots(self):
        """Those of root by every id: before that nobody may signal them."""
        mine = os.stat(self.program).st_ino
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.stat(f"/proc/{name}/exe").st_ino == mine \
                        and "\nUid:\t0\t0\t0\t0\n" in read(f"/proc/{name}/status") \
                        and f"{self.program}" == os.readlink(f"/proc/{name}/exe"):
                    found.append(int(name))
            except OSError:
                pass
        return found

    def end_root(self):
        for pid in self.roots():
            send(pid, signal.SIGKILL)

    def lines(self):
        return LINE.findall(read("errors"))

    def assert_kept(self, name, holder):
        """The line came once, the lock is renewed beyond two leases, and others see why."""
        root, = until(self.lines, "the line")
        self.assertEqual(int(root), self.roots()[0])
        self.assertIn(f"or break the lock: rlock force-unlock {name}. To make", read("errors"))
        before = self.server.lease_end(name)
        until(lambda: self.server.lease_end(name) > before + 1, "renewals")
        self.assertIsNone(holder.poll())
        self.assertEqual(len(self.lines()), 1)
        status = until(lambda: (text := self.run_program([RLOCK, "status", name]).stdout) and "ending" in text and text, "status")
        self.assertIn(f"ending, cannot stop pid {root} of root", status)

    def test_the_lock_is_kept_until_a_survivor_has_ended(self):
        """After --max-run with -q, after a TERM, after the command was killed, and where it is the command itself
        (`rlock run … sudo …`), which TERM cannot reach. The code comes then."""
        def term(holder):
            send(holder.pid, signal.SIGTERM)

        def kill_command(holder):
            send(command_of(holder.pid, "sleep"), signal.SIGKILL)
        for name, options, script, act, code in (
                ("limit", ["-q", "--max-run", "4s", "-k", "50ms"], "$ROOT & echo on; exec sleep 1000", lambda holder: None, 124),
                ("term", [], "$ROOT & echo on; exec sleep 1000", term, -signal.SIGTERM),
                ("died", [], "$ROOT & echo on; exec sleep 1000", kill_command, -signal.SIGKILL),
                ("itself", [], "echo on; exec $ROOT", term, -signal.SIGKILL)):
            with self.subTest(name=name):
                holder = self.run_over(name, "-t", "12", *options, script=script)
                act(holder)
                self.assert_kept(name, holder)
                self.end_root()
                self.assert_ends(holder, code)
                self.assertTrue(self.free(name))

    def test_a_second_term_ends_rlock_without_a_release(self):
        """Without a release: the lock lasts as long as its lease."""
        holder = self.run_over("second")
        send(holder.pid, signal.SIGTERM)
        until(self.lines, "the line")
        self.assertIsNone(holder.poll())
        time.sleep(0.5)  # what comes before is still the first one
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        self.assertFalse(self.free("second"))
        self.assertEqual(len(self.roots()), 1)

    def assert_one_term_is_one(self, everybody):
        """Of three nested runs the innermost is not given up, no matter which of them pass the signal on."""
        for at in range(int(os.environ.get("RLOCK_ROUNDS", "3"))):
            script = f"exec {RLOCK} run middle{at} -- {RLOCK} run inner{at} -- sh -c '$ROOT & exec sleep 1000'"
            holder = self.run_over(f"outer{at}", script="echo on; " + script)
            middle = command_of(holder.pid, "rlock")
            inner = command_of(middle, "rlock")
            for pid in [holder.pid, middle, inner] if everybody else [holder.pid]:
                send(pid, signal.SIGTERM)
            until(lambda: f'"inner{at}" stays locked' in read("errors"), "the line of the innermost run")
            time.sleep(0.5)
            self.assertFalse(gone(inner), f"round {at}: given up beside a process that lives")
            self.end_root()
            self.assert_ends(holder, -signal.SIGTERM)

    def test_one_term_in_nested_runs_is_one(self):
        self.assert_one_term_is_one(everybody=False)

    def test_one_term_to_all_nested_runs_is_one(self):
        """As a service manager sends it."""
        self.assert_one_term_is_one(everybody=True)

    def test_a_broken_lock_passes_when_its_lease_ends(self):
        """force-unlock: the holder exits and does not confirm."""
        holder = self.run_over("broken", "-t", "10")
        end = self.server.lease_end("broken")
        self.run_program([RLOCK, "force-unlock", "broken", "--yes"])
        next_one = self.run_program([RLOCK, "run", "broken", "--", "date", "+%s.%N"])
        self.assertGreaterEqual(float(next_one.stdout), end - 0.01)
        self.assert_ends(holder, 76)
        self.assertRegex(read("errors"), rf"process {self.roots()[0]} \(root-breed\) of root")

    def test_a_broken_lock_passes_immediately(self):
        """force-unlock --now."""
        holder = self.run_over("now", "-t", "1h")
        self.run_program([RLOCK, "force-unlock", "now", "--now", "--yes"])
        self.assertEqual(self.run_program([RLOCK, "run", "now", "--", "true"]).returncode, 0)
        self.assert_ends(holder, 76)
        self.assertRegex(read("errors"), rf"process {self.roots()[0]} \(root-breed\) of root")

    def beside_a_forker(self, name, *options):
        forker = os.path.join(self.folder, "forker")
        holder = self.run_over(name, *options, script=f"$ROOT & {BREED} {forker} forker & echo on; exec sleep 1000")
        self.await_births(forker, 6)
        return holder, forker

    def assert_forker_ends(self, forker, before):
        """Only root's process is left: the last sign of all others is before that moment."""
        self.assertLess(self.await_quiet(forker) / 1e9, before)

    def below(self, name, program):
        """Whether the process of user nobody below a process of root, which cannot be ended, ends after --max-run."""
        life = os.path.join(self.folder, "below")
        holder = self.run_over(name, "-t", "12", "--max-run", "4s", "-k", "50ms", program=program,
                               script=f"trap '' TERM; $ROOT & {self.program} {life} sudo & echo on; exec sleep 1000")
        self.await_births(life, 2)
        until(self.lines, "the line")
        before = self.server.lease_end(name)
        until(lambda: self.server.lease_end(name) > before + 5, "renewals")
        ended = not any(children_of(root) for root in self.roots())
        self.assertIsNone(holder.poll())
        self.end_root()
        self.assert_ends(holder, 124)
        return ended

    def test_the_processes_below_a_survivor_end(self):
        """Its own parent does not die: the walk goes down to it."""
        self.assertTrue(self.below("below", RLOCK))

    def test_a_walk_that_does_not_go_down_is_noticed(self):
        self.assertFalse(self.below("below", mutant("kills_children_only")))

    def ends_contained(self, name, program):
        """Whether --contain ends the process of root, too, which the user who runs rlock may not signal."""
        if self.run_program([*MAY_CONTAIN, RLOCK, "run", "--contain", "tried", "--", "true"]).returncode:
            self.skipTest("no namespaces here")
        holder = self.run_over(name, "--contain", "--max-run", "4s", "-k", "50ms", before=MAY_CONTAIN, program=program)
        def kept():  # the number in the line is that of the namespace
            return "stays locked" in read("errors")
        until(lambda: holder.poll() is not None or kept(), "the end")
        ended = not kept()
        if not ended:
            self.end_root()
        self.assert_ends(holder, 124)
        holder.family.await_end()
        return ended

    def test_a_contained_daemon_ends(self):
        self.assertTrue(self.ends_contained("contained", RLOCK))

    def test_a_contained_guard_that_walks_the_tree_is_noticed(self):
        self.assertFalse(self.ends_contained("contained", mutant("contained_walk")))

    def test_the_processes_beside_a_survivor_end_in_time(self):
        """A process that cannot be ended does not protect the rest: rlock stopped."""
        holder, forker = self.beside_a_forker("beside", "-t", "10")
        send(holder.pid, signal.SIGSTOP)
        self.assert_forker_ends(forker, self.server.lease_end("beside"))
        until(lambda: self.server.lease_end("beside") < int(self.server.call("TIME")[0]), "the end of the lease")  # else rlock renews it
        send(holder.pid, signal.SIGCONT)
        self.assert_ends(holder, 76)

    def test_the_processes_beside_a_survivor_end_with_rlock(self):
        """The same, rlock killed."""
        holder, forker = self.beside_a_forker("beside", "-t", "1h")
        end = self.server.lease_end("beside")
        send(holder.pid, signal.SIGKILL)
        self.assert_forker_ends(forker, end)
