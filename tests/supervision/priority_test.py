"""On a busy host the renewal thread goes first, and takes no more of it than it needs."""
import os
import time

from support import Case, Server, children_of, harness, needs, needs_root, note, read, until

REAL_TIME = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK


def threads_of(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def scheduler(thread):
    try:
        return os.sched_getscheduler(thread)
    except ProcessLookupError:
        return None


def renewal_thread(rlock):
    """As soon as it has its priority."""
    def find():
        return [thread for thread in threads_of(rlock) if thread != rlock and scheduler(thread) == REAL_TIME]
    return until(find, f"a thread of real time in {rlock}")[0]


def rounds_of(rlock, thread):
    """How often it has waited, or was sent away."""
    rows = dict(line.split(":", 1) for line in read(f"/proc/{rlock}/task/{thread}/status").splitlines())
    return int(rows["voluntary_ctxt_switches"]) + int(rows["nonvoluntary_ctxt_switches"])


class Priority(Case):
    def setUp(self):
        super().setUp()
        needs_root("chrt", "-f", "1", "true")

    def test_the_renewal_thread_goes_first(self):
        holder = self.hold("first", "echo on; sleep 1000", "-t", "3", before=["nice", "-n", "19"])
        thread = renewal_thread(holder.pid)
        self.assertEqual(os.sched_getparam(thread).sched_priority, os.sched_get_priority_min(os.SCHED_FIFO))
        self.assertEqual([scheduler(other) for other in threads_of(holder.pid) if other != thread], [os.SCHED_OTHER])
        guard, = children_of(holder.pid, "lease-guard")
        self.assertEqual([scheduler(command) for command in children_of(guard)], [os.SCHED_OTHER])

    def rests(self, name, *options):
        """While the server refuses connections: at most 1,000 rounds a minute, of 100 that come close together at first."""
        holder = self.hold(name, "echo on; sleep 1000", *options)
        thread = renewal_thread(holder.pid)
        self.server.kill()
        self.addCleanup(self.server.start)
        self.addCleanup(holder.terminate)
        before, begin = rounds_of(holder.pid, thread), time.monotonic()
        until(lambda: rounds_of(holder.pid, thread) >= before + 20, "attempts")
        time.sleep(6)
        rounds, seconds = rounds_of(holder.pid, thread) - before, time.monotonic() - begin
        note(f"{name}: {rounds} rounds in {seconds:.1f} s")
        self.assertLessEqual(rounds, 100 + 1000 / 60 * seconds)

    def test_the_thread_rests_while_the_server_refuses(self):
        self.rests("refused", "-t", "60")

    def test_the_thread_rests_when_the_lease_is_over(self):
        self.rests("over", "-t", "1", "--on-lost", "ignore")


class Unprivileged(Case):
    def test_a_run_without_priority_renews_its_lease(self):
        """Whom the kernel grants no priority runs as before."""
        needs_root("setpriv", "--reuid", "65534", "--clear-groups", "true")
        holder = self.hold("refused", "echo on; sleep 1000", "-t", "1",
                           before=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
        until(lambda: len(threads_of(holder.pid)) == 2, "the renewal thread")
        lease = self.server.lease_end("refused")
        until(lambda: self.server.lease_end("refused") > lease + 1, "renewals")
        self.assertEqual({scheduler(thread) for thread in threads_of(holder.pid)}, {os.SCHED_OTHER})


class Busy(Case):
    @classmethod
    def setUpClass(cls):
        """A server that the busy processes do not keep waiting: at this ttl its lateness alone would lose the lease."""
        needs_root("chrt", "-f", "1", "true")
        cls.server = Server([*harness.DIES_WITH_US, "chrt", "-f", "1"])
        cls.addClassCleanup(cls.server.end)

    def test_a_healthy_run_keeps_its_lease(self):
        """At nice 10 and 19, on a processor that twenty others want."""
        processor = str(min(os.sched_getaffinity(0)))
        needs("taskset", "-c", processor, "true")
        holders = []
        for number, (nice, ttl) in enumerate((("10", "1"), ("19", "2")) * 2):
            holders.append(self.hold(f"busy-{number}", "echo on; exec sleep 1000", "-t", ttl, start_new_session=False,
                                     before=["taskset", "-c", processor, "nice", "-n", nice]))
        for holder in holders:
            until(lambda holder=holder: len(threads_of(holder.pid)) == 2, "the renewal thread")
        time.sleep(0.5)  # with its priority, where it gets one
        busy = [self.start(["taskset", "-c", processor, "sh", "-c", "while :; do :; done"], start_new_session=False) for _ in range(20)]
        time.sleep(8)
        for process in busy:
            process.kill()
        self.assertEqual([holder.poll() for holder in holders], [None] * len(holders))
