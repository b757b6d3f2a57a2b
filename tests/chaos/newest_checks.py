"""Only the newest (--supersede), and no more tries after so many failures (--max-failures)."""
import collections

import once_checks
from history import Violation
from ledger_checks import scripts
from workloads import BUSY, SUPERSEDED, UNNUMBERED, UNREACHABLE

REPLACED = 5  # the kind of tombstone of a waiter that a newer one replaced


def members(history):
    """The runs with --supersede, by lock."""
    locks = collections.defaultdict(list)
    for run in history.runs:
        if run.plan.get("supersede"):
            locks[run.plan["lock"]].append(run)
    return locks


def check_newest(history):
    """No older one starts after a newer one was granted the lock, unless that was forgotten."""
    holds = history.holds_by_owner()
    for lock, runs in members(history).items():
        granted = [(claim["token"], run, claim) for run in runs if run.plan["supersede"] != UNNUMBERED
                   and (claim := run.first("acquired"))]
        newest = None
        for _, run, claim in sorted(granted, key=lambda grant: grant[0]):
            if newest is None or run.plan["supersede"] >= newest[0].plan["supersede"]:
                newest = run, claim
            elif run.owner in holds:
                start = holds[run.owner].start
                if not once_checks.voided(history, lock, newest[1]["t_ns"], start):
                    yield Violation("newest", start, f"{lock}: run {run.number} of {run.plan['supersede']} began after run "
                                    f"{newest[0].number} of {newest[0].plan['supersede']} was granted the lock")


def check_superseded(history):
    """Who is superseded never ran, and there is one that is not older."""
    ran = history.holds_by_owner()
    for lock, runs in members(history).items():
        for run in (run for run in runs if run.code == SUPERSEDED):
            if run.owner in ran:
                yield Violation("newest", run.ended, f"{lock}: run {run.number} was superseded, but its command started")
            if not any(other is not run and other.began < run.ended and not is_older(other, run) for other in runs):
                yield Violation("newest", run.ended, f"{lock}: run {run.number} of {run.plan['supersede']} was superseded, "
                                "but nobody was newer")


def is_older(run, other):
    one, two = run.plan["supersede"], other.plan["supersede"]
    return UNNUMBERED not in (one, two) and one < two


def check_place(history):
    """At a server at most one of them waits; it has the ticket of the one that it replaced, so that they do not starve."""
    for lock, entries, book in scripts(history):
        ours = {entry.owner for entry in entries if entry.what == "newest"}
        for number, entry in enumerate(entries):
            book.turn_to(entry.ms)
            if number > 0 and not same_script(entries[number - 1], entry):
                book.left = {}
            if entry.what == "queue" and entry.owner in ours and entry.owner not in book.queue:
                replaced = [ticket for owner, (ticket, _) in book.left.items() if book.tombstones.get(owner) == REPLACED]
                if replaced and entry.value > min(replaced):
                    yield Violation("newest", 0, f"{lock}: {entry.owner} did not get the place of the one that it replaced")
            book.apply(entry)
            if number + 1 < len(entries) and same_script(entry, entries[number + 1]):
                continue  # the script is not over
            waiting = [owner for owner in book.queue if owner in ours]
            if len(waiting) > 1:
                yield Violation("newest", 0, f"{lock}: {len(waiting)} wait that supersede each other: {' '.join(waiting)}")


def same_script(one, other):
    return (one.ms, one.script) == (other.ms, other.script)


def groups(history):
    """Those that give up after so many failures, by what they do once; in the order of their tokens."""
    for group in once_checks.works(history):
        if group[0].run.plan.get("max"):
            yield group


def check_failures(history):
    """After so many failures nobody starts, and only then does anybody give up."""
    for group in groups(history):
        yield from started_all_the_same(history, group)
        yield from gave_up_early(group)


def started_all_the_same(history, group):
    failed = []
    for work in (work for work in group if work.hold):
        counted = [before for before, at in failed if not once_checks.voided(history, work.lock, at, work.hold.start)]
        if len(counted) >= work.run.plan["max"]:
            yield Violation("failures", work.hold.start, f"{once_checks.what(work)}: run {work.run.number} began although "
                            f"{len(counted)} runs had failed")
        if work.succeeded():
            failed = []
        elif at := surely_failed(history, work):
            failed.append((work, at))


def surely_failed(history, work):
    """When a server counted the failure; 0 where it may not have. Whom an operator breaks did not fail."""
    released = [event for event in work.run.events if event["event"] == "released" and not event.get("detail")]
    if not released or work.hold.stop is None or work.run.code != work.hold.stop or "lost" in work.run.words():
        return 0
    at = released[-1]["t_ns"]
    broken = any(fault.name.startswith("operator") and fault.overlaps(work.hold.start, at) for fault in history.faults)
    return 0 if broken else at


def gave_up(run):
    return bool(run.plan.get("max")) and run.words()[-1:] == ["failed"] and run.code == BUSY


def gave_up_early(group):
    for work in (work for work in group if gave_up(work.run)):
        failures = sum(may_have_failed(other) and other.run.began < work.end() for other in group if other is not work)
        if failures < work.run.plan["max"]:
            yield Violation("failures", work.end(), f"{once_checks.what(work)}: run {work.run.number} gave up after "
                            f"{failures} failures")


def may_have_failed(work):
    """Also one that died between its grant and the start of its command, or never learned of its grant."""
    if work.hold:
        return not work.succeeded() or bool(work.why_not_recorded())
    code = work.run.code
    return work.run.first("acquired") is not None or code is None or code < 0 or code == UNREACHABLE
