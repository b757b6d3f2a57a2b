"""A signal to rlock reaches what it would reach without rlock. [docs/SUPERVISION.md, "Signals"]"""
import os
import shutil
import signal
import subprocess
import sys

from support import RLOCK, Case, child_of, needs_root, read, send, until

INIT = ["unshare", "-fp", "--kill-child", "--mount-proc"]
ALL = {"command", "worker"}
# A worker waits for the CONT that reaches all after a TERM to the command.
PROGRAMS = {
    # Command and worker write down each signal that they get. After an INT or QUIT they exit, the command when its worker has.
    "recorder": """
import os, signal
who, over = "command", False
def record(number, frame):
    global over
    os.write(got, f"{who} {number}\\n".encode())
    over = over or number in (signal.SIGINT, signal.SIGQUIT)
got = os.open("got", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
numbers = {*range(1, signal.NSIG)} - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGCHLD, 32, 33}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
for number in numbers:
    signal.signal(number, record)
worker = os.fork()
if worker == 0:
    who = "worker"
    os.write(1, b"on\\n")
signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
while not over:
    signal.pause()
if worker:
    os.waitpid(worker, 0)
""",
    "worker": """trap 'over=1' CONT; echo on >&9; until [ $over ]; do sleep 0.05; done; echo worker complete""",
    "asked": """trap 'echo worker asked >>log; exit' TERM; mkdir first 2>/dev/null && [ $1 = 2 ] || echo on >&9; while :; do sleep 0.05; done""",
    "script": """trap 'echo script asked >>log; exit 7' TERM; sh worker >>log; echo next >>log""",
    "pool": """
import multiprocessing, signal, sys
def begin(barrier):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    barrier.wait()
def job(number):
    signal.sigwait({signal.SIGCONT})
    return "complete"
def ask(number, frame):
    global code
    code = 7
if __name__ == "__main__":
    code = 0
    signal.signal(signal.SIGTERM, ask)
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(3)
    pool = spawn.Pool(2, begin, [barrier])
    barrier.wait()
    print("on", flush=True)
    print(*pool.map(job, range(2), 1), sep="\\n", file=open("log", "w"))
    sys.exit(code)
""",
    "couple": """[ $1 = 2 ] || echo on >&9; : >$1; until [ -e 1 ] && [ -e 2 ]; do sleep 0.05; done; echo both run >>log""",
}


class Signals(Case):
    def setUp(self):
        super().setUp()
        for name, text in PROGRAMS.items():
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)

    def record(self, number, *options, before="", how=send, code=0):
        """Who got the signal, each of them once. An INT, which both get, ends them."""
        holder = self.hold("got", f"exec {before} {sys.executable} -B recorder", *options, stderr=subprocess.DEVNULL)
        how(holder.pid, number)
        until(lambda: f"command {number}\n" in read("got"), f"signal {number}")
        if number not in (signal.SIGINT, signal.SIGQUIT):
            send(holder.pid, signal.SIGINT)
        self.assert_ends(holder, code)
        self.assert_nothing_left("got")
        got = [line.split() for line in read("got").splitlines()]
        os.remove("got")
        names = [who for who, other in got if int(other) == number]
        self.assertEqual(len(names), len(set(names)), got)
        self.assertEqual({who for who, _ in got}, ALL, got)
        return set(names)

    def test_the_command_alone_gets_what_no_key_sends(self):
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 1:
            with self.subTest(number=number):
                self.assertEqual(self.record(number), {"command"})

    def test_all_get_the_signal_of_a_key(self):
        for number in signal.SIGINT, signal.SIGQUIT:
            with self.subTest(number=number):
                self.assertEqual(self.record(number), ALL)

    def test_all_descendants_get_each_signal_with_wait_descendants(self):
        for number in signal.SIGTERM, signal.SIGUSR1:
            with self.subTest(number=number):
                self.assertEqual(self.record(number, "--wait-descendants"), ALL)

    def test_a_nested_run_passes_on_what_its_outer_run_did_not(self):
        nested = f"{RLOCK} run inner --"
        for number, options, got in ((signal.SIGTERM, [], {"command"}), (signal.SIGUSR1, [], {"command"}), (signal.SIGINT, [], ALL),
                                     (signal.SIGTERM, ["--wait-descendants"], ALL)):
            with self.subTest(number=number, options=options):
                self.assertEqual(self.record(number, *options, before=nested), got)

    def test_what_the_outer_run_decides_reaches_all_in_a_nested_run_once(self):
        nested = f"{RLOCK} run inner --"
        limit = ["--max-run", "3s", "-k", "10m"]
        self.assertEqual(self.record(signal.SIGTERM, *limit, before=nested, how=lambda *_: None, code=124), ALL)

    def ends(self, script, code, log, *options, **how):
        holder = self.hold("workers", "exec 9>&1; " + script, *options, **how)
        send(child_of(holder.pid, "rlock") if "before" in how else holder.pid, signal.SIGTERM)
        self.assert_ends(holder, code)
        holder.family.await_end()
        self.assert_nothing_left("workers")
        self.assertEqual(read("log"), log)
        if log:
            os.remove("log")

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(f"not installed: {program}")

    def test_a_script_that_handles_term_waits_for_its_child(self):
        for shell in "sh", "dash", "bash":
            with self.subTest(shell=shell):
                self.needs(shell)
                self.ends(f"exec {shell} script", 7, "worker complete\nscript asked\n")

    def test_a_script_that_handles_term_completes_below_pid_1(self):
        needs_root(*INIT, "true")
        self.ends("exec sh script", 7, "worker complete\nscript asked\n", before=INIT)

    def test_the_child_of_a_script_that_dies_is_asked_to_stop(self):
        for shell in "sh", "dash", "bash":
            with self.subTest(shell=shell):
                self.needs(shell)
                self.ends(f"exec {shell} -c 'sh asked 1; echo next >>log'", -signal.SIGTERM, "worker asked\n")

    def test_a_pipeline_is_complete(self):
        self.ends("trap 'exit 7' TERM; sh worker | cat >>log", 7, "worker complete\n")

    def test_make_stops_its_own_jobs(self):
        self.needs("make")
        with open("Makefile", "w", encoding="utf-8") as file:
            file.write("all: one two\none two:\n\t@sh asked 2 >$@\n")
        self.ends("exec make -s -j 2 2>/dev/null", -signal.SIGTERM, "worker asked\n" * 2)
        self.assertFalse(os.path.exists("one") or os.path.exists("two"))

    def test_xargs_starts_more_jobs_after_usr1(self):
        """xargs misses a signal that comes between its look at the number of jobs and its wait for one of them."""
        holder = self.hold("workers", "exec 9>&1; echo 1 2 >items; exec xargs -a items -n 1 -P 1 sh couple")
        until(lambda: send(holder.pid, signal.SIGUSR1) or os.path.exists("2"), "the second job")
        self.assert_ends(holder, 0)
        self.assert_nothing_left("workers")
        self.assertEqual(read("log"), "both run\n" * 2)

    def test_a_python_pool_completes_what_it_has_begun(self):
        self.ends(f"exec {sys.executable} -B pool", 7, "complete\n" * 2)
