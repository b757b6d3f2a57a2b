"""The command's own end passes through exactly, also where rlock is PID 1. [docs/SUPERVISION.md, "PID 1 and namespaces"]"""
import os
import resource
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

from support import PATIENCE, PROBE, RLOCK, Case, child_of, needs_root, send

# These leave a process that minds none of them as it was.
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
# 32 and 33 belong to the C library.
TERMINATING = [number for number in range(1, signal.SIGRTMAX + 1)
               if number not in HARMLESS | STOPPING and number not in (32, 33)]
FAULTS = {signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS}
INIT = ["unshare", "-fp", "--kill-child", "--mount-proc"]


class Exits(Case):
    @classmethod
    def setUpClass(cls):
        """rlock may leave a core."""
        super().setUpClass()
        limits = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
        cls.addClassCleanup(resource.setrlimit, resource.RLIMIT_CORE, limits)

    def several(self, check, values):
        """`check` returns what is wrong with a value, or None."""
        with ThreadPoolExecutor(4) as pool:
            self.assertEqual([wrong for wrong in pool.map(check, values) if wrong], [])

    def run_command(self, value, command, before=()):
        return self.run_program([*before, RLOCK, "run", f"exits-{value}", "--", *command])

    def test_pid_1_passes_on_every_exit_code(self):
        """All 256 exit codes, rlock being PID 1."""
        needs_root(*INIT, "true")

        def check(code):
            got = self.run_command(code, ["sh", "-c", f"exit {code}"], INIT)
            return None if (got.returncode, got.stderr) == (code, "") else f"{code}: {got}"
        self.several(check, range(256))

    def test_rlock_dies_by_the_signal_of_its_command(self):
        """rlock dies by the same signal, without a core of its own."""
        def check(number):
            process = subprocess.Popen([RLOCK, "run", f"exits-{number}", "--", PROBE, "die", str(number)],
                                       stdin=subprocess.DEVNULL, env=self.environment)
            _, status = os.waitpid(process.pid, 0)
            process.returncode = status
            right = os.WIFSIGNALED(status) and os.WTERMSIG(status) == number and not os.WCOREDUMP(status)
            return None if right else f"signal {number}: status {status:#x}"
        self.several(check, TERMINATING)
        self.assertEqual(os.listdir("."), [])

    def test_pid_1_exits_with_128_and_the_signal(self):
        """PID 1 cannot die by a signal: it exits with 128 + N."""
        needs_root(*INIT, "true")

        def check(number):
            got = self.run_command(number, [PROBE, "die", str(number)], INIT)
            return None if got.returncode == 128 + number else f"signal {number}: {got}"
        self.several(check, TERMINATING)

    def test_pid_1_forwards_every_terminating_signal(self):
        """TERM → 143, and so on for all that can be caught. Faults are for bugs of our own; rlock ignores PIPE and XFSZ."""
        needs_root(*INIT, "true")

        def check(number):
            holder = self.hold(f"exits-{number}", "echo on; exec sleep 1000", before=INIT, stderr=subprocess.PIPE)
            send(child_of(holder.pid, "rlock"), number)
            code = holder.wait(PATIENCE)
            holder.family.await_end()
            return None if code == 128 + number else f"signal {number}: {code}"
        not_passed_on = FAULTS | {signal.SIGKILL, signal.SIGPIPE, signal.SIGXFSZ}
        self.several(check, [n for n in TERMINATING if n not in not_passed_on])

    def test_pid_1_reaps_strangers(self):
        """Whatever is orphaned in the namespace is reaped, and the command's own code stays."""
        needs_root(*INIT, "true")
        orphans = "i=0; while [ $i -lt 50 ]; do (sh -c 'exit 3' &); i=$((i + 1)); done; "
        look = "until [ $(ps -e -o ppid= | grep -cw 1) -le 2 ]; do sleep 0.02; done; exit 9"
        got = self.run_command("orphans", ["timeout", "60", "sh", "-c", orphans + look], INIT)
        self.assertEqual(got.returncode, 9, got)
