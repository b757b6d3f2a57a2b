"""Done once: what was done is not run again, and nobody finds done what nobody did."""
import bisect
import collections

from history import Excuses, Violation
from workloads import DONE

NOT_RECORDED = "not recorded"  # in rlock's warning
SLACK = 20 * 10**6  # ns: two ages in ms, and the server's clock
LONG = 300 * 10**6  # ns: until a signal that was sent surely is rlock's
NEWEST = 200  # successes: what is older than so many decides nothing
LOSING = ("flushed", "server_emptied", "evicted", "overwritten")
FORGOTTEN = "forgotten"
STOPS = "rlock_signalled"  # a TERM, INT or HUP that rlock passes on: a success is none


class Work:
    """A run that was to be done once, and its command if that started."""

    def __init__(self, run, hold, granted):
        self.run, self.hold, self.lock = run, hold, run.plan["lock"]
        self.kind, self.key, self.span = run.plan["once"], run.plan["key"], run.plan.get("span", 0) * 10**9
        self.asked = run.began, run.ended or run.began  # between them, by the server's clock
        if run.events:
            since = [event["t_ns"] - (event["waited_ms"] + 2) * 10**6 for event in run.events if "waited_ms" in event]
            self.asked = max([run.began, *since[:1]]), run.events[0]["t_ns"]
        known = run.first("acquired")
        self.granted = granted or self.asked[0], known["t_ns"] if known else hold.start if hold else 0

    @property
    def token(self):
        return self.hold.token if self.hold else 0

    def succeeded(self):
        """Its command exited with 0, whatever became of rlock."""
        return self.hold is not None and self.hold.stop == 0

    def stopped(self):
        """Whether it was asked to stop well before it ended."""
        return any(fault["fault"] == STOPS and fault["at"] < self.hold.last - LONG for fault in self.run.faults)

    def end(self):
        """At the latest."""
        return self.run.ended or float("inf")

    def why_not_recorded(self):
        """Empty where it says that its success is recorded."""
        faults = {fault["fault"] for fault in self.run.faults}
        if STOPS in faults:
            return "asked to stop"
        if self.run.code != 0:
            return "lost or killed"
        return "unconfirmed" if NOT_RECORDED in self.run.errors else ""


def works(history):
    """Those that were to be done once, by lock and what they do; in the order of their tokens."""
    holds = history.holds_by_owner()
    granted = grants(history)
    groups = collections.defaultdict(list)
    for run in history.runs:
        if run.plan.get("once"):
            work = Work(run, holds.get(run.owner), granted.get((run.plan["lock"], run.owner)))
            groups[work.lock, work.kind, work.key].append(work)
    for group in groups.values():
        yield sorted(group, key=lambda work: (work.token, work.run.began))


def grants(history):
    """When one server issued the token of each owner, in ns."""
    found = {}
    for lock, entries in history.records() if len(history.ledgers) == 1 else ():
        for entry in entries:
            if entry.what == "token" and entry.ms:
                found.setdefault((lock, entry.owner), entry.ms * 10**6 - history.wall_offset)
    return found


def is_done_by(work, other, surely):
    """Whether that other success is one of `work`'s own; `surely` decides what the clocks leave open."""
    if work.kind != "within":
        return True
    if surely:
        latest = work.asked[1] + SLACK
        return other.granted[0] > latest or other.asked[0] > latest - work.span
    earliest = work.asked[0] - SLACK
    return other.granted[1] > earliest or other.asked[1] > earliest - work.span


def voided(history, lock, since, until):
    """What may have removed the mark of a success in that time."""
    for fault in (fault for fault in history.faults if fault.overlaps(since, until)):
        if fault.name == FORGOTTEN and fault.lock == lock:
            return FORGOTTEN
        if fault.name in LOSING and fault.excuses:  # a minority of a quorum loses nothing
            return "data lost"
    return ""


def check_once(history):
    """Where a success was recorded nobody runs the same again, unless it was forgotten or data were lost."""
    for group in works(history):
        recorded = []
        for work in (work for work in group if work.hold):
            # Of one that still ran then *no overlap* says more.
            done = [before for before in recorded[-NEWEST:] if is_done_by(work, before, surely=True)
                    and before.hold.last <= work.hold.start and not voided(history, work.lock, before.hold.last, work.hold.start)]
            if done:
                yield Violation("once", work.hold.start, f"{what(work)}: run {work.run.number} (token {work.token}) "
                                f"began although run {done[-1].run.number} (token {done[-1].token}) had done it")
            if work.succeeded() and not work.why_not_recorded():
                recorded.append(work)


def what(work):
    return f"{work.lock}: {work.kind} {work.key}".strip()


def check_done(history):
    """A run ends as done only by a success that counts for it."""
    for group in works(history):
        good = sorted((work for work in group if work.succeeded()), key=lambda work: work.hold.last)
        times = [work.hold.last for work in good]
        for work in (work for work in group if work.run.code == DONE):
            latest = bisect.bisect_right(times, work.end())
            if not any(counts(history, work, other) for other in good[max(0, latest - NEWEST):latest]):
                yield Violation("once", work.end(), f"{what(work)}: run {work.run.number} ended as done, but no run that "
                                "counts for it had succeeded")


def counts(history, work, other):
    """Whether `other` may have marked what `work` found done."""
    if other.stopped() or not is_done_by(work, other, surely=False):
        return False
    # What somebody made rlock forget stays forgotten, also where a mark came late.
    return not any(fault.name == FORGOTTEN and fault.lock == work.lock and fault.sure and other.end() < fault.begin
                   and fault.end < work.run.began for fault in history.faults)


def check_recorded(history):
    """A success is recorded unless something was wrong."""
    excuses = Excuses(history)
    for group in works(history):
        for work in group:
            why = work.succeeded() and work.why_not_recorded()
            if not why or work.run.faults or work.run.ended is None:
                continue
            since = work.hold.start - work.run.plan["ttl"] * 1e9
            if not excuses.between(history.server_ms(since), history.server_ms(work.run.ended)):
                yield Violation("once", work.run.ended, f"{what(work)}: run {work.run.number} succeeded, and is not recorded "
                                f"({why}), although nothing was wrong: {work.run.errors.strip()}")


def check_marks(history):
    """Every mark at a server is that of a success; and one that a run calls recorded is there."""
    for ledger in history.ledgers:
        marked = {(lock, entry.value) for lock, entries in ledger.items() for entry in entries if entry.what == "mark"}
        known = set()
        for work in (work for group in works(history) for work in group if work.hold):
            known.add((work.lock, work.token))
            is_marked = (work.lock, work.token) in marked
            if is_marked and (not work.succeeded() or work.stopped()):
                yield Violation("once", work.hold.last, f"{what(work)}: run {work.run.number} is marked, and did not succeed")
            recorded = work.succeeded() and not work.why_not_recorded()
            if recorded and not is_marked and len(history.ledgers) == 1:
                yield Violation("once", work.hold.last, f"{what(work)}: run {work.run.number} calls itself recorded, and no "
                                "mark was written")
        for lock, token in marked - known:
            yield Violation("once", 0, f"{lock}: a mark has token {token}, which no such run had")
