"""How much later than promised something may be, for what was done to those who should have been in time."""
import bisect

CLAIM_MS, HEARTBEAT_MS = 2000, 15000
SLICE_MS = 7000  # a waiter's longest sleep on a connection that has died unseen, and its reconnecting
LONGEST_MS = 120000  # no fault lasts longer


class Excuses:
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
