"""Situations at a server. `make` brings one about with the rlock of a release, and is never run again for it; `check` sees what today's rlock
makes of what that one left: no second holder, no lost place, no forgotten success. By then all its processes are gone."""
import signal

from lab import NAME, harness

HOUR = 3600


class Situation:
    servers = 1
    shows = True  # status, queue and history know it

    def make(self, lab):
        """Returns what `check` has to know, if anything: it is `made` in the state."""
        raise NotImplementedError

    def check(self, lab, state):
        raise NotImplementedError


def holder_of(state, number=0):
    return state["shown"]["status"]["holders"][number]


def owners_of(state):
    return [waiter["owner"] for waiter in state["shown"]["queue"]]


def keeps(lab, lease):
    """Its holder renews and releases it, and is the only holder until then."""
    lab.is_busy()
    lab.rlock("renew", NAME, "--owner", lease["owner"])
    lab.is_busy()
    lab.rlock("release", NAME, "--owner", lease["owner"])


def granted_in_order(lab, owners):
    """The lock is free for the first of them, and for others after the last. None of them is there to claim it."""
    for owner in owners:
        lab.is_held_by(owner)
        lab.is_busy()
        lab.passes(3)
        # Finds that nobody claimed the grant.
        if owner != owners[-1]:
            lab.does_not_run()
    lab.runs()


class Held(Situation):
    """A run holds the lock."""

    def make(self, lab):
        lab.holds("--reason", "release 7")

    def check(self, lab, state):
        lab.is_busy()
        lab.passes(HOUR - 60)
        lab.is_busy()
        lab.passes(120)
        lab.runs_after(holder_of(state)["token"])


class Steps(Situation):
    """A pipeline holds the lock across its steps."""

    def make(self, lab):
        lab.acquire()

    def check(self, lab, state):
        keeps(lab, holder_of(state))
        lab.runs_after(holder_of(state)["token"])


class Lapsed(Situation):
    """A lease has ended, and nobody has asked since."""

    def make(self, lab):
        lease = lab.acquire()
        lab.passes(HOUR + 1)
        return {"lease": lease}

    def check(self, lab, state):
        lease = state["made"]["lease"]
        lab.is_held_by()
        lab.rlock("renew", NAME, "--owner", lease["owner"], "--token", str(lease["token"]), "-t", "1h")
        keeps(lab, lease)


class Queued(Situation):
    """Three runs wait for a pipeline."""

    def make(self, lab):
        lab.acquire()
        for _ in range(3):
            lab.waits()

    def check(self, lab, state):
        lab.does_not_run("--max-queue", "3")
        lab.rlock("release", NAME, "--owner", holder_of(state)["owner"])
        granted_in_order(lab, owners_of(state))


class Granted(Situation):
    """A waiter was granted the lock, and has not claimed it."""

    def make(self, lab):
        lease = lab.acquire()
        lab.waits()
        lab.rlock("release", NAME, "--owner", lease["owner"])

    def check(self, lab, state):
        granted_in_order(lab, [holder_of(state)["owner"]])


class Urgent(Situation):
    """An urgent waiter is before two others, the last of which an operator has moved to the head."""

    def make(self, lab):
        lab.acquire()
        lab.waits()
        lab.waits("--urgent")
        lab.waits()
        lab.rlock("queue", NAME, "--first", "3")

    check = Queued.check


class Closed(Situation):
    """An operator closed the lock."""

    def make(self, lab):
        lab.rlock("close", NAME, "--for", "2h", "--reason", "maintenance")

    def check(self, lab, state):
        lab.is_busy()
        lab.runs("--while-closed")
        lab.rlock("open", NAME)
        lab.runs()


class ClosedHeld(Situation):
    """A lock was closed under its holder; of two waiters the later one may pass."""

    def make(self, lab):
        lab.acquire()
        lab.waits()
        lab.rlock("close", NAME, "--for", "2h")
        lab.waits("--while-closed")

    def check(self, lab, state):
        passes, waits = owners_of(state)
        lab.rlock("release", NAME, "--owner", holder_of(state)["owner"])
        lab.is_held_by(passes)
        lab.passes(3)
        lab.is_busy()
        lab.rlock("queue", NAME, "--remove", passes)
        lab.rlock("open", NAME)
        granted_in_order(lab, [waits])


class Done(Situation):
    """A run with --once succeeded."""

    def make(self, lab):
        lab.runs("--once", "2.7")

    def check(self, lab, state):
        lab.does_not_run("--once", "2.7", code=0)
        lab.runs("--once", "2.8")
        lab.rlock("forget", NAME, "--yes", "--once", "2.7")
        lab.runs("--once", "2.7")
        lab.does_not_run("--once", "2.8", code=0)


class DonePeriod(Situation):
    """A run with --once-per succeeded."""

    once = ("--once-per", "day")
    over_after = 24 * HOUR

    def make(self, lab):
        lab.runs(*self.once)

    def check(self, lab, state):
        lab.does_not_run(*self.once, code=0)
        lab.passes(self.over_after)
        lab.runs(*self.once)


class DoneWithin(DonePeriod):
    """A run with --once-within succeeded."""

    once = ("--once-within", "1h")
    over_after = 2 * HOUR


class Forgotten(Situation):
    """A success was forgotten."""

    def make(self, lab):
        lab.runs("--once", "2.7")
        lab.rlock("forget", NAME, "--yes")

    def check(self, lab, state):
        lab.runs("--once", "2.7")
        lab.does_not_run("--once", "2.7", code=0)


class Failures(Situation):
    """Two runs failed, as many as may."""
    once = ("--once", "2.7", "--max-failures", "2")

    def make(self, lab):
        for _ in range(2):
            lab.rlock("run", "-n", *self.once, NAME, "--", "sh", "-c", "exit 3", code=3)

    def check(self, lab, state):
        lab.does_not_run(*self.once, code=75)
        lab.runs("--once", "2.7", "--max-failures", "3")
        lab.does_not_run(*self.once, code=0)


class Failed(Situation):
    """The last run failed, after one that succeeded."""

    def make(self, lab):
        lab.runs()
        lab.rlock("run", "-n", NAME, "--", "sh", "-c", "exit 3", code=3)

    def check(self, lab, state):
        lab.rlock("run", "-n", NAME, "--", "sh", "-c", "exit 4", code=4)
        counters = lab.status()["counters"]
        assert (counters["runs"], counters["failures"]) == (3, 2), counters


class Skipped(Situation):
    """Two runs were skipped."""

    def make(self, lab):
        lease = lab.acquire()
        for _ in range(2):
            lab.does_not_run()
        lab.rlock("release", NAME, "--owner", lease["owner"])

    def check(self, lab, state):
        lab.runs()
        assert lab.status()["counters"]["skips"] == 2


class Slots(Situation):
    """Two holders of three slots."""

    def make(self, lab):
        lab.acquire("--slots", "3")
        lab.acquire("--slots", "3")

    def check(self, lab, state):
        assert lab.acquire("--slots", "3")["slot"] == 3
        lab.does_not_run("--slots", "3")
        lab.is_busy()
        first = next(holder for holder in state["shown"]["status"]["holders"] if holder["slot"] == 1)
        lab.rlock("release", NAME, "--owner", first["owner"])
        assert lab.acquire("--slots", "3")["slot"] == 1


class Shared(Situation):
    """Two shared holders."""

    def make(self, lab):
        lab.acquire("--shared")
        lab.acquire("--shared")

    def check(self, lab, state):
        lab.does_not_run()
        lab.runs("--shared")
        for holder in state["shown"]["status"]["holders"]:
            lab.does_not_run()
            lab.rlock("release", NAME, "--owner", holder["owner"])
        lab.runs()


class CoolDown(Situation):
    """A run left a cool-down."""

    def make(self, lab):
        lab.runs("--min-hold", "1h")

    def check(self, lab, state):
        lab.is_busy()
        lab.passes(HOUR)
        lab.runs()


class Broken(Situation):
    """A run was asked to end by an operator, and has not done so."""

    def make(self, lab):
        lab.holds().send_signal(signal.SIGSTOP)
        lab.rlock("force-unlock", NAME, "--yes", "--reason", "stuck")

    def check(self, lab, state):
        assert lab.status()["state"] == "broken"
        lab.is_busy()
        lab.passes(HOUR)
        lab.runs()
        assert "stuck" in lab.rlock("history", NAME)


class BrokenSteps(Situation):
    """An operator broke the lock of a pipeline."""

    def make(self, lab):
        lease = lab.acquire()
        lab.rlock("force-unlock", NAME, "--yes", "--reason", "stuck")
        return {"lease": lease}

    def check(self, lab, state):
        lease = state["made"]["lease"]
        lab.rlock("renew", NAME, "--owner", lease["owner"], "--token", str(lease["token"]), "-t", "1h", code=76)
        lab.rlock("release", NAME, "--owner", lease["owner"], code=76)
        lab.runs_after(lease["token"])


class Released(Situation):
    """A lock was released a moment ago."""

    def make(self, lab):
        lease = lab.acquire()
        lab.rlock("release", NAME, "--owner", lease["owner"])
        return {"lease": lease}

    def check(self, lab, state):
        lease = state["made"]["lease"]
        lab.rlock("renew", NAME, "--owner", lease["owner"], "--token", str(lease["token"]), "-t", "1h", code=76)
        lab.runs_after(lease["token"])


class Superseding(Situation):
    """A waiter replaces older ones."""

    def make(self, lab):
        lab.acquire()
        lab.waits("--supersede=5")
        lab.waits()

    def check(self, lab, state):
        newest, other = owners_of(state)
        lab.rlock("run", "-w", "1h", "--supersede=4", NAME, "--", "false", code=75)
        assert lab.queue() == [newest, other]
        lab.waits("--supersede=6")
        first, second = lab.queue()
        assert first not in (newest, other) and second == other


class Newest(Situation):
    """A run that supersedes others had the lock."""

    def make(self, lab):
        lab.runs("--supersede=5")

    def check(self, lab, state):
        lab.rlock("run", "-w", "1h", "--supersede=4", NAME, "--", "false", code=75)
        lab.runs("--supersede=6")


class Nested(Situation):
    """A run holds the lock, and so does a run inside it."""

    def make(self, lab):
        lab.holds(command=(lab.program, "run", NAME, "--", "sh", "-c", "touch inside; exec sleep 1000"))
        harness.until((lab.folder / "inside").exists, "the inner run")

    def check(self, lab, state):
        lab.is_busy()
        lab.passes(120)  # the lease of the inner one is over
        lab.is_busy()
        lab.passes(HOUR)
        lab.runs()


class NestedLeft(Situation):
    """A run has ended, and one that it left in the background holds the lock."""

    def make(self, lab):
        inner = f"'{lab.program}' run -t 1m {NAME} -- sh -c 'touch inside; exec sleep 1000'"
        lab.start("run", "-t", "1h", NAME, "--", "sh", "-c", f"setsid {inner} & until [ -e inside ]; do sleep 0.1; done").wait()

    def check(self, lab, state):
        lab.is_busy()
        lab.passes(120)
        lab.runs()


class ClockAhead(Situation):
    """The server's clock was a day ahead, and was set back."""

    def make(self, lab):
        lab.passes(24 * HOUR)
        token = lab.runs()
        lab.passes(-24 * HOUR)
        return {"token": token}

    def check(self, lab, state):
        lab.runs_after(state["made"]["token"])


class Quorum(Situation):
    """A pipeline holds the lock at three servers, and a run waits."""
    servers = 3

    def make(self, lab):
        lab.acquire()
        harness.until(lambda: lab.holders()[0]["servers"] == 3, "all servers have the grant")
        lab.waits()

    def check(self, lab, state):
        keeps(lab, holder_of(state))
        lab.passes(20)
        lab.runs_after(holder_of(state)["token"])


class Plain(Situation):
    """A lock in the plain format of other clients."""
    shows = False
    format = "plain"

    def make(self, lab):
        return {"lease": lab.acquire("--format", self.format)}

    def check(self, lab, state):
        named = NAME, "--format", self.format, "--owner", state["made"]["lease"]["owner"]
        lab.does_not_run("--format", self.format)
        lab.rlock("renew", *named, "-t", "2h")
        lab.does_not_run("--format", self.format)
        lab.rlock("release", *named)
        lab.acquire("--format", self.format)


class Redisson(Plain):
    """A lock in the format of Redisson."""
    format = "redisson"


ALL = {kind.__name__: kind() for kind in (
    Held, Steps, Lapsed, Queued, Granted, Urgent, Closed, ClosedHeld, Done, DonePeriod, DoneWithin, Forgotten, Failures, Failed, Skipped, Slots,
    Shared, CoolDown, Broken, BrokenSteps, Released, Superseding, Newest, Nested, NestedLeft, ClockAhead, Quorum, Plain, Redisson)}
