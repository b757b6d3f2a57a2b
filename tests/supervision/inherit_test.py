"""What the caller handed over is the command's alone. [docs/SUPERVISION.md, "Inherited state"]"""
import fcntl
import os
import select
import signal
import subprocess
import time

from support import PATIENCE, PROBE, RLOCK, STRACE, Case, needs_root, note, send, until

NO_DEV_NULL = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev; exec "$@"', "sh"]
CLOSED = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
PROMISED = 0.05  # seconds until what the command has closed is closed; measured, and printed


def peculiar():
    """As cron and others may start us."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1, signal.SIGRTMIN + 3})


def locked(fd):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


class Inherit(Case):
    def released_within(self, fd, event):
        before = time.monotonic()
        poll = select.poll()
        poll.register(fd, event)
        self.assertTrue(poll.poll(PATIENCE * 1000), "rlock or its guard holds on to it")
        return time.monotonic() - before

    def test_rlock_keeps_open_nothing_that_the_command_closes(self):
        """It closes stdin, stdout and fd 9: writer, reader and flock are free, while rlock goes on."""
        self.close_within()

    def test_rlock_keeps_nothing_open_without_dev_null(self):
        needs_root(*NO_DEV_NULL, "true")
        self.close_within(NO_DEV_NULL)

    def close_within(self, before=()):
        reader, out = os.pipe()
        into, writer = os.pipe()
        lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        theirs = os.open("lock", os.O_RDWR)
        fcntl.flock(theirs, fcntl.LOCK_EX)
        script = "exec 9>&-; exec <&-; echo closed; exec >&-; exec sleep 1000"
        as_nine = ["sh", "-c", f"exec 9<&{theirs} {theirs}<&-; exec \"$@\"", "sh"]
        holder = self.start([*before, *as_nine, RLOCK, "run", "closing", "--", "sh", "-c", script],
                            stdin=into, stdout=out, pass_fds=[theirs])
        for fd in out, into, theirs:
            os.close(fd)
        self.assertEqual(os.read(reader, 7), b"closed\n")
        took = [self.released_within(reader, select.POLLHUP), self.released_within(writer, select.POLLERR)]
        self.assertEqual(os.read(reader, 1), b"")
        before = time.monotonic()
        until(lambda: locked(lock), "the end of a flock", pause=0.001)
        took.append(time.monotonic() - before)
        note(f"reader, writer, flock free after {', '.join(f'{one * 1000:.1f}' for one in took)} ms, promised "
             f"{PROMISED * 1000:.0f} ms")
        self.assertFalse(self.free("closing"))
        send(holder.pid, signal.SIGTERM)
        self.assert_ends(holder, -signal.SIGTERM)
        for fd in reader, writer, lock:
            os.close(fd)

    def test_a_run_with_closed_descriptors_ends_without_dev_null(self):
        """The run ends with its command, as its pipes have no number below 3."""
        needs_root(*NO_DEV_NULL, "true")
        got = self.run_program([*NO_DEV_NULL, *CLOSED, RLOCK, "run", "nowhere", "--", "sh", "-c", "exit 5"])
        self.assertEqual(got.returncode, 5)
        self.assert_nothing_left("nowhere")

    def test_closed_descriptors_that_cannot_be_opened_start_nothing(self):
        refused = [*STRACE, "-P", "/dev/null", "-P", "/", "-e", "inject=openat:error=ENFILE"]
        needs_root(*refused, "true")
        got = self.run_program([*refused, *CLOSED, RLOCK, "run", "nowhere", "--", "touch", "ran"])
        self.assertEqual(got.returncode, 71)
        self.assertFalse(os.path.exists("ran"))

    def test_the_command_inherits_the_signal_settings_of_the_caller(self):
        """Mask and dispositions are the caller's, and the exit code is kept although CHLD is ignored."""
        seen = [subprocess.run([*before, PROBE, "status"], preexec_fn=peculiar, env=self.environment, check=False,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
                for before in ([], [RLOCK, "run", "peculiar", "--"])]
        self.assertIn("SigIgn", seen[0])
        self.assertEqual(seen[0], seen[1])
        process = self.start([RLOCK, "run", "peculiar", "--", "sh", "-c", "exit 23"], preexec_fn=peculiar)
        self.assert_ends(process, 23)

    def test_a_signal_that_is_not_meant_for_the_command_does_not_reach_it(self):
        """One that it sends itself does not come back; what ends an unprepared program does not end rlock."""
        script = "trap 'echo got >got' USR1; kill -USR1 $PPID; trap '' ALRM XCPU PWR 40; echo on; until [ -e go ]; do sleep 0.01; done"
        holder = self.hold("meant", script)
        for number in signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, 40, signal.SIGPIPE:
            send(holder.pid, number)
        open("go", "w", encoding="utf-8").close()
        self.assert_ends(holder, 0)
        self.assertFalse(os.path.exists("got"))
