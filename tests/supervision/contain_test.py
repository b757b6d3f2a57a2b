"""--contain: the guard is the init of a pid namespace of its own, and the kernel ends all in there with it. [docs/SUPERVISION.md, "Contained runs"]"""
import ctypes
import os
import signal
import threading
import time

from breed import Trees
from support import RLOCK, STRACE, Case, child_of, gone, named_below, needs, needs_root, note, read, send, stopped, until
from shell import PROMPT, Shell

NO_NAMESPACES = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:error=EPERM"]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


PTRACE_SEIZE = 0x4206


class Contained(Trees):
    before = []
    option = "--contain"

    def setUp(self):
        super().setUp()
        tried = self.run_program([*self.before, RLOCK, "run", self.option, "tried", "--", "true"])
        if tried.returncode == 71 and "cannot contain" in tried.stderr:
            self.skipTest("no namespaces here: " + tried.stderr)

    def contained(self, name, script, *options, **how):
        return self.hold(name, script, "-q", self.option, *options, before=self.before, **how)

    def sessions(self, count, *options):
        return self.work("sessions", f"$B sessions {count} & echo on; wait", "-q", self.option, *options, births=count + 1,
                         before=self.before)

    def run_contained(self, *words):
        return self.run_program([*self.before, RLOCK, "run", self.option, *words])

    def guard(self, holder):
        return child_of(holder.pid, "lease-guard")

    def test_a_contained_command_has_pids_of_its_own(self):
        """Its /proc shows the guard and itself."""
        got = self.run_contained("own", "--", "sh", "-c", "echo $$ /proc/[0-9]*; readlink /proc/self/ns/pid; exit 7")
        numbers, namespace = got.stdout.splitlines()
        self.assertEqual((got.returncode, numbers, got.stderr), (7, "2 /proc/1 /proc/2", ""))
        self.assertNotEqual(namespace, os.readlink("/proc/self/ns/pid"))
        self.assert_nothing_left("own")

    def test_contain_passes_on_how_a_command_ends(self):
        """Codes, signals and failures come through."""
        self.assertEqual(self.run_contained("ends", "--", "sh", "-c", "kill -USR1 $$").returncode, -signal.SIGUSR1)
        self.assertEqual(self.run_contained("ends", "--", "/no such command").returncode, 127)
        self.assertEqual(self.run_contained("ends", "-c", "exit 9").returncode, 9)
        self.assert_nothing_left("ends")

    def test_what_is_left_behind_is_gone_before_the_release(self):
        family = self.family()
        got = self.run_contained("daemon", "--", "sh", "-c", f"exec >{family.path}; echo on; setsid sleep 1000 & exit 5")
        family.await_start()
        self.assertEqual(got.returncode, 5)
        self.assertEqual(family.read_now(), b"")
        self.assert_nothing_left("daemon")

    def test_contain_waits_for_descendants(self):
        got = self.run_contained("--wait-descendants", "waits", "--", "sh", "-c", "setsid sh -c 'sleep 0.3; : >got' & exit 5")
        self.assertEqual(got.returncode, 5)
        self.assertTrue(os.path.exists("got"))

    def test_a_contained_tree_that_ignores_term_is_killed(self):
        got = self.run_contained("--max-run", "1s", "-k", "100ms", "proof", "--", "sh", "-c",
                                 "trap '' TERM; (setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 1000")
        self.assertEqual(got.returncode, 124)
        self.assert_nothing_left("proof")

    def test_a_term_reaches_a_contained_command(self):
        holder = self.contained("term", "trap 'exit 6' TERM; echo on; while :; do sleep 0.05; done")
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, 6)
        self.assert_nothing_left("term")

    def test_leftover_processes_may_clean_up_after_a_cancel(self):
        """TERM first, and KILL --kill-after later; a nested run releases its lock."""
        holder = self.contained("cancel", f"{RLOCK} run inner -- sh -c 'trap \"sleep 0.3; echo done >clean; exit\" TERM; echo on; "
                                "while :; do sleep 0.05; done' & wait", "-k", "1m")
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        holder.family.await_end()
        self.assertEqual(read("clean"), "done\n")
        for name in "cancel", "inner":
            self.assert_nothing_left(name)

    def test_a_hangup_spares_nothing(self):
        """What ignores it could not go on after the run, but has the time of --kill-after."""
        holder = self.contained("hangup", "(trap '' HUP; trap 'echo >clean; exit' TERM; echo on; while :; do sleep 0.05; done) & "
                                "exec sleep 1000", "-k", "1m")
        send(holder.pid, signal.SIGHUP)
        self.assert_ends(holder, -signal.SIGHUP)
        holder.family.await_end()
        self.assertEqual(read("clean"), "\n")
        self.assert_nothing_left("hangup")

    def test_the_kernel_ends_many_sessions_if_rlock_is_killed(self):
        """The kernel ends them at once, without a look at each."""
        count = 1000 if os.geteuid() == 0 else 500
        holder = self.sessions(count)
        killed = time.time()
        send(holder.pid, signal.SIGKILL)
        note(f"{count} sessions: the last sign of life {1000 * (self.last_sign(holder) - killed):.1f} ms after the kill")

    def test_many_sessions_that_ignore_term_are_killed_before_the_release(self):
        """What is left after --kill-after needs no signal: it is killed before the release."""
        holder = self.sessions(1000, "-k", "200ms")
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        holder.family.await_end()
        self.assert_nothing_left("sessions")

    def test_the_kernel_ends_all_if_rlock_and_guard_are_killed(self):
        holder = self.contained("both", "setsid sleep 1000 & echo on; exec sleep 1001")
        guard = self.guard(holder)
        send(holder.pid, signal.SIGSTOP)
        for pid in guard, holder.pid:  # the guard is reaped once rlock is dead
            send(pid, signal.SIGKILL)
        holder.family.await_end()

    def test_a_term_from_outside_to_the_guard_counts(self):
        """One from outside is for the run; one of the command, whose parent the guard is, is not."""
        holder = self.contained("term", "trap 'exit 4' TERM; kill -TERM 1; sleep 0.5; echo on; while :; do sleep 0.05; done")
        send(self.guard(holder), signal.SIGTERM)
        self.assert_ends(holder, 4)

    def test_a_killed_guard_ends_the_contained_command(self):
        """71, and the lock is released when all are gone."""
        holder = self.contained("guard", "setsid sleep 1000 & echo on; exec sleep 1001")
        send(self.guard(holder), signal.SIGKILL)
        self.assert_ends(holder, 71)
        holder.family.await_end()
        self.assert_nothing_left("guard")

    def test_the_guard_keeps_the_time_of_a_contained_run(self):
        """The guard keeps the time."""
        holder = self.contained("stopped", "trap '' TERM; setsid sleep 1000 & echo on; sleep 1001", "-t", "5", "--no-renew")
        self.stop_past_its_lease(holder)
        self.assert_nothing_left("stopped")

    def test_a_stopped_guard_dies_with_rlock(self):
        holder = self.contained("resumed", "setsid sleep 1000 & echo on; exec sleep 1001")
        guard = self.guard(holder)
        send(guard, signal.SIGSTOP)
        send(holder.pid, signal.SIGKILL)
        holder.family.await_end()

    def test_contained_runs_nest(self):
        """Inside, the lock is entered, others are taken, and namespaces lie in each other."""
        got = self.run_contained("outer", "--", "sh", "-c", f"""
            {RLOCK} run outer -- echo entered
            {RLOCK} run {self.option} outer -- sh -c 'echo again $$'
            {RLOCK} run {self.option} inner -- sh -c '{RLOCK} run {self.option} third -- sh -c "echo third; exit 3"'""")
        self.assertEqual((got.returncode, got.stdout), (3, "entered\nagain 2\nthird\n"), got)
        for name in "outer", "inner", "third":
            self.assert_nothing_left(name)

    def test_a_contained_nested_run_ends_with_the_outer_one(self):
        holder = self.contained("outer", f"exec {RLOCK} run -q {self.option} inner -- sh -c 'setsid sleep 1000 & echo on; sleep 1000'")
        send(holder.pid, signal.SIGKILL)
        holder.family.await_end()

    def test_a_contained_run_reaches_a_local_server(self):
        """A server that runs before serves inside; one that is started inside could not outlive the run."""
        folder = os.path.join(self.folder, "l")
        url = ["--url", "local:" + folder, "-q"]
        refused = self.run_contained("outer", "--", RLOCK, "run", *url, "inner", "--", "true")
        self.assertEqual(refused.returncode, 71, refused)
        self.assertIn("--contain", refused.stderr)
        got = self.run_contained(*url, "outer", "--", "sh", "-c", f"{RLOCK} run {' '.join(url)} inner -- echo inside")
        free = self.run_program([RLOCK, "status", *url, "outer"]).returncode
        self.run_program(["redis-cli", "-s", folder + "/rlock.sock", "shutdown", "nosave"])
        self.assertEqual((got.returncode, got.stdout, free), (0, "inside\n", 1), got)

    def test_service_variables_name_the_command_as_it_sees_itself(self):
        """WATCHDOG_PID and LISTEN_PID name the command as it sees itself."""
        script = 'export WATCHDOG_PID=$$ LISTEN_PID=$$; exec "$@"'
        got = self.run_program([*self.before, "sh", "-c", script, "sh", RLOCK, "run", self.option, "watched", "--",
                                "sh", "-c", "echo $WATCHDOG_PID $LISTEN_PID $$"])
        self.assertEqual(got.stdout, "2 2 2\n", got)

    def test_a_script_reads_on_after_a_contained_shell(self):
        """It ends by itself, and cannot name the group that had the terminal: the script's next `read` gets its line."""
        shell = Shell(self)
        with open("script", "w", encoding="utf-8") as file:
            file.write("PS1='inner> ' " + " ".join([*self.before, RLOCK, "run", self.option]) +
                       " read -- bash --norc --noprofile --noediting -i\nread -r line; echo got $line\n")
        shell.enter("sh ./script")
        shell.see("inner> ")
        shell.enter("sleep 0")
        shell.see("inner> ")
        shell.enter("exit 0")
        shell.type("this\n")
        shell.see("got this")
        shell.assert_usable()

    def held_by_a_debugger(self, script):
        """A run that leaves a process behind which a debugger holds: it does not let the kernel reap it."""
        os.mkfifo("go")
        os.chmod("go", 0o666)
        holder = self.contained("debugged", f"setsid sleep 1000 & echo on; {script}")
        sleep = named_below(holder.pid, "sleep")
        done, over, failed = threading.Event(), threading.Event(), []

        def trace():
            libc = ctypes.CDLL(None, use_errno=True)
            libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
            if libc.ptrace(PTRACE_SEIZE, sleep, None, None):
                failed.append(os.strerror(ctypes.get_errno()))
            done.set()
            over.wait()
        thread = threading.Thread(target=trace)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)
        done.wait()
        if failed:
            self.skipTest("no ptrace here: " + failed[0])
        return holder

    def test_a_debugger_that_does_not_wait_delays_no_end(self):
        """All are dead, though not reaped: the run is over."""
        holder = self.held_by_a_debugger("read -r _ <go; exit 6")
        with open("go", "w", encoding="utf-8") as go:
            go.write("\n")
        self.assert_ends(holder, 6)
        self.assert_nothing_left("debugged")

    def test_a_guard_that_is_killed_beside_a_debugger_ends_the_run(self):
        holder = self.held_by_a_debugger("exec sleep 1001")
        send(self.guard(holder), signal.SIGKILL)
        self.assert_ends(holder, 71)
        self.assert_nothing_left("debugged")

    def test_a_contained_command_has_the_keys(self):
        """^Z, fg and ^C, as without."""
        shell = Shell(self)
        shell.enter("rlock run --contain job -- sh -c 'echo o''n; sleep 1000'")
        shell.see("on\r\n")
        rlock = shell.rlock()
        sleep = named_below(rlock, "sleep")
        shell.type("\x1a")
        shell.see("Stopped")
        until(lambda: stopped(rlock) and stopped(sleep), "both stopped")
        shell.see(PROMPT)
        shell.enter("fg")
        until(lambda: not stopped(rlock) and not stopped(sleep), "both resumed")
        shell.type("\x03")
        shell.see(PROMPT)
        until(lambda: gone(sleep), "the end")
        shell.assert_usable()

    def test_a_contained_shell_returns_the_terminal(self):
        """A shell with job control of its own; the terminal comes back from it."""
        shell = Shell(self)
        shell.begin_inner("--contain")
        shell.enter("suspend -f")
        shell.see("Stopped")
        shell.see(PROMPT)
        shell.enter("fg")
        shell.see("inner> ")
        shell.end_inner()

    def test_a_refused_namespace_starts_nothing(self):
        """Where the kernel has no namespace for us nothing runs, and no lock is asked for."""
        needs(*STRACE, "true")
        got = self.run_program([*NO_NAMESPACES, RLOCK, "run", "--contain", "refused", "--", "touch", "ran"])
        self.assertEqual(got.returncode, 71)
        self.assertRegex(got.stderr, "^rlock: .*cannot contain the command: .*leave out --contain\n$")
        self.assertFalse(os.path.exists("ran"))
        self.assertEqual(self.server.call("KEYS", "*refused*"), [])


class ContainedByUser(Contained):
    """The same of a user, in a user namespace."""
    before = NOBODY
    option = "--contain=user"

    def setUp(self):
        needs_root(*NOBODY, "true")
        super().setUp()

    def test_contain_keeps_the_ids_of_the_user(self):
        """Users stay who they are, without a right over others."""
        got = self.run_contained("ids", "--", "sh", "-c", "id -u; id -g; kill -0 1 && grep CapEff /proc/self/status")
        self.assertEqual((got.returncode, got.stdout), (0, "65534\n65534\nCapEff:\t0000000000000000\n"), got)

    def test_files_of_others_belong_to_nobody(self):
        """Files of others seem to belong to nobody, and those of root, too."""
        got = self.run_contained("owners", "--", "stat", "-c", "%U %u", "/")
        self.assertEqual(got.stdout, "nobody 65534\n", got)

    def test_a_contained_command_has_the_keys(self):
        self.skipTest("as root")

    test_a_contained_shell_returns_the_terminal = test_a_contained_command_has_the_keys
    test_a_refused_namespace_starts_nothing = test_a_contained_run_reaches_a_local_server = test_a_contained_command_has_the_keys


class WithoutRights(Case):
    """--contain of a user who may not make namespaces: nothing is done in its place."""

    def refused(self, *before):
        needs_root(*NOBODY, "true")
        got = self.run_program([*NOBODY, *before, RLOCK, "run", "--contain", "refused", "--", "touch", "ran"])
        self.assertEqual(got.returncode, 71, got)
        self.assertRegex(got.stderr, "^rlock: .*cannot contain the command: .*CAP_SYS_ADMIN.*leave out --contain\n$")
        self.assertFalse(os.path.exists("ran"))
        self.assertEqual(self.server.call("KEYS", "*refused*"), [])
        return got.stderr

    def test_the_refusal_names_a_user_namespace_that_works(self):
        needs_root(*NOBODY, "unshare", "-Upm", "true")
        self.assertIn("use --contain=user,", self.refused())

    def test_the_refusal_names_no_user_namespace_that_fails(self):
        needs_root(*NOBODY, *NO_NAMESPACES, "true")
        self.assertNotIn("=user", self.refused(*NO_NAMESPACES))


class InChroot(Case):
    def test_a_contained_run_works_in_a_chroot(self):
        """The root folder there is no mount; nothing of the run is mounted outside of it."""
        needs_root("unshare", "-m", "true")
        got = self.run_program(["unshare", "-m", "sh", "-euc", """
            mount --make-rshared /
            mkdir -p root/proc root/tmp root/dev
            for folder in usr bin sbin lib lib64 etc tmp dev; do
              [ ! -e /$folder ] || { mkdir -p root/$folder; mount --rbind /$folder root/$folder; }
            done
            mount -t proc proc root/proc
            touch root/program
            mount --bind "$1" root/program
            wc -l </proc/self/mountinfo
            RLOCK_CONFIG=/dev/null chroot root sh -c 'cd /etc && exec /program run --contain rooted -- sh -c "echo \\$\\$; pwd; ls passwd; ls /"' | tr '\\n' ' '
            echo
            wc -l </proc/self/mountinfo
            """, "sh", RLOCK])
        lines = got.stdout.splitlines()
        self.assertEqual((got.returncode, got.stderr), (0, ""), got)
        self.assertRegex(lines[1], "^2 /etc passwd .* proc program ")
        self.assertEqual(lines[0], lines[2], got)
        self.assert_nothing_left("rooted")
