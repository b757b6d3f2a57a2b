"""Today's rlock (RLOCK) and versions that do not exist yet, at one server: LATER stores more in the same form, NEWER_FORM stores in another."""
import os
import signal
import unittest

import lab
from lab import NAME, harness, mutant

TODAY, LATER, NEWER_FORM = (os.environ[name] for name in ("RLOCK", "LATER", "NEWER_FORM"))


def check_raised_form(server):
    """Its command outlives renewals that another form refuses, and the lock is renewed, and released, once that is over."""
    log = server.folder / "log"
    log.touch()
    run = server.start("run", "-t", "20s", "--event-log", str(log), NAME, "--", "sh", "-c", "touch up; until [ -e go ]; do sleep 0.1; done; exit 7")

    def set_form(number, event):
        before = log.read_text().count(f'"{event}"')
        server.servers[0].call("HSET", f"rlock:{{{NAME}}}:meta", "form", number)
        harness.until(lambda: log.read_text().count(f'"{event}"') > before or run.poll() is not None, f"{event} after form {number}")

    harness.until((server.folder / "up").exists, "a run holds the lock")
    set_form(2, "renew-failed")
    set_form(1, "renewed")
    assert run.poll() is None, f"the run ended with {run.returncode}: {log.read_text()}"
    (server.folder / "go").touch()
    assert run.wait() == 7, f"the run ended with {run.returncode}: {log.read_text()}"


class Versions(unittest.TestCase):
    def setUp(self):
        self.server = lab.Lab(TODAY)
        self.addCleanup(self.server.__exit__)
        self.server.__enter__()

    def by(self, program):
        """The server, for which `program` is rlock from now on."""
        self.server.program = program
        return self.server

    def refuses(self, program, name, *texts):
        """Exit code 78 and a message with these texts; nothing runs."""
        refused = self.by(program).refusal("run", "-n", name, "--", "touch", "ran")
        for text in texts:
            self.assertIn(text, refused)
        self.assertFalse((self.server.folder / "ran").exists())

    def words(self, key, field):
        return self.server.servers[0].call("HGET", f"rlock:{{{NAME}}}:{key}", field)

    def test_what_a_later_version_stored_is_kept(self):
        holder = self.by(LATER).acquire()
        waiter = self.by(LATER).waits()
        owner = self.server.queue()[0]
        today = self.by(TODAY)
        today.is_busy()
        today.rlock("renew", NAME, "--owner", holder["owner"], "-t", "2h")
        self.assertIn("later=1", self.words("who", holder["owner"]))
        today.rlock("release", NAME, "--owner", holder["owner"])
        today.is_held_by(owner)
        self.assertIn("later=1", self.words("who", owner))
        self.assertEqual(self.words("meta", "later"), "new")
        waiter.send_signal(signal.SIGCONT)
        harness.until(lambda: today.status()["state"] == "held", "the waiter claims the grant")

    def test_a_form_that_is_raised_under_a_holder_ends_no_command(self):
        check_raised_form(self.by(TODAY))

    def test_a_success_and_a_token_of_a_later_version_count(self):
        self.by(LATER).runs("--once", "2.7")
        token = self.by(LATER).runs()
        self.by(TODAY).does_not_run("--once", "2.7", code=0)
        token_today = self.by(TODAY).runs()
        self.assertLess(token, token_today)
        self.assertLess(token_today, self.by(LATER).runs())
        self.by(LATER).does_not_run("--once", "2.7", code=0)

    def test_a_rule_that_today_s_version_does_not_know_ends_no_command_and_costs_no_place(self):
        name = "later/job"
        run = self.by(TODAY).start("run", "-t", "1h", name, "--", "sh", "-c", "touch up; until [ -e go ]; do sleep 0.1; done; exit 7")
        harness.until((self.server.folder / "up").exists, "today's run holds the lock")
        waiter = self.by(LATER).start("run", "-t", "1h", "-w", "1h", name, "--", "touch", "waiter")
        waiting = lambda: len(self.by(LATER).json("queue", name)["waiters"]) == 1
        harness.until(waiting, "the later version waits, and has stored its rule")
        self.refuses(TODAY, name, "rlock 1.99 or later", "!later")
        seen = self.by(TODAY).json("status", name)["locks"][0]
        self.assertEqual((seen["state"], seen["needs"]), ("held", {"version": "1.99", "rules": ["!later"]}))
        self.assertTrue(waiting())
        (self.server.folder / "go").touch()
        self.assertEqual(run.wait(), 7)
        self.assertEqual(waiter.wait(), 0)
        self.assertTrue((self.server.folder / "waiter").exists())
        self.refuses(TODAY, name, "rlock 1.99 or later")
        # Steps, too: renewed, broken and released by a version that may not acquire.
        lease = self.by(LATER).json("acquire", "-n", "-t", "1h", name)
        self.by(TODAY).rlock("renew", name, "--owner", lease["owner"])
        self.by(TODAY).rlock("force-unlock", name, "--yes")
        self.by(TODAY).rlock("release", name, "--owner", lease["owner"], code=76)
        self.by(LATER).rlock("run", "-n", name, "--", "true")

    def test_a_later_version_grants_today_s_waiter_a_lock_with_a_rule_in_its_turn(self):
        name = "later/job"
        waiting = lambda count: len(self.by(LATER).json("queue", name)["waiters"]) == count
        lease = self.by(TODAY).json("acquire", "-n", "-t", "1h", name)
        first = self.by(TODAY).start("run", "-t", "1h", "-w", "1h", name, "--", "touch", "first")
        harness.until(lambda: waiting(1), "today's version waits")
        second = self.by(LATER).start("run", "-t", "1h", "-w", "1h", name, "--", "test", "-e", "first")
        harness.until(lambda: waiting(2), "the later version waits, and has stored its rule")
        self.by(TODAY).rlock("release", name, "--owner", lease["owner"])
        self.assertEqual(first.wait(), 0)
        self.assertEqual(second.wait(), 0)

    def test_versions_of_two_forms_exclude_each_other_and_end_no_command(self):
        for holds, comes, forms in ((TODAY, NEWER_FORM, ("an older rlock (form 1; this one knows form 2)", "delete its keys")),
                                   (NEWER_FORM, TODAY, ("a newer rlock (form 2; this one knows form 1)", "upgrade rlock on this host"))):
            with self.subTest(holds=holds):
                self.server.servers[0].call("FLUSHALL")
                lease = self.by(holds).acquire()
                waiter = self.by(holds).start("run", "-t", "1h", "-w", "1h", NAME, "--", "sh", "-c", "exit 7")
                harness.until(lambda: len(self.by(holds).queue()) == 1, "a run waits")
                for _ in range(3):
                    self.refuses(comes, NAME, *forms)
                for words in (("status", NAME), ("release", NAME, "--owner", lease["owner"]), ("force-unlock", NAME, "--yes"), ("status",),
                              ("close", NAME, "--for", "1h"), ("forget", NAME, "--yes"), ("queue", NAME)):
                    self.by(comes).refusal(*words)
                self.by(holds).rlock("renew", NAME, "--owner", lease["owner"])
                self.assertEqual(len(self.server.queue()), 1)
                self.server.rlock("release", NAME, "--owner", lease["owner"])
                self.assertEqual(waiter.wait(), 7)
                self.refuses(comes, NAME, *forms)


class Mutants(unittest.TestCase):
    def test_a_holder_that_takes_another_form_for_a_loss_is_noticed(self):
        with lab.Lab(mutant("other_form_is_a_loss")) as server, self.assertRaises(AssertionError) as noticed:
            check_raised_form(server)
        self.assertIn("the run ended with 76", str(noticed.exception))
