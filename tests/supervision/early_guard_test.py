"""The guard that is forked while the acquire is on its way. [docs/SUPERVISION.md, "Order of a run"]"""
import json
import os
import signal
import subprocess

from support import RLOCK, STRACE, Case, child_of, children_of, gone, mutant, needs, needs_root, read, send, stop, until

# What the command sees, and what the server has meanwhile.
SHOW = 'echo "$RLOCK_OWNER $RLOCK_TOKEN"; rlock status --json "$RLOCK_NAME"'


def sockets(pid):
    links = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass  # closed just now
    return {link for link in links if link.startswith("socket:")}


class EarlyGuard(Case):
    def pause_server(self):
        self.server.pause()
        self.addCleanup(self.server.go_on)

    def asking(self, *words, program=RLOCK, **how):
        """rlock with its guard, at a server that does not answer before go_on()."""
        self.pause_server()
        argv = [program, "run", "--connect-timeout", "60s", *words]
        asking = self.start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
        asking.guard = until(lambda: children_of(asking.pid), "a guard")[0]
        until(lambda: len(sockets(asking.guard)) == 1, "a guard that holds one socket, to rlock")
        return asking

    def waiting(self, name, script, program=RLOCK):
        """rlock in the queue behind a holder."""
        holder = self.hold(name, "echo on; read -r _", stdin=subprocess.PIPE)
        waiting = self.asking(name, "--event-log", "waited", "--", "sh", "-c", script, program=program)
        self.server.go_on()
        until(lambda: "enqueued" in read("waited"), "a waiter that knows its place")
        return holder, waiting

    def assert_holder(self, owner_and_token, status):
        holder = json.loads(status)["locks"][0]["holders"][0]
        self.assertEqual(owner_and_token, f"{holder['owner']} {holder['token']}")

    def test_it_has_its_name_before_the_command_starts(self):
        """Else a server that the command starts at once could not ask to outlive the run. No socket asks for strangers."""
        needs(*STRACE, "true")
        traced = self.run_program(["strace", "-f", "-qq", "-o", "trace", "-e", "trace=bind,prctl,execve", RLOCK, "run", "early",
                                   "--", "/bin/true"])
        self.assertEqual(traced.returncode, 0, traced)
        trace = read("trace")
        self.assertIn('"lease-guard"', trace)
        self.assertLess(trace.index('"lease-guard"'), trace.index('execve("/bin/true"'))
        self.assertNotIn("bind(", trace)

    def test_the_early_guard_starts_the_command_of_the_grant(self):
        asking = self.asking("early", "--", "sh", "-c", f"{SHOW}; echo $PPID")
        self.server.go_on()
        said = asking.communicate()[0].splitlines()
        self.assert_ends(asking, 0)
        self.assert_holder(*said[:2])
        self.assertEqual(int(said[2]), asking.guard)
        self.assert_nothing_left("early")

    def test_it_holds_neither_connection_nor_more(self):
        asking = self.asking("early", "--", "true")
        self.assertEqual(sockets(asking.guard) & sockets(asking.pid), set())
        self.server.go_on()
        self.assert_ends(asking, 0)

    def test_it_ends_with_rlock(self):
        for number, said in (signal.SIGKILL, "^$"), (signal.SIGTERM, "stopped by TERM .*; the command was not started\n$"):
            with self.subTest(number=number):
                asking = self.asking("early", "--", "touch", "ran")
                send(asking.pid, number)
                until(lambda: gone(asking.guard), "the end of the guard")
                self.server.go_on()
                self.assert_ends(asking, -number)
                self.assertRegex(asking.stderr.read(), said)
                self.assertFalse(os.path.exists("ran"))
                self.server.call("FLUSHALL")

    def test_a_stopped_guard_ends_with_rlock(self):
        asking = self.asking("early", "--", "true")
        stop(asking.guard)
        send(asking.pid, signal.SIGKILL)
        until(lambda: gone(asking.guard), "the end of the guard")

    def test_a_stopped_guard_is_resumed(self):
        asking = self.asking("early", "--", "sh", "-c", SHOW)
        stop(asking.guard)
        self.server.go_on()
        self.assert_holder(*asking.communicate()[0].splitlines())
        self.assert_ends(asking, 0)

    def test_a_killed_guard_is_replaced(self):
        asking = self.asking("early", "--", "sh", "-c", SHOW)
        send(asking.guard, signal.SIGKILL)
        until(lambda: gone(asking.guard), "the end of the guard")
        self.server.go_on()
        said, complaint = asking.communicate()
        self.assert_holder(*said.splitlines())
        self.assert_ends(asking, 0)
        self.assertEqual(complaint, "")

    def test_an_environment_without_room_gets_a_new_guard(self):
        """More than fits into the message to the guard: another one is forked that has it all."""
        one = self.run_program([RLOCK, "run", "outer", "--", "sh", "-c", 'echo "$RLOCK_HELD"']).stdout.strip()
        held = ";".join(one.replace("outer", f"outer{number}") for number in range(100))
        asking = self.asking("early", "--", "sh", "-c", f'{SHOW}; echo "$RLOCK_HELD"',
                             env=self.environment | {"RLOCK_HELD": held})
        self.server.go_on()
        said = asking.communicate()[0].splitlines()
        self.assert_ends(asking, 0)
        self.assert_holder(*said[:2])
        self.assertEqual(said[2].count(";"), 100)
        self.assertTrue(gone(asking.guard))

    def test_a_refused_lock_starts_nothing(self):
        holder = self.hold("busy", "echo on; read -r _", stdin=subprocess.PIPE)
        asking = self.asking("-n", "busy", "--", "touch", "ran")
        self.server.go_on()
        self.assert_ends(asking, 75)
        self.assertTrue(gone(asking.guard))
        self.assertFalse(os.path.exists("ran"))
        holder.communicate(b"\n")
        self.assert_ends(holder, 0)

    def leaves_no_guard(self, program):
        """rlock in the queue: whether it is alone there; and then runs its command all the same."""
        holder, waiting = self.waiting("queue", SHOW, program)
        alone = not children_of(waiting.pid)
        holder.communicate(b"\n")
        self.assert_holder(*waiting.communicate()[0].splitlines())
        self.assert_ends(waiting, 0)
        self.assert_ends(holder, 0)
        self.assert_nothing_left("queue")
        return alone

    def test_a_waiter_has_no_guard(self):
        self.assertTrue(self.leaves_no_guard(RLOCK))

    def test_a_guard_next_to_a_waiter_is_noticed(self):
        self.assertFalse(self.leaves_no_guard(mutant("guard_waits_on")))

    def test_a_guard_that_is_pid_1_of_a_namespace_is_kept(self):
        """After `unshare -p` a guard that was given up would leave a namespace without PID 1, where none can follow."""
        needs_root("unshare", "-p", "true")
        holder = self.hold("space", "echo on; read -r _", stdin=subprocess.PIPE)
        waiting = self.start(["unshare", "-p", RLOCK, "run", "space", "--", "sh", "-c", "exit 5"])
        until(lambda: self.server.call("ZCARD", "rlock:{space}:queue") == 1, "a waiter")
        holder.communicate(b"\n")
        self.assert_ends(waiting, 5)

    def test_it_dies_with_what_it_has_not_started(self):
        """Its lease is that of the grant: a stopped rlock's command ends before that does."""
        holder, waiting = self.waiting("lease", "touch on; exec sleep 1000")
        waiting.kill()
        waiting.wait()
        holder.communicate(b"\n")
        self.assert_ends(holder, 0)
        after = self.run_program([RLOCK, "run", "lease", "--", "true"])
        self.assertEqual(after.returncode, 0, after)
        self.assertFalse(os.path.exists("on"))
        asking = self.asking("-t", "6", "--no-renew", "late", "--", "sh", "-c", "touch on; exec sleep 1000")
        self.server.go_on()
        until(lambda: os.path.exists("on"), "the command")
        send(asking.pid, signal.SIGSTOP)
        command = child_of(asking.guard, "sleep")
        until(lambda: gone(command), "the end of the command")
        self.assertNotEqual(read(f"/proc/{asking.pid}/stat"), "")
        send(asking.pid, signal.SIGCONT)
        self.assert_ends(asking, 76)
