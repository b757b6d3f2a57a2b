"""The invariants of README.md over a history. Each check yields violations; which of them count is the mode's."""
import exits
import ledger_checks
import once_checks
import slot_checks
from history import CLAIM_MS, Excuses, Violation
from ledger_checks import LATE_MS

SLACK_MS = 5  # between two clocks, as far as they can be compared


def by_place(holds):
    """Where each is alone: a lock, or one of its slots."""
    places = {}
    for hold in holds:
        places.setdefault(hold.place, []).append(hold)
    return places


def check_overlaps(history):
    for hold in history.holds:
        if hold.overlaps:
            yield Violation("no overlap", hold.start, f"{hold.place}: {hold.owner} found the lock's file taken")
    for lock, holds in by_place(history.holds).items():
        latest = None
        for hold in holds:
            if latest and hold.start < latest.last:
                early = (latest.last - hold.start) / 1e6
                yield Violation("no overlap", hold.start, f"{lock}: {hold.owner} began {early:.1f} ms before {latest.owner} was gone")
            if latest is None or hold.last > latest.last:
                latest = hold
        yield from lost_updates(lock, holds)


def lost_updates(lock, holds):
    bumps = sorted(bump for hold in holds for bump in hold.bumps)
    for (_, before), (at, after) in zip(bumps, bumps[1:]):
        if after <= before:
            yield Violation("no overlap", at, f"{lock}: the counter went from {before} to {after}: an update was lost")


def check_tokens(history):
    for lock, holds in by_place(history.holds).items():
        seen = {}
        for hold in holds:
            if seen.setdefault(hold.token, hold.owner) != hold.owner:
                yield Violation("tokens grow", hold.start, f"{lock}: token {hold.token} was given twice")
        yield from stale_writes(lock, holds)
        yield from earlier_tokens(history, lock, holds)
    for lock, entries in history.records() if len(history.ledgers) == 1 else []:  # a majority issues a token, not one server
        yield from tokens_fall(lock, entries)


def earlier_tokens(history, lock, holds):
    """An owner that came when another's grant was known has the larger token."""
    runs = history.runs_by_owner()
    ours = [(hold, runs[hold.owner]) for hold in holds if hold.owner in runs]
    known = sorted((event["t_ns"], hold.token) for hold, run in ours if (event := run.first("acquired")))
    came = sorted((run.began, hold.token) for hold, run in ours)
    highest = 0
    for began, token in came:
        while known and known[0][0] < began:
            highest = max(highest, known.pop(0)[1])
        if token <= highest:
            yield Violation("tokens grow", began, f"{lock}: token {token} was issued when {highest} was known")


def stale_writes(lock, holds):
    """Stale writes are refused, and no newer one was taken for stale."""
    writes = sorted((at, word, hold.token) for hold in holds for at, word, _ in hold.stores)
    highest = 0
    for at, word, token in writes:
        if word == "accepted" and token < highest:
            yield Violation("tokens grow", at, f"{lock}: the resource took token {token} after {highest}")
        highest = max(highest, token if word == "accepted" else 0)


def tokens_fall(lock, entries):
    first, last = {}, 0
    for entry in entries:
        if entry.what == "token" and entry.owner not in first:
            first[entry.owner] = entry.value
            if entry.value <= last:
                yield Violation("tokens grow", 0, f"{lock}: token {entry.value} was issued after {last}")
            last = max(last, entry.value)


def check_grows(history):
    """Where holds never overlap their tokens grow."""
    for lock, holds in by_place(history.holds).items():
        for before, after in zip(holds, holds[1:]):
            if after.token <= before.token:
                yield Violation("tokens grow", after.start, f"{lock}: token {after.token} came after {before.token}")


def check_stale(history):
    """Where leases are kept nobody ever comes to the resource with an old token."""
    for hold in history.holds:
        for at, word, highest in hold.stores:
            if word == "refused":
                yield Violation("tokens grow", at, f"{hold.lock}: a holder came with token {hold.token} after {highest}")


def check_reported(history):
    """Where nobody else touches the data no server ever reports to an owner that its lease ended early."""
    for run in history.runs:
        fresh = 0
        for event in run.events:
            if event["event"] in ("acquired", "renewed"):
                fresh = event["t_ns"]
            lost = event["event"] == "lost" and event.get("detail") in ("deleted", "taken by another owner")
            if lost and event["t_ns"] - fresh < run.plan["ttl"] * 0.9e9:
                yield Violation("owner only", event["t_ns"], f"run {run.number}: {event['detail']} in the middle of its lease")


def check_dead(history):
    ends = lease_ends(history)[0]
    for hold in history.holds if history.ledgers else []:
        end = ends.get((hold.lock, hold.owner))
        last = history.server_ms(hold.last)
        if end is None:
            yield Violation("dead in time", hold.start, f"{hold.lock}: {hold.owner} ran without ever having had a lease")
        elif last > end + SLACK_MS:
            yield Violation("dead in time", hold.last, f"{hold.lock}: {hold.owner} ran {last - end:.0f} ms longer than its lease")


def check_ended(history):
    """Nobody releases before the command is gone."""
    freed = lease_ends(history)[1]
    for hold in history.holds:
        last = history.server_ms(hold.last)
        released = freed.get((hold.lock, hold.owner))
        if released is not None and last > released + SLACK_MS:
            yield Violation("dead in time", hold.last, f"{hold.lock}: {hold.owner} ran {last - released:.0f} ms after its release")


def lease_ends(history):
    """For each lock and owner: the latest moment at which a majority of the servers keeps others out, and when it was
    first released at one."""
    ends, freed = {}, {}
    for ledger in history.ledgers:
        own_ends, own_freed = lease_ends_at(ledger)
        for whose, end in own_ends.items():
            ends.setdefault(whose, []).append(end)
        for whose, ms in own_freed.items():
            freed[whose] = min(ms, freed.get(whose, ms))
    least = len(history.ledgers) // 2 + 1
    return {whose: sorted(each)[-least] for whose, each in ends.items() if len(each) >= least}, freed


def lease_ends_at(ledger):
    ends, freed = {}, {}
    for lock, entries in ledger.items():
        for entry in entries:
            if entry.what == "hold":
                ends[lock, entry.owner] = max(entry.value, ends.get((lock, entry.owner), 0))
                freed.pop((lock, entry.owner), None)
            elif entry.what == "tombstone" and entry.value == 2 and entry.ms:
                freed[lock, entry.owner] = entry.ms
    return ends, freed


def check_kept(history):
    """*dead in time* where the server's clock is not reliable: by the replies that the owner got."""
    runs = history.runs_by_owner()
    for hold in history.holds:
        run = runs.get(hold.owner)
        renewed = [event["t_ns"] for event in run.events if event["event"] in ("acquired", "renewed")] if run else []
        if renewed and hold.last > max(renewed) + (run.plan["ttl"] * 1000 + SLACK_MS) * 1e6:
            yield Violation("dead in time", hold.last, f"{hold.lock}: {hold.owner} ran longer than a ttl after its last renewal")


def check_handed(history):
    """*freed in time* by what the commands say, where no single server knows who holds the lock: it is handed on within
    max(ttl, claim) and a second. A minority of ill servers is no excuse."""
    excuses, runs = Excuses(history), history.runs_by_owner()
    ends, freed = lease_ends(history)
    for lock, holds in by_place(history.holds).items():
        for before, after in zip(holds, holds[1:]):
            free = freed.get((before.lock, before.owner), ends.get((before.lock, before.owner)))
            if after.owner not in runs or free is None:
                continue
            since = max(free, history.server_ms(runs[after.owner].began))
            late = history.server_ms(after.start) - since
            bound = LATE_MS + max(CLAIM_MS, runs[after.owner].plan["ttl"] * 1000)
            if late - excuses.between(since, history.server_ms(after.start)) > bound:
                yield Violation("freed in time", after.start, f"{lock}: free for {late:.0f} ms while {after.owner} waited")


def check_left(history):
    for hold in history.holds:
        if hold.sockets:
            yield Violation("left", hold.start, f"{hold.lock}: the command of {hold.owner} has a socket of rlock's")


CHECKS = {"no overlap": check_overlaps, "tokens grow": check_tokens, "grows": check_grows, "stale": check_stale, "reported": check_reported,
          "dead in time": check_dead, "ended": check_ended, "kept": check_kept, "handed": check_handed,
          "owner only": ledger_checks.check_owners, "undue": ledger_checks.check_undue,
          "order": ledger_checks.check_order, "freed in time": ledger_checks.check_freed, "truthful exit": exits.check_exits, "left": check_left,
          "once": once_checks.check_once, "done": once_checks.check_done, "recorded": once_checks.check_recorded,
          "marks": once_checks.check_marks, "slots": slot_checks.check_slots, "slot": slot_checks.check_slot_kept}


# What cannot hold where the whole host is frozen. [docs/FAULTS.md, "Faults"]
BROKEN_BY_FROST = ("no overlap", "stale", "reported", "dead in time", "kept")


def check(history, names):
    """The violations of those checks, in that order."""
    return [violation for name in names for violation in CHECKS[name](history)
            if name not in BROKEN_BY_FROST or not history.frozen(violation.at)]
