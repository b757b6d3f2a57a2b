#!/usr/bin/python3
"""A number in a manual page is that of the code: each row has a text of a page, and the text of the source from which its number comes.
To change the number, change both, and the row."""
import re

from tree import Faults, read

GUARANTEES, PROTOCOL, RUN = "man/rlock-guarantees.7", "man/rlock-protocol.7", "man/commands/run.in"
RUN, RLOCK, QUEUE = "man/commands/run.in", "man/rlock.1.in", "man/commands/queue.in"
OPTIONS, COMMANDS = "src/cli/options/options.cpp", "src/cli/options/commands.cpp"
TIMING, CONSTANTS, ONCE = "src/lock/timing.hpp", "src/lua/constants.lua", "src/lua/once.lua"

ROWS = [
    # page, its text, source, its text
    (RUN, "about 1,000 finished", ONCE, "MARKS, BATCH = 1000, 64"),
    (PROTOCOL, "it removes the 64 that expire first", ONCE, "MARKS, BATCH = 1000, 64"),
    (RUN, "for 30 days after a run last asked", CONSTANTS, "KEPT = 2592000000"),
    (PROTOCOL, "A tombstone counts for 60 s", CONSTANTS, "TOMBSTONE = 60000"),
    (PROTOCOL, "The slice is 5 s for the first 64 waiters", CONSTANTS, "SLICE = 5000"),
    (PROTOCOL, "each further 64 positions, up to 20 s", CONSTANTS, "MOST_SLICES = 4"),
    (PROTOCOL, "has not called for 15 s when its turn comes", CONSTANTS, "HEARTBEAT = 15000"),
    (PROTOCOL, "The lease of a nested entry is at most 60 s", TIMING, "kLongestNestedLease{60'000}"),
    (QUEUE, "asks the server every 5 s, and far from the head of the queue every 20 s", TIMING, "kLongestWaitSlice{20'000}"),
    (OPTIONS, "keeps 100 rows for each lock", CONSTANTS, "RUNS = 100"),
    (COMMANDS, "the first 128 runs", "src/lock/inspector.hpp", "waiters_page = 128"),
    (OPTIONS, "at most 1024: if runs", CONSTANTS, "MOST_SLOTS = 1024"),
    (OPTIONS, "rlock renews the lease every 10s", TIMING, "kLongestRenewInterval{10'000}"),
    (OPTIONS, "With several servers the maximum is 60s", TIMING, "kLongestQuorumLease{60'000}"),
    (OPTIONS, '.fallback = "5s, or a sixth of the ttl if that is less"', "src/cli/settings/run_settings.cpp", "kKillAfter{5000}"),
    (OPTIONS, '.fallback = "60s"', "src/cli/settings/run_settings.hpp", "kDefaultTtl{60'000}"),
    (OPTIONS, '.fallback = "2s"', "src/redis/open.hpp", "connect_timeout{2000}"),
    (RUN, "sentinels do not know the master, rlock exits with 78 once they have said so for five seconds", "src/lock/failures.hpp",
     "kLearningTime{5000}"),
    (RLOCK, "does not answer within 100 ms", "src/redis/net/secret.cpp", "kPatience{100}"),
    (RLOCK, "That command must finish within 5 s", "src/redis/net/secret.cpp", "kTimeout{5000}"),
]


def words(path):
    """The text without line ends, joins of C++ literals and roff's dots, as it is read."""
    text = re.sub(r'"\s*\n\s*"', "", read(path))
    text = re.sub(r"^\.[A-Z]+ ", "", text, flags=re.MULTILINE)
    return " ".join(text.split())


faults, texts = Faults(), {}
for row in ROWS:
    for path, text, other in (row[:3], (*row[2:], row[0])):
        if text not in texts.setdefault(path, words(path)):
            faults.add(path, 1, f"has no {text!r}, which goes with {other}", "correct both, and the row in tests/style/figures.py")
faults.finish(f"{len(ROWS)} figures")
