"""What was seen in a run, from the jobs' logs, rlock's event logs, the agents' notes, the nemesis's notes, and the
server's own ledger (its append-only file, which names every lease in the order in which it was given).
"""
import bisect
import glob
import json
import os
from dataclasses import dataclass, field

from redis_node import redis_talk

META_LIFE_MS = 30 * 24 * 3600 * 1000  # a script that lets :meta live this long shows its time
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
    token `value` (token), slot `value` (slot), supersedes others (newest); what `owner` names is marked as done by token
    `value` (mark); or a whole part is gone: holders, queue, released, who, all (gone). Several may run within one ms:
    `script` counts them."""
    ms: int
    what: str
    owner: str = ""
    value: int = 0
    script: int = field(default=0, compare=False)


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


def folded_hold(words):
    """Owner, token, ttl, end, slot or 0, and whether it supersedes others, of the hold that `SET holders` stores; nothing of
    a string that is not rlock's."""
    fields = words[2].split(" ", 8)
    if words[0].upper() != "SET" or split_key(words[1])[1] != "holders" or fields[0] != "1" or len(fields) < 9:
        return None
    more = fields[8].split("|", 1)[0].split()
    slot = next((int(word[5:]) for word in more if word.startswith("slot=")), 0)
    return fields[1], int(fields[3]), int(fields[5]), int(fields[7]), slot, any(word.startswith("supersede=") for word in more)


def time_of(words, known):
    """The ms at which a script ran, where this command of it shows that; KNOWN: one before has shown it."""
    command, part = words[0].upper(), split_key(words[1])[1]
    if command == "PEXPIREAT" and part == "meta":
        return int(words[2]) - META_LIFE_MS
    if command == "SET" and (hold := folded_hold(words)):
        return hold[3] - hold[2]
    if command == "ZADD" and part == "released":
        # That of one who was forced out may count as long as the lease, by a script that has shown its time.
        score = int(float(words[2]))
        return None if known and score % 16 == FORCED else score // 16 - TOMBSTONE_MS
    if command == "LPUSH" and part == "history" and words[2].startswith("run "):
        _run, _token, _since, ended, how, _rest = words[2].split(" ", 5)
        return int(ended) if how == "released" else None  # the others ended with their leases
    if command == "HSET" and part == "who":
        fields = dict(zip(words[2::2], words[3::2]))
        for name, text in fields.items():
            line, entry = text.split(), fields.get("@" + name[1:], "")
            if name[0] == "+" and line[1] in ("granted", "waiting"):
                return int(line[4])
            if name[0] == "+" and line[1] == "held" and entry.startswith("0=") and ";" not in entry:
                # A claim, or a renewal, that leaves a short lease as long as the grant shows no time.
                return int(entry[2:]) - int(line[5]) if int(entry[2:]) - int(line[4]) != CLAIM_MS else None
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
    elif command == "SET" and (hold := folded_hold(words)):
        yield Entry(0, "hold", hold[0], hold[3])
        yield Entry(0, "token", hold[0], hold[1])
        if hold[4]:
            yield Entry(0, "slot", hold[0], hold[4])
        if hold[5]:
            yield Entry(0, "newest", hold[0])
    elif command == "ZREM" and part in takes:
        for owner in words[2:]:
            yield Entry(0, takes[part], owner)
    elif command == "HSET" and part == "who":
        for name, text in zip(words[2::2], words[3::2]):
            fields = text.split()
            # ~owner is no owner: it keeps the lock for --min-hold.
            if name.startswith("+") and name[1:2] != "~" and len(fields) >= 8 and int(fields[3]) > 0:
                yield Entry(0, "token", name[1:], int(fields[3]))
            slot = next((word for word in fields if word.startswith("slot=")), None)
            if name.startswith("+") and slot:
                yield Entry(0, "slot", name[1:], int(slot[5:]))
            if name.startswith("+") and any(word.startswith("supersede=") for word in fields):
                yield Entry(0, "newest", name[1:])
    elif command == "HSET" and part == "once":
        for name, text in zip(words[2::2], words[3::2]):
            fields = text.split(" ", 8)
            if fields[0] == "1" and int(fields[5]) > 0:
                yield Entry(0, "mark", name, int(fields[2]))
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
        self.scripts = 0

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
        self.scripts += 1
        for lock, entry in self.pending:
            # The release of a grant that was never confirmed shows no time.
            known = entry.what != "tombstone" or lock in self.timed
            entry.ms = self.ms.get(lock, 0) if known else 0
            entry.script = self.scripts
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
