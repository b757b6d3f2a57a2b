"""Children that rlock did not start: the caller's jobs from before `exec rlock`, and the command's orphans."""
import os
import signal

from support import RLOCK, Case, child_of, gone, pid_in, processes, read, send, stat_of, until

# An older job that makes an orphan on request.
OLDER = "(read -r _ <go; sh -c 'sleep 1000 & echo $!. >orphan'; exec sleep 1000) & echo $!. >older; exec "
REQUESTING = "echo >go; until [ -s orphan ]; do sleep 0.01; done; echo on; exec sleep 1000"


class Adopted(Case):
    def setUp(self):
        super().setUp()
        os.mkfifo("go")

    def below_older(self, *words):
        return self.start(["sh", "-c", OLDER + '"$@"', "sh", RLOCK, "run", *words])

    def assert_older_jobs_live(self):
        for file in "older", "orphan":
            pid = pid_in(file)
            self.assertFalse(gone(pid), file)
            send(pid, signal.SIGKILL)

    def test_older_jobs_are_not_killed(self):
        """--max-run ends the command, not a job of the caller's, nor that one's orphans."""
        holder = self.below_older("--max-run", "5", "-k", "50ms", "older", "--", "sh", "-c", REQUESTING)
        self.assert_ends(holder, 124)
        self.assert_older_jobs_live()

    def test_older_jobs_are_not_signalled(self):
        """TERM is for the command."""
        holder = self.below_older("older", "--", "sh", "-c", REQUESTING)
        pid_in("orphan")
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        self.assert_older_jobs_live()

    def test_older_jobs_are_not_waited_for(self):
        """--wait-descendants means the command's."""
        holder = self.below_older("--wait-descendants", "older", "--", "sh", "-c", REQUESTING.replace("1000", "0.3"))
        self.assert_ends(holder, 0)
        self.assert_older_jobs_live()

    def test_older_jobs_survive_the_guard(self):
        """However many there are: rlock ends what the guard leaves to it, but no job. The orphans that jobs leave become its
        own, and look like the command's."""
        count = int(os.environ.get("RLOCK_STRANGERS", "151"))
        jobs = f"i=0; while [ $i -lt {count} ]; do sleep 1000 & i=$((i + 1)); done; jobs -p >jobs; "
        holder = self.start(["sh", "-c", jobs + OLDER + '"$@"', "sh", RLOCK, "run", "older", "--", "sh", "-c",
                             "sleep 1000 & echo $!. >own; " + REQUESTING])
        pid_in("orphan")
        older = [int(line) for line in read("jobs").split()]
        self.assertEqual(len(older), count)
        own = pid_in("own")
        send(stat_of(stat_of(own)[1])[1], signal.SIGKILL)
        self.assert_ends(holder, 71)
        self.assertTrue(gone(own))
        self.assertEqual([pid for pid in older if gone(pid)], [])
        self.assertTrue(gone(pid_in("orphan")))
        self.assertFalse(gone(pid_in("older")))

    def test_the_group_of_an_orphan_survives_the_guard(self):
        """`exec setsid rlock …`: the group of the job's orphan is that of the calling script, and rlock is in another session."""
        caller = self.start(["sh", "-c", f'({OLDER}setsid "$@"); echo $?. >code', "sh", RLOCK, "run", "older", "--", "sh", "-c",
                             "setsid sh -c 'sleep 1000 & echo $!. >own; exec sleep 1000' & " + REQUESTING])
        orphan, own = pid_in("orphan"), pid_in("own")
        send(child_of(child_of(caller.pid, "rlock"), "lease-guard"), signal.SIGKILL)
        self.assert_ends(caller, 0)
        self.assertEqual(read("code"), "71.\n")
        self.assertTrue(gone(orphan))
        self.assertTrue(gone(own))
        self.assertFalse(gone(pid_in("older")))

    def test_a_kill_of_rlock_spares_older_jobs(self):
        """Killing the process that the caller started ends the command, and no older job."""
        holder = self.below_older("older", "--", "sh", "-c", "sleep 1000 & echo $!. >own; " + REQUESTING)
        pid_in("orphan")
        own = pid_in("own")
        send(holder.pid, signal.SIGKILL)
        until(lambda: gone(own), "the end of the command")
        self.assert_older_jobs_live()

    def test_older_jobs_may_signal(self):
        """`(sleep 60; kill $$) & exec rlock …`: unlike the command's own `kill 0` it is passed on."""
        script = '(read -r _ <go; kill -TERM $$) & exec "$@"'
        command = ["sh", "-c", "echo >go; exec sleep 1000"]
        holder = self.start(["sh", "-c", script, "sh", RLOCK, "run", "older", "--", *command])
        self.assert_ends(holder, -signal.SIGTERM)

    def test_orphans_are_reaped_while_another_descendant_lives(self):
        """Of those that --wait-descendants waits for the dead ones do not fill the table of processes."""
        service = "i=0; while [ $i -lt 10 ]; do (sleep 0.01 &); i=$((i + 1)); done; : >made; exec sleep 1000"
        holder = self.start([RLOCK, "run", "--wait-descendants", "orphans", "--", "sh", "-c",
                             f"setsid -f sh -c '{service}'; exit 5"])

        guard = child_of(holder.pid, "lease-guard")
        until(lambda: os.path.exists("made"), "the orphans")
        until(lambda: [stat[0] for stat in map(stat_of, processes()) if stat and stat[1] == guard] == ["S"], "the service alone")
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, 5)
