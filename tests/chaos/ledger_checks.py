"""Owners, order and freed locks, by the servers' own records: which owner had a lease, which one waited, and when."""
from history import FORCED, Excuses, Violation

LATE_MS = 1000  # until the next owner notices that a lease has ended
FORGETTABLE = 1  # tombstones up to this kind (expired, requeued) let their owner come back


class Book:
    """One lock at one server, replayed entry by entry."""

    def __init__(self):
        self.wipe()

    def wipe(self):
        self.holders = {}  # owner -> lease end
        self.queue = {}  # owner -> (ticket, when it came)
        self.left = {}  # who left the queue in this very script -> the same
        self.known = set()  # who has ever been a holder
        self.tombstones = {}  # owner -> kind of its tombstone
        self.noted = set()  # owners that an operator broke
        self.tokens = {}  # owner -> its newest
        self.removed = {}  # holders removed in this script, without a tombstone yet -> lease end
        self.free_since = None  # ms, while there is no holder
        self.undue = {}  # holders that the script before removed without a tombstone -> ms that were left
        self.ms = 0

    def turn_to(self, ms):
        """The next script."""
        ended = ms != self.ms
        self.undue = {owner: end - self.ms for owner, end in self.removed.items() if end > self.ms} if ended else {}
        if ended:
            self.ms, self.left, self.removed = ms, {}, {}

    def apply(self, entry):
        owner = entry.owner
        if entry.what == "hold":
            self.holders[owner] = entry.value
            self.known.add(owner)
            self.removed.pop(owner, None)
        elif entry.what == "free" and owner in self.holders:
            self.remove(owner)
        elif entry.what == "tombstone":
            self.tombstones[owner] = entry.value
            self.removed.pop(owner.partition(":")[0], None)
            if entry.value == FORCED:
                self.noted.add(owner)
        elif entry.what == "token":
            self.tokens[owner] = entry.value
        elif entry.what == "queue":
            self.queue.setdefault(owner, (entry.value, entry.ms))
        elif entry.what == "leave" and owner in self.queue:
            self.left[owner] = self.queue.pop(owner)
        elif entry.what == "gone":
            self.lose(owner)

    def remove(self, owner):
        end = self.holders.pop(owner)
        self.removed[owner] = end
        if not self.holders:
            self.free_since = min(end, self.ms)

    def lose(self, part):
        if part == "all":
            self.wipe()
        elif part == "queue":
            self.queue = {}
        elif part == "released":
            self.tombstones = {}
        elif part == "who":
            self.noted = set()
        else:
            for owner in list(self.holders):
                self.remove(owner)


def scripts(history):
    return ((lock, entries, Book()) for lock, entries in history.records())


def replay(history):
    """Each entry, with what the server had before it."""
    for lock, entries, book in scripts(history):
        for entry in entries:
            book.turn_to(entry.ms)
            yield lock, entry, book
            book.apply(entry)


def check_owners(history):
    """An owner that was released, cancelled, removed or forced out never holds the lock again, for as long as the
    server's data can know. With the tombstones gone an operator's note keeps it from being put back; it may come anew
    then, with a larger token. With both gone, by FLUSHALL or one by one, nothing remembers its end."""
    for lock, entries, book in scripts(history):
        doubtful = {}  # owner -> (ms, the token that it had)
        for entry in entries:
            book.turn_to(entry.ms)
            late = [owner for owner, (ms, _) in doubtful.items() if ms != entry.ms]
            yield from (brought_back(lock, owner) for owner in late if doubtful.pop(owner))
            back = entry.what == "hold" and entry.owner not in book.holders
            if back and book.tombstones.get(entry.owner, 0) > FORGETTABLE:
                yield brought_back(lock, entry.owner)
            elif back and entry.owner in book.noted:
                doubtful[entry.owner] = entry.ms, book.tokens.get(entry.owner, 0)
            elif entry.what == "token" and entry.owner in doubtful and entry.value > doubtful[entry.owner][1]:
                del doubtful[entry.owner]
            book.apply(entry)
        yield from (brought_back(lock, owner) for owner in doubtful)


def brought_back(lock, owner):
    return Violation("owner only", 0, f"{lock}: {owner} was brought back after its end")


def check_undue(history):
    """A lease is removed before its end only with a tombstone, which its owner or an operator leaves."""
    for lock, _, book in replay(history):
        for owner, left in book.undue.items():
            yield Violation("owner only", 0, f"{lock}: {owner} lost its lease {left} ms early, without a release or an operator")


def check_order(history):
    for lock, entry, book in replay(history):
        if entry.what == "hold" and entry.owner not in book.known:
            place = book.left.get(entry.owner)
            passed = [o for o, (ticket, _) in book.queue.items() if place is None or ticket < place[0]]
            if passed:
                yield Violation("order", 0, f"{lock}: {entry.owner} was served before {len(passed)} who came earlier")


def check_freed(history):
    """A lock that is free is granted to a waiter within a second."""
    excuses = Excuses(history)
    for lock, entry, book in replay(history):
        place = book.left.get(entry.owner)  # where it waited
        if entry.what == "hold" and place and not book.holders and book.free_since:
            since = max(book.free_since, place[1])
            if entry.ms - since - excuses.between(since, entry.ms) > LATE_MS:
                yield Violation("freed in time", 0, f"{lock}: free for {entry.ms - since} ms while {entry.owner} waited")
