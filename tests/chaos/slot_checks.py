"""RLOCK_SLOT: each holder has one of the first for itself, and keeps it."""
import collections

from history import Violation


def check_slots(history):
    """Unique among live holders, by what each of their processes saw: *no overlap* of each slot says more. And one of the slots
    that the run asked for."""
    runs = history.runs_by_owner()
    for hold in history.holds:
        most = runs[hold.owner].plan.get("slots", 0) if hold.owner in runs else hold.slot
        if not (1 <= hold.slot <= most if hold.slot else not most):
            yield Violation("slot", hold.start, f"{hold.lock}: {hold.owner} has slot {hold.slot} of {most}")


def check_slot_kept(history):
    """At a server no two leases have one slot at a time, and each owner the one that its command sees, also where it was
    put back."""
    seen = {(hold.lock, hold.token): hold for hold in history.holds}
    for lock, entries in history.records():
        yield from doubly_given(lock, entries)
        yield from other_slots(lock, entries, seen)


def other_slots(lock, entries, seen):
    """A grant that nobody claimed is followed by another one, with a slot of its own."""
    tokens = {}
    for entry in entries:
        if entry.what == "token":
            tokens[entry.owner] = entry.value
        hold = seen.get((lock, tokens.get(entry.owner)))
        if entry.what == "slot" and hold and entry.value != hold.slot:
            yield Violation("slot", 0, f"{lock}: {entry.owner} has slot {entry.value} at the server, {hold.slot} itself")


def doubly_given(lock, entries):
    ends, slots = {}, {}
    for number, entry in enumerate(entries):
        if entry.what == "hold":
            ends[entry.owner] = entry.value
        elif entry.what == "free":
            ends.pop(entry.owner, None)
        elif entry.what == "gone" and entry.owner in ("holders", "all"):
            ends.clear()
        elif entry.what == "gone" and entry.owner == "who":
            slots.clear()  # the server knows them no more, and the holders go on until they renew
        elif entry.what == "slot":
            slots[entry.owner] = entry.value
        following = entries[number + 1] if number + 1 < len(entries) else None
        if entry.what not in ("hold", "slot") or following and following.ms == entry.ms:
            continue  # the script is not over
        live = collections.Counter(slots[owner] for owner, end in ends.items() if end > entry.ms and owner in slots)
        for slot, count in live.items():
            if count > 1:
                yield Violation("slot", 0, f"{lock}: {count} leases have slot {slot}")
