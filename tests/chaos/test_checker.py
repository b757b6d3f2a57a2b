#!/usr/bin/env python3
"""The checker itself: a history without fault passes, and each way to break an invariant is found in it."""
import os
import tempfile
import unittest

import checker
import history
import nemesis
from history import Entry, Fault, Hold
from redis_node import redis_talk
from workloads import DONE

MS = 10**6  # ns


def hold(owner, token, start, last, stop=0, **more):
    return Hold("red", owner, token, start * MS, last * MS, stop, **more)


def run(number, owner, began, ended, code, events=(), **plan):
    """EVENTS: (what, ms, more)."""
    events = [{"event": what, "t_ns": at * MS, "owner": owner, **(more[0] if more else {})} for what, at, *more in events]
    return history.Run(number, began * MS, {"ttl": 1, "wait": [], "lock": "red", **plan}, 0, ended * MS, code, [], events)


def waited(what, at, ms):
    return what, at, {"waited_ms": ms}


def change(thing, **words):
    for name, value in words.items():
        setattr(thing, name, value)


class Scene:
    """A history, which the rows below change. What is checked in it lies in `seen`."""

    def __init__(self, holds, runs, ledger):
        self.seen = history.History(holds, runs, [], [{"red": ledger}], 0)
        self.holds, self.runs, self.ledger, self.faults = holds, runs, ledger, self.seen.faults

    def entry(self, what, owner):
        return next(one for one in self.ledger if (one.what, one.owner) == (what, owner))

    def fault(self, name, begin, end, **more):
        self.faults.append(Fault(name, begin * MS, end * MS, **more))

    def befalls(self, number, fault, at, signal):
        self.runs[number].faults.append({"fault": fault, "at": at * MS, "seconds": 0, "signal": signal})

    def comes(self, one_run, one_hold=None):
        self.runs.append(one_run)
        self.holds += [one_hold] if one_hold else []

    # ---- in the plain history ----

    def forced_out(self, *lost):
        """a is broken by an operator, then `lost` vanishes."""
        self.entry("tombstone", "a").value = 7
        self.ledger.extend(Entry(940, "gone", part) for part in lost)

    def back(self, number, first="token"):
        """a holds the lock again, with that token."""
        came = [Entry(950, "token", "a", number), Entry(950, "hold", "a", 2000)]
        self.ledger.extend(came if first == "token" else reversed(came))

    def later(self, ms):
        """What comes with and after the hand-over comes so much later."""
        for one in self.ledger[self.ledger.index(self.entry("leave", "b")):]:
            one.ms += ms

    # ---- in those of what is done once ----

    def d_runs(self, came=1000, **more):
        """d comes later and runs."""
        self.comes(run("0.4", "d", came, came + 200, 0, [("acquired", came + 1)], **(self.runs[0].plan | more)),
                   hold("d", 30, came + 5, came + 190))
        self.ledger.extend([Entry(came, "token", "d", 30), Entry(came + 200, "mark", "key:k", 30)])


def plain():
    """a (token 10) has the lock from 100 to 500 ms; b (token 20) waits from 200 and has it from 501 to 900 ms."""
    def job(owner, number, start, last, bump, before):
        return hold(owner, number, start, last, bumps=[((start + 5) * MS, bump)], stores=[((start + 6) * MS, "accepted", before)])
    return Scene(
        [job("a", 10, 100, 500, 1, 0), job("b", 20, 505, 900, 2, 10)],
        [run("0.1", "a", 90, 502, 0, [("acquired", 100), ("exited", 502)]),
         run("0.2", "b", 190, 902, 0, [("acquired", 503), ("exited", 902)])],
        [Entry(100, "hold", "a", 1100), Entry(100, "token", "a", 10), Entry(200, "queue", "b", 15), Entry(501, "free", "a"),
         Entry(501, "tombstone", "a", 2), Entry(501, "leave", "b"), Entry(501, "hold", "b", 2501), Entry(501, "token", "b", 20),
         Entry(502, "hold", "b", 1502), Entry(901, "free", "b"), Entry(901, "tombstone", "b", 2)])


# What is wrong, how it comes about, the check that finds it, and what that says; nothing: it is in order.
PLAIN = (
    ("the file of the lock was taken", lambda s: change(s.holds[1], overlaps=1), "no overlap", "file taken"),
    ("two commands at once", lambda s: change(s.holds[1], start=499 * MS), "no overlap", "before a was gone"),
    ("two commands at once with one between", lambda s: (change(s.holds[0], last=2000 * MS), s.holds.append(hold("c", 30, 950, 990))),
     "no overlap", "c began"),
    ("an update is lost", lambda s: change(s.holds[1], bumps=[(510 * MS, 1)]), "no overlap", "an update was lost"),
    ("a token is given twice", lambda s: change(s.holds[1], token=10), "tokens grow", "given twice"),
    ("tokens fall", lambda s: change(s.entry("token", "b"), value=9), "tokens grow", "issued after"),
    ("the resource takes a stale write", lambda s: s.holds[0].stores.append((520 * MS, "accepted", 20)), "tokens grow", "the resource took"),
    ("a newcomer has an older token", lambda s: (change(s.holds[1], token=9), change(s.runs[1], began=300 * MS)),
     "tokens grow", "token 9 was issued when 10 was known"),
    ("a stale holder comes", lambda s: s.holds[0].stores.append((520 * MS, "refused", 20)), "stale", "came with token"),
    ("tokens do not grow from hold to hold", lambda s: change(s.holds[1], token=9), "grows", "token 9 came after 10"),
    ("a released owner comes back", lambda s: s.ledger.append(Entry(950, "hold", "a", 2000)), "owner only", "brought back"),
    ("an expired owner may come back", lambda s: (change(s.entry("tombstone", "b"), value=0), s.ledger.extend(
        [Entry(950, "hold", "b", 1950), Entry(960, "free", "b"), Entry(960, "tombstone", "b", 2)])), "owner only", ""),
    ("a forced owner is put back without the tombstones", lambda s: (s.forced_out("released"), s.back(10)), "owner only", "a was brought back"),
    ("a forced owner is put back and extended without the tombstones", lambda s: (
        s.forced_out("released"), s.back(10), s.ledger.append(Entry(960, "token", "a", 11))), "owner only", "a was brought back"),
    ("a forced owner comes anew without the tombstones", lambda s: (s.forced_out("released"), s.back(30, "hold")), "owner only", ""),
    ("a forced owner is put back without the note", lambda s: (s.forced_out("who"), s.back(10)), "owner only", "a was brought back"),
    ("nothing remembers that an owner was forced out", lambda s: (s.forced_out("who", "released"), s.back(10)), "owner only", ""),
    ("a lease is removed early", lambda s: s.ledger.remove(s.entry("tombstone", "a")), "undue", "without a release or an operator"),
    ("the keys vanish", lambda s: s.ledger.insert(3, Entry(400, "gone", "holders")), "undue", "without a release or an operator"),
    ("a loss is reported in the middle of the lease", lambda s: s.runs[0].events.append(
        {"event": "lost", "t_ns": 300 * MS, "owner": "a", "detail": "deleted"}), "reported", "in the middle of its lease"),
    ("the command outlives its lease", lambda s: (change(s.holds[1], last=1510 * MS), change(s.entry("hold", "b"), value=1502)),
     "dead in time", "longer than its lease"),
    ("a command without a lease", lambda s: s.holds.append(hold("c", 30, 950, 990)), "dead in time", "without ever having had a lease"),
    ("a majority of servers no longer keeps others out", lambda s: s.seen.ledgers.extend(
        [{"red": [Entry(502, "hold", "b", 800)]}] * 2), "dead in time", "b ran 100 ms longer"),
    ("the command outlives its release", lambda s: change(s.holds[0], last=520 * MS), "ended", "after its release"),
    ("the command outlives its lease by the owner's own account", lambda s: change(s.holds[1], last=1600 * MS),
     "kept", "after its last renewal"),
    ("a free lock is not granted", lambda s: s.later(1600), "freed in time", "free for 1600 ms"),
    ("an outage is an excuse", lambda s: (s.later(1600), s.fault("server_stopped", 600, 2000)), "freed in time", ""),
    ("a lag of this machine excuses itself alone", lambda s: (s.later(1600), s.fault("lag", 600, 700)), "freed in time", "free for 1600 ms"),
    ("nobody hands the lock on", lambda s: change(s.holds[1], start=4000 * MS), "handed", "free for 3499 ms"),
    ("a minority of servers is no excuse", lambda s: (
        change(s.holds[1], start=4000 * MS), s.fault("server_stopped", 600, 3900, excuses=False)), "handed", "free for"),
    ("somebody is passed over", lambda s: s.ledger.insert(3, Entry(150, "queue", "c", 12)), "order", "b was served before 1"),
    ("somebody does not queue", lambda s: s.ledger.insert(3, Entry(300, "hold", "c", 1300)), "order", "c was served before 1"),
    ("a code that the command did not give", lambda s: change(s.runs[0], code=7), "truthful exit", "exit code 7, but its command said 0"),
    ("a success of a command that never started", lambda s: s.holds.pop(0), "truthful exit", "never started"),
    ("busy although it was to wait", lambda s: change(s.runs[0], code=75), "truthful exit", "exit code 75"),
    ("removed by an operator", lambda s: (
        s.holds.pop(0), change(s.runs[0], code=75, events=[]), s.fault("operator", 100, 110)), "truthful exit", ""),
    ("lost without a loss", lambda s: change(s.runs[0], code=76), "truthful exit", "never lost"),
    ("unreachable without an outage", lambda s: change(s.runs[0], code=69), "truthful exit", "exit code 69"),
    ("unguarded with a guard", lambda s: change(s.runs[0], code=71), "truthful exit", "nobody had killed its guard"),
    ("unguarded", lambda s: (change(s.runs[0], code=71), s.befalls(0, "guard_killed", 200, 9)), "truthful exit", ""),
    ("a signal that nobody sent", lambda s: change(s.runs[0], code=-6), "truthful exit", "signal 6"),
    ("an internal error", lambda s: change(s.runs[0], code=70), "truthful exit", "exit code 70"),
    ("a lease ends without a failed renewal", lambda s: s.runs[0].events.append(
        {"event": "lost", "t_ns": 300 * MS, "owner": "a", "detail": "the lease expired"}), "truthful exit", "nothing was wrong"),
    ("a socket in the command", lambda s: change(s.holds[0], sockets=1), "left", "a socket"),
)


def once(**plan):
    """a fails from 100 to 500 ms; b takes over from 505 to 900 ms and succeeds; c came at 300 and is done."""
    return Scene(
        [hold("a", 10, 100, 500, 7), hold("b", 20, 505, 900)],
        [run("0.1", "a", 90, 502, 7, [waited("acquired", 100, 10)], **plan),
         run("0.2", "b", 190, 902, 0, [("enqueued", 191), waited("acquired", 503, 313)], **plan),
         run("0.3", "c", 290, 903, DONE, [("enqueued", 291)], **plan)],
        [Entry(100, "hold", "a", 1100), Entry(100, "token", "a", 10), Entry(501, "free", "a"), Entry(501, "tombstone", "a", 2),
         Entry(501, "hold", "b", 2501), Entry(501, "token", "b", 20), Entry(901, "mark", "key:k", 20), Entry(901, "free", "b"),
         Entry(901, "tombstone", "b", 2)])


def with_key():
    return once(once="key", key="k")


UNRECORDED = "rlock: its success is not recorded; it may run again\n"
AGAIN = "run 0.4 (token 30) began although run 0.2 (token 20) had done it"
NOBODY = "ended as done, but no run that counts"
ONCE = (
    ("what was recorded is run again", lambda s: s.d_runs(), "once", AGAIN),
    ("another key is another matter", lambda s: s.d_runs(key="l"), "once", ""),
    ("what was not recorded may run again", lambda s: (s.d_runs(), change(s.runs[1], errors=UNRECORDED)), "once", ""),
    ("nothing explains what is not recorded", lambda s: change(s.runs[1], errors=UNRECORDED), "recorded", "although nothing was wrong"),
    ("a fault explains what is not recorded", lambda s: (
        change(s.runs[1], errors=UNRECORDED), s.fault("replies_swallow", 700, 900)), "recorded", ""),
    ("what was forgotten may run again", lambda s: (s.d_runs(), s.fault("forgotten", 950, 960, lock="red")), "once", ""),
    ("another lock was forgotten", lambda s: (s.d_runs(), s.fault("forgotten", 950, 960, lock="green")), "once", AGAIN),
    ("lost data explain a second run", lambda s: (s.d_runs(), s.fault("flushed", 950, 960)), "once", ""),
    ("a minority of servers that lost its data explains nothing", lambda s: (
        s.d_runs(), s.fault("server_emptied", 950, 960, excuses=False)), "once", AGAIN),
    ("nobody had succeeded", lambda s: change(s.holds[1], stop=1), "done", "0.3 " + NOBODY),
    ("nobody had succeeded yet", lambda s: change(s.runs[2], ended=800 * MS), "done", "0.3 " + NOBODY),
    ("who was asked to stop did not do it", lambda s: s.befalls(1, "rlock_signalled", 560, 15), "done", "0.3 " + NOBODY),
    ("what was forgotten is brought back", lambda s: (
        s.fault("forgotten", 950, 960, lock="red"), s.comes(run("0.4", "d", 970, 980, DONE, once="key", key="k"))),
     "done", "0.4 " + NOBODY),
    ("whether it was forgotten is not known", lambda s: (
        s.fault("forgotten", 950, 960, lock="red", sure=False), s.comes(run("0.4", "d", 970, 980, DONE, once="key", key="k"))),
     "done", ""),
    ("the mark of a failed run", lambda s: s.ledger.append(Entry(501, "mark", "key:k", 10)), "marks", "0.1 is marked, and did not succeed"),
    ("the mark of one that was asked to stop", lambda s: s.befalls(1, "rlock_signalled", 550, 15), "marks",
     "0.2 is marked, and did not succeed"),
    ("no mark", lambda s: s.ledger.remove(s.entry("mark", "key:k")), "marks", "no mark was written"),
    ("the mark of nobody", lambda s: s.ledger.append(Entry(950, "mark", "key:k", 77)), "marks", "token 77, which no such run had"),
    ("done and run", lambda s: s.holds.append(hold("c", 30, 895, 899)), "truthful exit", "exit code 99, but its command started"),
)


def within():
    return once(once="within", key="", span=0.4)


def before_the_grant(scene, *first):
    """d came before b was granted the lock, and began after b."""
    scene.comes(run("0.4", "d", 400, 970, 0, [*first, waited("acquired", 951, 550)], **scene.runs[0].plan), hold("d", 30, 955, 959))


def comes_at(scene, came, code):
    scene.comes(run("0.4", "d", came, came + 20, code, [waited("acquired", came + 1, 1)], **scene.runs[0].plan),
                hold("d", 30, came + 5, came + 9) if code == 0 else None)


WITHIN = (
    ("the distance is over", lambda s: comes_at(s, 1000, 0), "once", ""),
    ("the distance is not over", lambda s: (
        [one.plan.update(span=0.9) for one in s.runs], comes_at(s, 1000, 0)), "once", "had done it"),
    ("who came before the grant may have asked after it", before_the_grant, "once", ""),
    ("who waited before the grant is done", lambda s: before_the_grant(s, ("enqueued", 401)), "once", "had done it"),
    ("the first reply comes late", lambda s: s.comes(
        run("0.4", "d", 500, 1150, DONE, [("enqueued", 1100), waited("done", 1140, 640)], **s.runs[0].plan)), "done", ""),
    ("done too late", lambda s: comes_at(s, 1000, DONE), "done", "0.4 " + NOBODY),
)


def slots():
    """a has slot 1 from 100 to 500 ms, b has slot 2 from 200 to 600 ms."""
    return Scene(
        [hold("a", 10, 100, 500, slot=1), hold("b", 20, 200, 600, slot=2)],
        [run("0.1", "a", 90, 510, 0, [("acquired", 99)], slots=2), run("0.2", "b", 190, 610, 0, [("acquired", 199)], slots=2)],
        [Entry(99, "hold", "a", 1099), Entry(99, "token", "a", 10), Entry(99, "slot", "a", 1), Entry(199, "hold", "b", 1199),
         Entry(199, "token", "b", 20), Entry(199, "slot", "b", 2)])


def same_slot(scene, *before):
    """b has slot 1, as a; `before` that something happens. It says so itself."""
    scene.ledger[3:3] = before
    scene.ledger[-1].value = scene.holds[1].slot = 1


SLOTS = (
    ("two holders of one slot", lambda s: change(s.holds[1], slot=1), "no overlap", "began 300.0 ms before a was gone"),
    ("no slot", lambda s: change(s.holds[1], slot=None), "slots", "slot None of 2"),
    ("more than asked for", lambda s: change(s.holds[1], slot=3), "slots", "slot 3 of 2"),
    ("another slot at the server", lambda s: s.ledger.extend([Entry(300, "hold", "b", 1300), Entry(300, "slot", "b", 3)]),
     "slot", "has slot 3 at the server, 2 itself"),
    ("another slot of a grant that nobody claimed", lambda s: s.ledger.__setitem__(slice(0, 0), [
        Entry(50, "hold", "b", 60), Entry(50, "token", "b", 5), Entry(50, "slot", "b", 1)]), "slot", ""),
    ("one slot is given twice", same_slot, "slot", "2 leases have slot 1"),
    ("a slot is free again", lambda s: same_slot(s, Entry(150, "free", "a")), "slot", ""),
    ("a slot that the server has lost", lambda s: same_slot(s, Entry(150, "gone", "who")), "slot", ""),
)


class Checker(unittest.TestCase):
    def rows(self, make, rows, *checks):
        """Without a fault the history passes the checks; each row changes it."""
        self.assertEqual([], list(map(str, checker.check(make().seen, checks))))
        for what, do, check, text in rows:
            with self.subTest(what):
                scene = make()
                do(scene)
                found = list(map(str, checker.check(scene.seen, [check])))
                self.assertTrue(any(text in each for each in found) if text else not found, found)

    def test_the_checker_finds_faults_of_a_lock(self):
        self.rows(plain, PLAIN, *checker.CHECKS)

    def test_the_checker_finds_faults_of_once(self):
        self.rows(with_key, ONCE, *nemesis.ONCE, "truthful exit")

    def test_the_checker_finds_faults_of_once_within(self):
        self.rows(within, WITHIN, "once", "done")

    def test_the_checker_finds_faults_of_slots(self):
        self.rows(slots, SLOTS, "slots", "slot", "no overlap", "tokens grow")


class Reading(unittest.TestCase):
    def test_a_ledger_is_read_with_the_time_of_each_script(self):
        held = "ttl=1000 state=held token=42 since=500 limit=1 entries=0:{} slot=3 supersede=7 | {{x token=1"
        commands = [["SELECT", "0"], ["MULTI"], ["ZADD", "rlock:{red}:holders", "1500", "a"],
                    ["HSET", "rlock:{red}:who", "a", held.format(1500)],
                    ["PEXPIREAT", "rlock:{red}:meta", "9000000"], ["EXEC"],
                    ["MULTI"], ["ZADD", "rlock:{red}:holders", "1800", "a"],
                    ["HSET", "rlock:{red}:who", "a", held.format(1800)], ["EXEC"],
                    ["MULTI"], ["ZREM", "rlock:{red}:holders", "a"],
                    ["LPUSH", "rlock:{red}:history", "token=42 kind=run since=500 ended=900 how=released result=exit:0 | {x"], ["EXEC"],
                    ["HSET", "rlock:{red}:once", "key:k", "token=42 kept=9 ended=900 | {x"],
                    ["UNLINK", "rlock:{red}:meta", "rlock:{red}:released", "rlock:{red}:holders"],
                    ["SET", "rlock:{red}:holders", "not a lock"], ["FLUSHALL"]]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "aof")
            with open(path, "wb") as file:
                file.write(b"#TS:1\r\n" + b"".join(map(redis_talk.encode, commands)) + b"*2\r\n$3\r\nDE")
            entries = history.read_ledger([path])["red"]
        facts = [("token", 42), ("slot", 3)]
        wanted = [Entry(500, "hold", "a", 1500), *(Entry(500, what, "a", value) for what, value in facts),
                  Entry(800, "hold", "a", 1800), *(Entry(800, what, "a", value) for what, value in facts),
                  Entry(900, "free", "a"), Entry(900, "mark", "key:k", 42), Entry(900, "gone", "holders"), Entry(900, "gone", "released"),
                  Entry(900, "gone", "all")]
        self.assertEqual(wanted, entries)


if __name__ == "__main__":
    unittest.main()
