#!/usr/bin/env python3
"""overlaps.py TRACE KIND…: the lines `start NS WHO`, `stop NS WHO` of commands under one lock. Prints how many held it;
exits 1 where two ran at once, a lock was taken from its holder, or a KIND (`rlock`, or what WHO begins with) had no turn.
"""
import sys

spans, robbed = {}, []
with open(sys.argv[1], encoding="ascii") as file:
    for line in file:
        word, moment, who = line.split()[:3]
        if word == "robbed":
            robbed.append(who)
        span = spans.setdefault(who, [int(moment), 0])
        span[1] = max(span[1], int(moment))
order = sorted((start, end, who) for who, (start, end) in spans.items())
overlaps = [(a[2], b[2]) for a, b in zip(order, order[1:]) if b[0] < a[1]]


def turns(kind):
    return sum(who.isdigit() if kind == "rlock" else who.startswith(kind) for who in spans)


counts = {kind: turns(kind) for kind in sys.argv[2:]}
print(f"{counts}, {len(overlaps)} overlaps, {len(robbed)} robbed")
sys.exit(1 if overlaps or robbed or min(counts.values()) == 0 else 0)
