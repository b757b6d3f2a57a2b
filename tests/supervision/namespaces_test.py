"""Below `unshare -p` without a fork: rlock is outside of the pid namespace that its children are in. [docs/SUPERVISION.md, "PID 1 and namespaces"]"""
import os
import signal
import subprocess

from support import RLOCK, Case, bearing, name_of, needs_root, read, send, until

BELOW = ["unshare", "-p"]


class Namespaces(Case):
    def setUp(self):
        super().setUp()
        needs_root(*BELOW, "true")

    def test_a_namespace_passes_on_the_code(self):
        """`unshare -p rlock …` runs its command; the code passes through."""
        got = self.run_program([*BELOW, RLOCK, "run", "below", "--", "sh", "-c", "echo ran; exit 7"])
        self.assertEqual((got.returncode, got.stdout, got.stderr), (7, "ran\n", ""))
        self.assert_nothing_left("below")

    def fenced(self, *before):
        """rlock stopped past the ttl as soon as its command says that it runs."""
        holder = self.hold("below", "setsid sleep 1000 & echo on; exec sleep 1001", "-t", "5", before=before,
                           stderr=subprocess.PIPE)
        self.stop_past_its_lease(holder)
        self.assertRegex(holder.stderr.read(), rb'^rlock: lost "below".*\n$')
        self.assert_nothing_left("below")

    def test_the_guard_ends_a_namespace_in_time(self):
        """Stopped past the ttl: the guard, init of the namespace there, ends all; nothing hangs."""
        self.fenced(*BELOW)

    def test_the_guard_ends_a_namespace_that_has_just_started(self):
        """The same where rlock is stopped before it has closed what was its command's alone."""
        slow = ["strace", "-D", "-o", "/dev/null", "-e", "trace=dup3", "-e", "inject=dup3:delay_enter=500000"]
        needs_root(*slow, "true")
        self.fenced(*slow, *BELOW)

    def test_the_guard_ends_a_namespace_if_rlock_is_killed(self):
        """Rlock killed: the guard ends the namespace with everything in it."""
        holder = self.hold("killed", "setsid sleep 1000 & echo on; exec sleep 1001", "-t", "30", before=BELOW)
        send(holder.pid, signal.SIGKILL)
        holder.family.await_end()

    def test_a_refused_thread_ends_the_command(self):
        """A thread is refused there: the command is ended in time, 71."""
        got = self.run_program([*BELOW, RLOCK, "run", "-t", "12", "below", "--", "sleep", "1000"])
        self.assertEqual(got.returncode, 71, got)
        self.assertEqual(self.last_end("below"), "no-renewal")
        self.assert_nothing_left("below")

    def test_the_proc_of_another_namespace_is_not_believed(self):
        """`unshare -pf` without a /proc of its own: what that shows of our pids is strangers', not believed."""
        needs_root("unshare", "-pf", "true")
        for script, code in ("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL):
            for _ in range(5):
                got = self.run_program(["unshare", "-pf", RLOCK, "run", "namespaced", "--", "sh", "-c", script])
                self.assertEqual(got.returncode, code)
                self.assertRegex(got.stderr, r"^rlock: warning: .*/proc .*\n(rlock: .* killed by signal 9 \(SIGKILL\)\n)?$")
        self.assert_nothing_left("namespaced")

    def test_guards_of_the_same_pid_do_not_meet(self):
        """Containers of one pod share a network: in each, what asks its guard to outlive the run does so."""
        needs_root("unshare", "-pf", "--mount-proc", "true")
        script = """rlock run outer$1 -- sh -c 'rlock acquire inner'$1' --renew-while 1 && : >on'$1'; exec sleep 1000' &
                    until [ -e go ]; do sleep 0.05; done; kill -9 $!; exec sleep 1000"""
        for number in "1", "2":
            self.start(["unshare", "-pf", "--mount-proc", "sh", "-c", script, "sh", number], stdout=subprocess.DEVNULL)
            until(lambda n=number: os.path.exists("on" + n), "a renewer")

        def named(name, word=""):
            return [pid for pid in bearing(self.mark) if name_of(pid) == name and word in read(f"/proc/{pid}/cmdline")]
        self.assertEqual(len(named("lease-guard")), 2)
        open("go", "w").close()
        until(lambda: not named("lease-guard"), "the end of the guards")
        self.assertEqual(len(named("rlock", "acquire")), 2)
