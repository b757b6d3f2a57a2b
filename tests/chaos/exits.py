"""The exit codes are true, and no command is ended without a reason."""
from history import Excuses, Violation
from workloads import BUSY, DONE, UNREACHABLE

OWN_CODES = {0, 1, 7, 42}  # the job's
LOST, UNGUARDED = 76, 71
SIGNALLED = ("killed", "signalled")


def check_exits(history):
    holds = history.holds_by_owner()
    excuses = Excuses(history)
    for run in history.runs:
        for text in untruths(run, holds.get(run.owner), history, excuses):
            yield Violation("truthful exit", run.ended or run.began, f"run {run.number}: {text}")


def untruths(run, hold, history, excuses):
    if run.code is not None:
        if run.code != BUSY:
            yield from untrue_code(run, hold, excused(run, history, excuses, run.began, run.ended))
        elif hold or not (run.plan["wait"] or removed(run, history)):
            yield "exit code 75, but " + ("its command started" if hold else "it was to wait for ever")
    for event in run.events:
        if event["event"] == "lost" and unprovoked(run, event):
            since = event["t_ns"] - run.plan["ttl"] * 1e9
            if not excused(run, history, excuses, since, event["t_ns"]):
                yield "its lease ended although nothing was wrong, and no renewal had failed"


def excused(run, history, excuses, since, until):
    return bool(run.faults) or excuses.between(history.server_ms(since), history.server_ms(until)) > 0


def removed(run, history):
    """An operator may have broken the lock between the grant and the waiter's claim."""
    return any(fault.name.startswith("operator") and fault.overlaps(run.began, run.ended) for fault in history.faults)


def unprovoked(run, event):
    reported = event.get("detail") in ("deleted", "taken by another owner", "broken by an operator", "expired")
    return not reported and "renew-failed" not in run.words()


def untrue_code(run, hold, excused_run):
    """By the command's own log, whose last line is `stop` if it ended by itself."""
    code, stop = run.code, hold.stop if hold else None
    if code in OWN_CODES:
        if stop != code:
            yield f"exit code {code}, but its command " + (f"said {stop}" if hold else "never started")
    elif code == DONE:
        if hold:
            yield f"exit code {code}, but its command started"
    elif code == LOST:
        if hold and "lost" not in run.words():
            yield "exit code 76, but its lease was never lost"
    elif code == UNREACHABLE:
        if not excused_run or hold:
            yield "exit code 69, but " + ("its command started" if hold else "the server was never away")
    elif code == UNGUARDED:
        # Of both, rlock may see the guard's end before its own.
        if not any(fault["fault"] in ("guard_killed", "both_killed") for fault in run.faults):
            yield "exit code 71, but nobody had killed its guard"
    elif code < 0:
        if not any(fault["fault"].endswith(SIGNALLED) and fault["signal"] == -code for fault in run.faults):
            yield f"ended by signal {-code} that nobody sent"
    else:
        yield f"exit code {code}"
