"""What was seen in a run, from the jobs' logs, rlock's event logs, the agents' notes, the nemesis's notes, and the
server's own ledger (its append-only file, which names every lease in the order in which it was given).
"""
import bisect
import glob
import json
import os
from dataclasses import dataclass, field

from redis_node import redis_talk

CLAIM_MS = 2000  # so long a grant may be claimed
HEARTBEAT_MS = 15000
SLICE_MS = 7000  # a waiter's longest sleep on a connection that has died unseen, and its reconnecting
LONGEST_MS = 120000  # no fault lasts longer
FROZEN = 400 * 10**6  # ns in which this machine ran nobody: leases may end in them
THAW = 10**9  # ns until everybody who was late has come
TOMBSTONE_MS = 60 * 1000  # so long a tombstone counts, but for that of one who was forced out
FORCED = 7  # an owner with such a tombstone has an operator's note as well, in another key


@dataclass
class Violation:
    """What a check yields."""
    invariant: str  # a letter of docs/FAULTS.md, a word of README.md, or `json`
    at: int  # ns; 0 where only the server's clock is known
    text: str

    def __str__(self):
        return f"{self.invariant}: {self.text}"


@dataclass
class Hold:
    """A command under a lock: all processes of one owner."""
    lock: str
    owner: str
    token: int
    start: int  # ns
    last: int = 0  # the latest moment at which any of them surely ran
    stop: int | None = None  # the exit code it announced
    overlaps: int = 0
    sockets: int = 0
    bumps: list = field(default_factory=list)
    stores: list = field(default_factory=list)  # (ns, accepted or refused, the highest token before)
    slot: int | None = None

    @property
    def place(self):
        """What it has for itself."""
        return self.lock if self.slot is None else f"{self.lock}#{self.slot}"


@dataclass
class Run:
    """An rlock process."""
    number: str
    began: int
    plan: dict
    host: int = 0
    ended: int | None = None
    code: int | None = None
    faults: list = field(default_factory=list)
    events: list = field(default_factory=list)
    errors: str = ""  # what it said, where its runs have a file each for that

    def words(self):
        return [event["event"] for event in self.events]

    def first(self, word):
        """The first event of that kind, or None."""
        return next((event for event in self.events if event["event"] == word), None)

    @property
    def owner(self):
        return self.events[0]["owner"] if self.events else None


@dataclass
class Fault:
    """Something that the nemesis did, or that this machine did to us (`lag`)."""
    name: str
    begin: int
    end: int
    host: int | None = None
    excuses: bool = True  # whether rlock may be late for it, or fail
    lock: str | None = None  # what an operator did it to
    sure: bool = True  # whether it is known to have happened

    def overlaps(self, since, until):
        return self.begin <= until and since <= self.end


@dataclass
class Entry:
    """What a script did at `ms` (server clock; 0: not known): `owner`'s lease ends at `value` (hold), it holds no more (free),
    queues with ticket `value` (queue), leaves the queue (leave), gets a tombstone of kind `value` (tombstone), has
    token `value` (token), slot `value` (slot); what `owner` names is marked as done by token
    `value` (mark); or a whole part is gone: holders, queue, released, who, all (gone)."""
    ms: int
    what: str
    owner: str = ""
    value: int = 0


@dataclass
class History:
    holds: list = field(default_factory=list)
    runs: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    ledgers: list = field(default_factory=list)  # for each server: lock -> entries
    wall_offset: int = 0  # ns from CLOCK_BOOTTIME to the server's clock

    def server_ms(self, moment):
        return (moment + self.wall_offset) / 1e6

    def frozen(self, moment):
        """Whether this machine stood still just before: an instant of a command after its lease is nobody's fault then."""
        return any(fault.name == "lag" and fault.end - fault.begin > FROZEN and fault.begin <= moment <= fault.end + THAW
                   for fault in self.faults)

    def holds_by_owner(self):
        return {hold.owner: hold for hold in self.holds}

    def runs_by_owner(self):
        return {run.owner: run for run in self.runs if run.owner}

    def records(self):
        """(lock, entries) at each server."""
        return [record for ledger in self.ledgers for record in ledger.items()]


class Excuses:
    """How much later than promised something may be, for what was done to those who should have been in time."""

    def __init__(self, history):
        self.spans = []  # (begin, end of its effect, worth), server ms
        for fault in filter(lambda fault: fault.excuses, history.faults):
            begin, end = history.server_ms(fault.begin), history.server_ms(fault.end)
            after = 0 if fault.name == "lag" else SLICE_MS
            self.spans.append((begin, end + after, end - begin + after))
        for run in history.runs:
            for fault in run.faults:
                begin, lasts = history.server_ms(fault["at"]), fault["seconds"] * 1000
                after = HEARTBEAT_MS + CLAIM_MS if fault["fault"].startswith("waiter") else 0
                self.spans.append((begin, begin + lasts + after, lasts + after))
        self.spans.sort()
        self.begins = [begin for begin, _, _ in self.spans]

    def between(self, since, until):
        first = bisect.bisect_left(self.begins, since - LONGEST_MS)
        last = bisect.bisect_right(self.begins, until)
        return sum(worth for _, end, worth in self.spans[first:last] if end >= since)


def read_lines(path):
    """Whole lines only: the last one may be in the making. None where there is no such file."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.endswith("\n"):
                yield line


def read_events(folder, number):
    """What that rlock wrote with --event-log."""
    return [json.loads(line) for line in read_lines(os.path.join(folder, f"events-{number}"))]


def read_holds(folder):
    holds = {}
    for path in glob.glob(os.path.join(folder, "*.log")):
        place = os.path.basename(path).removesuffix(".log")
        lock, _, slot = place.partition("#")
        for line in read_lines(path):
            word, at, _pid, owner, token, *more = line.split()
            at, number = int(at), int(more[0]) if more else 0
            hold = holds.setdefault((place, owner), Hold(lock, owner, int(token), at, slot=int(slot) if slot else None))
            hold.last = max(hold.last, at)
            if word == "stop":
                hold.stop = number
            elif word == "bump":
                hold.bumps.append((at, number))
            elif word in ("accepted", "refused"):
                hold.stores.append((at, word, number))
            hold.overlaps += word == "overlap"
            hold.sockets += word == "socket"
    return sorted(holds.values(), key=lambda hold: hold.start)


def count_holds(folder):
    """As many as have begun so far."""
    paths = glob.glob(os.path.join(folder, "*.log"))
    return sum(line.startswith("start ") for path in paths for line in read_lines(path))


def read_runs(folder):
    runs = {}
    for path in glob.glob(os.path.join(folder, "runs-*.jsonl")):
        for line in read_lines(path):
            note = json.loads(line)
            number = note["run"]
            if note["what"] == "begin":
                runs[number] = Run(number, note["at"], note, note["host"])
            elif note["what"] == "end":
                runs[number].ended, runs[number].code = note["at"], note["code"]
            else:
                runs[number].faults.append(note)
    for run in runs.values():
        run.events = read_events(folder, run.number)
        run.errors = "".join(read_lines(os.path.join(folder, f"stderr-{run.number}")))
    return sorted(runs.values(), key=lambda run: run.began)


def split_key(key):
    """The lock and the part of one of its keys."""
    name, _, part = key.partition("}:")
    return name.partition("{")[2], part


def words_in(text):
    """Those of `name=value name=value | record`, how every line, mark and row is stored."""
    return dict(word.split("=", 1) for word in text.partition("| ")[0].split() if "=" in word)


def time_of_line(line):
    """The ms at which a script wrote this line of a holder or waiter; None where it does not show that."""
    if line.get("state") in ("granted", "waiting"):
        return int(line["since"])
    entry = line.get("entries", "")
    if line.get("state") != "held" or not entry.startswith("0:") or "," in entry:
        return None
    # A claim, or a renewal, that leaves a short lease as long as the grant shows no time.
    end = int(entry[2:])
    return end - int(line["ttl"]) if end - int(line["since"]) != CLAIM_MS else None


def time_of(words, known):
    """The ms at which a script ran, where this command of it shows that; KNOWN: one before has shown it."""
    command, part = words[0].upper(), split_key(words[1])[1]
    if command == "ZADD" and part == "released":
        # That of one who was forced out may count as long as the lease, by a script that has shown its time.
        score = int(float(words[2]))
        return None if known and score % 16 == FORCED else score // 16 - TOMBSTONE_MS
    if command in ("LPUSH", "LSET") and part == "history":
        row = words_in(words[-1])
        if row.get("kind") == "run":
            return int(row["ended"]) if row["how"] == "released" else None  # the others ended with their leases
        return int(row.get("last", row.get("at", 0))) or None
    if command == "HSET" and part == "who":
        times = [time_of_line(words_in(text)) for owner, text in zip(words[2::2], words[3::2]) if owner[0] not in "~!#"]
        return next((ms for ms in times if ms is not None), None)
    return None


def entries_of(words):
    """What one command of a ledger says, without its time."""
    command, key = words[0].upper(), words[1] if len(words) > 1 else ""
    part = split_key(key)[1]
    adds = {"holders": "hold", "queue": "queue", "released": "tombstone"}
    takes = {"holders": "free", "queue": "leave"}
    if command == "ZADD" and part in adds:
        for value, owner in zip(words[2::2], words[3::2]):
            number = int(float(value))
            yield Entry(0, adds[part], owner, number % 16 if part == "released" else number)
    elif command == "ZREM" and part in takes:
        for owner in words[2:]:
            yield Entry(0, takes[part], owner)
    elif command == "HSET" and part == "who":
        for owner, text in zip(words[2::2], words[3::2]):
            # ~owner is no owner: it keeps the lock for --min-hold. !owner has a note, #owner a stamp.
            if owner[0] in "~!#":
                continue
            line = words_in(text)
            for what in ("token", "slot"):
                if int(line.get(what, 0)) > 0:
                    yield Entry(0, what, owner, int(line[what]))
    elif command == "HSET" and part == "once":
        for name, text in zip(words[2::2], words[3::2]):
            mark = words_in(text)
            if int(mark.get("ended", 0)) > 0:
                yield Entry(0, "mark", name, int(mark["token"]))
    elif command in ("DEL", "UNLINK"):
        parts = {split_key(each)[1] for each in words[1:]}  # of one lock
        yield from (Entry(0, "gone", lost) for lost in ("holders", "queue", "released", "who") if lost in parts)


class Ledger:
    """Collects the entries of one server; a transaction is one script, with one time."""

    def __init__(self):
        self.locks = {}
        self.ms = {}
        self.timed = set()  # locks of which a command of this transaction shows the time
        self.pending = []

    def command(self, words):
        name = words[0].upper()
        if name in ("FLUSHALL", "FLUSHDB"):
            self.wiped()
        elif name == "MULTI":
            self.settle()
        elif len(words) > 2 or name in ("DEL", "UNLINK"):
            lock = split_key(words[1])[0]
            if (ms := time_of(words, lock in self.timed)) is not None:
                self.ms[lock] = ms
                self.timed.add(lock)
            self.pending += [(lock, entry) for entry in entries_of(words)]
        if name == "EXEC":
            self.settle()

    def settle(self):
        for lock, entry in self.pending:
            # The release of a grant that was never confirmed shows no time.
            known = entry.what != "tombstone" or lock in self.timed
            entry.ms = self.ms.get(lock, 0) if known else 0
            self.locks.setdefault(lock, []).append(entry)
        self.pending, self.timed = [], set()

    def wiped(self):
        self.settle()
        for lock, entries in self.locks.items():
            entries.append(Entry(self.ms.get(lock, 0), "gone", "all"))
        self.ms = {}  # what only ends things on an empty server names no time


def read_ledger(paths):
    """One server's; between two files it lost everything."""
    ledger = Ledger()
    for number, path in enumerate(paths):
        if number > 0:
            ledger.wiped()
        for words in redis_talk.read_commands(path):
            ledger.command(words)
    ledger.settle()
    return ledger.locks


def read(folder, faults, ledgers, wall_offset):
    """The jobs' side first: whatever it shows, the ledger then has."""
    holds, runs = read_holds(folder), read_runs(folder)
    return History(holds, runs, list(faults), [read_ledger(paths) for paths in ledgers], wall_offset)
