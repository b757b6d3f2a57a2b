"""What the tests of supervision share: a private server, programs to start and to watch, and no trace left behind."""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

sys.path.append(os.path.join(os.path.dirname(__file__), "../harness"))
import harness  # noqa: E402
from harness import PATIENCE, until  # noqa: E402
from redis_server import RedisServer  # noqa: E402

RLOCK = os.environ["RLOCK"]
PATIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patient.toml")
STRACE = ["strace", "-f", "-qq", "-o", "/dev/null"]
PROBE = os.environ["RUN_PROBE"]
FILTERED = os.environ["FILTERED"]
# How often the stress cases are repeated: few times in every run of the tests, more by RLOCK_ROUNDS=200.
ROUNDS = int(os.environ.get("RLOCK_ROUNDS", "10"))
# Whatever this was started by: nohup, or a shell in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in signal.SIGHUP, signal.SIGQUIT:
    signal.signal(ignored, signal.SIG_DFL)


def mutant(name):
    """rlock with the fault of tests/mutants/supervision/NAME.patch."""
    return os.path.join(os.environ["MUTANTS"], name)


def send(pid, number):
    """kill(2), but never everybody."""
    assert pid > 1, f"no process to signal: {pid}"
    os.kill(pid, number)


def read(path):
    """The text of a file; none when there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def stat_of(pid):
    """(state, parent) of a process; None when there is none."""
    fields = read(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    return (fields[0], int(fields[1])) if fields else None


def gone(pid):
    """Dead, also if not reaped yet."""
    stat = stat_of(pid)
    return stat is None or stat[0] in "ZX"


def stopped(pid):
    stat = stat_of(pid)
    return stat is not None and stat[0] == "T"


def stop(pid):
    send(pid, signal.SIGSTOP)
    until(lambda: stopped(pid), f"a stop of {pid}")


def has_read_signals(pid):
    """rlock or its guard, which block all of them."""
    return re.search(r"^ShdPnd:\t0+$", read(f"/proc/{pid}/status"), re.M)


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def name_of(pid):
    return read(f"/proc/{pid}/comm").strip()


def pid_in(path):
    """What a command wrote into a file with `echo $$. >FILE`, as soon as it has."""
    return int(until(lambda: read(path).endswith(".\n") and read(path), f"a pid in {path}").strip(".\n"))


def children_of(parent, name=None):
    """The pids of the living children, or of those of that name."""
    return [pid for pid in processes() if (stat := stat_of(pid)) and stat[0] not in "ZX" and stat[1] == parent
            and name in (None, name_of(pid))]


def child_of(parent, name):
    """The pid of the child of that name, as soon as there is one."""
    return until(lambda: children_of(parent, name), f"a child {name} of {parent}")[0]


def command_of(rlock, name):
    """The pid of the command of that name below rlock's guard, as soon as there is one. Another guard may have been there
    before."""
    def find():
        return [command for guard in children_of(rlock, "lease-guard") for command in children_of(guard, name)]
    return until(find, f"a command {name} below the guard of {rlock}")[0]


def named_below(pid, name):
    """Of all that descends from a process, the one of that name, as soon as there is one."""
    def find():
        parents = {other: stat[1] for other in processes() if (stat := stat_of(other))}
        found = {pid}
        while more := {other for other, parent in parents.items() if parent in found} - found:
            found |= more
        return next((other for other in found - {pid} if name_of(other) == name), None)
    return until(find, f"a process {name} below {pid}")


def bearing(mark):
    """The processes with `mark` in their environment."""
    return [pid for pid in processes() if mark in read(f"/proc/{pid}/environ")]


def needs(*command):
    """Skips what this machine does not grant: it is tried."""
    if why := harness.refusal(*command):
        raise unittest.SkipTest(f"refused here: {' '.join(command)}: {why}")


def needs_root(*command):
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root")
    if command:
        needs(*command)


class Family:
    """A fifo that a command and all that it starts have as their stdout: its end is the end of the last of them."""

    def __init__(self, path):
        os.mkfifo(path)
        os.chmod(path, 0o666)  # a command may be another user's
        # For both directions, so that neither this nor a first read has to wait for a writer.
        both = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._both = both
        self.path = path

    def _read(self, size):
        if not select.select([self._fd], [], [], PATIENCE)[0]:
            raise AssertionError("a command prints nothing and does not end")
        return os.read(self._fd, size)

    def await_start(self, run=None):
        """The command has said `on`; that of `run`, which fails if it ended before."""
        until(lambda: self._readable() or (run and run.poll() is not None), "the command's line")
        if not self._readable():
            raise AssertionError(f"exit code {run.returncode} before the command said that it had begun")
        said = self._read(3)
        assert said == b"on\n", said
        os.close(self._both)
        self._both = -1

    def await_end(self):
        """The moment when the last process let go."""
        said = self._read(64)
        assert said == b"", said
        return time.monotonic()

    def read_now(self):
        """Empty where the last process let go already."""
        return os.read(self._fd, 64) if self._readable() else None

    def _readable(self):
        return bool(select.select([self._fd], [], [], 0)[0])

    def close(self):
        os.close(self._fd)
        if self._both >= 0:
            os.close(self._both)


class Server(RedisServer):
    """A private one that every user may reach."""

    def __init__(self, before=harness.DIES_WITH_US):
        super().__init__("--unixsocketperm", "777", before=before)
        os.chmod(self.folder, 0o755)
        self.start()

    def lease_end(self, name):
        """In seconds since 1970, 0 for a lock that is free."""
        key = f"rlock:{{{name}}}:holders"
        holders = self.answer("ZRANGE", key, "0", "-1", "WITHSCORES") or []
        return int(holders[1]) / 1000 if len(holders) == 2 else 0


class Case(unittest.TestCase):
    """Each file has a server, each test a folder (its working folder) and a mark that its processes bear."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.end)

    def setUp(self):
        self.server.call("FLUSHALL")  # nobody waits for a lease of the test before
        self.folder = tempfile.mkdtemp(prefix="rlock-supervision.")
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder)
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        self.mark = "SUPERVISION_TEST=" + uuid.uuid4().hex
        self.environment = harness.environment(self.server.url, PATIENT)
        self.environment |= dict([("PATH", os.path.dirname(RLOCK) + ":" + os.environ["PATH"]), self.mark.split("=")])
        self.addCleanup(self.sweep)

    def sweep(self):
        """What a failed test left running."""
        for pid in bearing(self.mark):
            if pid > 1 and pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def start(self, argv, **how):
        """A program in the background; killed when the test is over. Without a terminal, as from cron."""
        how = {"stdin": subprocess.DEVNULL, "env": self.environment, "start_new_session": True} | how
        process = subprocess.Popen(argv, **how)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                self.addCleanup(stream.close)
        return process

    def run_program(self, argv, **how):
        how = {"stdin": subprocess.DEVNULL, "env": self.environment, "capture_output": True, "text": True,
               "timeout": PATIENCE, "check": False} | how
        return subprocess.run(argv, **how)

    def family(self):
        family = Family(tempfile.mktemp(prefix="family.", dir=self.folder))
        self.addCleanup(family.close)
        return family

    def hold(self, name, script, *options, before=(), program=RLOCK, **how):
        """rlock (`program`), whose command has said `on`; `family` ends with the last process of the command. The command
        opens it, not we for rlock: one that is stopped at once has not let go of its stdout, and would pass for a survivor."""
        family = self.family()
        argv = [*before, program, "run", *options, name, "--", "sh", "-c", f"exec >'{family.path}'; {script}"]
        holder = self.start(argv, stdout=subprocess.DEVNULL, **how)
        holder.family = family
        family.await_start(holder)
        return holder

    def stop_past_its_lease(self, holder):
        """rlock is stopped, and its guard ends the command."""
        send(holder.pid, signal.SIGSTOP)
        holder.family.await_end()
        send(holder.pid, signal.SIGCONT)
        self.assert_ends(holder, 76)

    def free(self, name):
        return self.run_program([RLOCK, "status", "-q", name]).returncode == 1

    def runs(self, name):
        """The history, the newest run first."""
        return json.loads(self.run_program([RLOCK, "history", "--json", name]).stdout)["runs"]

    def last_end(self, name):
        """How the last run ended, by the history."""
        return self.runs(name)[0]["how"]

    def assert_ends(self, process, code):
        self.assertEqual(process.wait(PATIENCE), code)

    def assert_nothing_left(self, name):
        """Neither a holder nor a waiter; what remembers the lock has an end."""
        self.assertTrue(self.free(name), f"{name} is still held")
        keys = self.server.call("KEYS", f"rlock:{{{name}}}:*")
        # A run or a waiter that died is found there as long as the history.
        died = {f"rlock:{{{name}}}:holders", f"rlock:{{{name}}}:queue"} & set(keys)
        kept = ("meta", "history", "released", "who", *(("holders", "limits", "queue", "alive") if died else ()))
        for key in keys:
            left = self.server.call("PTTL", key)
            self.assertNotEqual(left, -1, f"{key} lives for ever")
            if key.rpartition(":")[2] not in kept:
                self.assertLessEqual(left, 60000, key)


def note(text):
    """A measured number, for the log."""
    print("# " + text, file=sys.stderr, flush=True)
