#!/usr/bin/env python3
"""The checks of what is done once and of slots: a history without fault passes, and each way to break them is found."""
import unittest

import checker
import history
import nemesis
import once_checks
from checked_history import Case
from history import Entry, Fault, Hold, Run
from workloads import DONE

MS = 10**6  # ns


def run(number, owner, came, ended, code, once, events=()):
    waited = {"acquired": "waited_ms", "done": "waited_ms"}
    words = [{"event": word, "t_ns": at * MS, "owner": owner, waited.get(word, "-"): at - came} for word, at in events]
    plan = {"ttl": 1, "wait": [], "lock": "red", **once}
    return Run(number, came * MS, plan, 0, ended * MS, code, [], words)


def good(once):
    """a fails from 100 to 500 ms; b takes over from 505 to 900 ms and succeeds; c came at 300 and is done."""
    runs = [run("0.1", "a", 90, 502, 7, once, [("acquired", 100)]),
            run("0.2", "b", 190, 902, 0, once, [("enqueued", 191), ("acquired", 503)]),
            run("0.3", "c", 290, 903, DONE, once, [("enqueued", 291)])]
    holds = [Hold("red", "a", 10, 100 * MS, 500 * MS, 7), Hold("red", "b", 20, 505 * MS, 900 * MS, 0)]
    ledger = [Entry(100, "hold", "a", 1100), Entry(100, "token", "a", 10), Entry(501, "free", "a"),
              Entry(501, "tombstone", "a", 2), Entry(501, "hold", "b", 2501), Entry(501, "token", "b", 20),
              Entry(901, "mark", "key:k", 20), Entry(901, "free", "b"), Entry(901, "tombstone", "b", 2)]
    return history.History(holds, runs, [], [{"red": ledger}], 0)


class Once(Case):
    def setUp(self):
        self.seen = good({"once": "key", "key": "k"})
        self.a, self.b, self.c = self.seen.runs

    def d_runs(self, came=1000):
        """d comes later and runs."""
        self.seen.runs.append(run("0.4", "d", came, 1200, 0, self.a.plan, [("acquired", came + 1)]))
        self.seen.holds.append(Hold("red", "d", 30, (came + 5) * MS, 1190 * MS, 0))
        self.seen.ledgers[0]["red"] += [Entry(came, "token", "d", 30), Entry(1200, "mark", "key:k", 30)]

    def test_a_history_without_fault_passes(self):
        self.clean(*nemesis.ONCE, "E")
        self.assertIn("1 taken over after a failure", once_checks.summary(self.seen))

    def test_what_was_recorded_is_run_again(self):
        self.d_runs()
        self.finds("run 0.4 (token 30) began although run 0.2 (token 20) had done it", "once")
        self.assertIn("1 WITHOUT A REASON", once_checks.summary(self.seen))

    def test_another_key_is_another_matter(self):
        self.d_runs()
        self.seen.runs[-1].plan["key"] = "l"
        self.clean("once")

    def test_what_was_not_recorded_may_run_again(self):
        self.d_runs()
        self.b.errors = "rlock: its success is not recorded; it may run again\n"
        self.clean("once")
        self.assertIn("1 unconfirmed", once_checks.summary(self.seen))
        self.finds("although nothing was wrong", "recorded")

    def test_a_fault_explains_what_is_not_recorded(self):
        self.b.errors = "rlock: its success is not recorded; it may run again\n"
        self.seen.faults.append(Fault("replies_swallow", 700 * MS, 900 * MS))
        self.clean("recorded")

    def test_what_was_forgotten_may_run_again(self):
        self.d_runs()
        self.seen.faults.append(Fault("forgotten", 950 * MS, 960 * MS, lock="red"))
        self.clean("once")
        self.seen.faults[0].lock = "green"
        self.finds("had done it", "once")

    def test_lost_data_explain_a_second_run(self):
        self.d_runs()
        self.seen.faults.append(Fault("flushed", 950 * MS, 960 * MS))
        self.clean("once")

    def test_a_minority_of_servers_that_lost_its_data_explains_nothing(self):
        self.d_runs()
        self.seen.faults.append(Fault("server_emptied", 950 * MS, 960 * MS, excuses=False))
        self.finds("had done it", "once")

    def test_nobody_had_succeeded(self):
        self.seen.holds[1].stop = 1
        self.finds("0.3 ended as done, but no run that counts", "done")

    def test_nobody_had_succeeded_yet(self):
        self.c.ended = 800 * MS
        self.finds("0.3 ended as done, but no run that counts", "done")

    def test_who_was_asked_to_stop_did_not_do_it(self):
        self.b.faults.append({"fault": "rlock_signalled", "at": 560 * MS, "seconds": 0, "signal": 15})
        self.finds("0.3 ended as done, but no run that counts", "done")

    def test_what_was_forgotten_is_brought_back(self):
        self.seen.faults.append(Fault("forgotten", 950 * MS, 960 * MS, lock="red"))
        self.seen.runs.append(run("0.4", "d", 970, 980, DONE, self.a.plan))
        self.finds("0.4 ended as done, but no run that counts", "done")

    def test_whether_it_was_forgotten_is_not_known(self):
        self.seen.faults.append(Fault("forgotten", 950 * MS, 960 * MS, lock="red", sure=False))
        self.seen.runs.append(run("0.4", "d", 970, 980, DONE, self.a.plan))
        self.clean("done")

    def test_the_mark_of_a_failed_run(self):
        self.seen.ledgers[0]["red"].append(Entry(501, "mark", "key:k", 10))
        self.finds("0.1 is marked, and did not succeed", "marks")

    def test_the_mark_of_one_that_was_asked_to_stop(self):
        self.b.faults.append({"fault": "rlock_signalled", "at": 550 * MS, "seconds": 0, "signal": 15})
        self.finds("0.2 is marked, and did not succeed", "marks")

    def test_no_mark(self):
        self.seen.ledgers[0]["red"] = [entry for entry in self.seen.ledgers[0]["red"] if entry.what != "mark"]
        self.finds("no mark was written", "marks")

    def test_the_mark_of_nobody(self):
        self.seen.ledgers[0]["red"].append(Entry(950, "mark", "key:k", 77))
        self.finds("token 77, which no such run had", "marks")

    def test_done_and_run(self):
        self.seen.holds.append(Hold("red", "c", 30, 895 * MS, 899 * MS))
        self.finds("exit code 99, but its command started", "E")


class OnceWithin(Case):
    def setUp(self):
        self.seen = good({"once": "within", "key": "", "span": 0.4})
        self.c = self.seen.runs[2]

    def d(self, came, code):
        self.seen.runs.append(run("0.4", "d", came, came + 20, code, self.c.plan, [("acquired", came + 1)]))
        if code == 0:
            self.seen.holds.append(Hold("red", "d", 30, (came + 5) * MS, (came + 9) * MS, 0))

    def test_a_history_without_fault_passes(self):
        self.clean("once", "done")

    def test_the_distance_is_over(self):
        self.d(1000, 0)
        self.clean("once")

    def test_the_distance_is_not_over(self):
        self.c.plan["span"] = 0.9
        self.d(1000, 0)
        self.finds("had done it", "once")

    def test_who_came_before_the_grant_is_done(self):
        self.d(950, 0)
        self.seen.runs[-1].began = 400 * MS
        self.seen.runs[-1].events[0]["waited_ms"] = 550
        self.clean("once")
        self.seen.runs[-1].events.insert(0, {"event": "enqueued", "t_ns": 401 * MS, "owner": "d"})
        self.finds("had done it", "once")

    def test_the_first_reply_comes_late(self):
        self.seen.runs.append(run("0.4", "d", 500, 1150, DONE, self.c.plan, [("enqueued", 1100), ("done", 1140)]))
        self.clean("done")

    def test_done_too_late(self):
        self.d(1000, DONE)
        self.finds("0.4 ended as done, but no run that counts", "done")


class Slots(Case):
    def setUp(self):
        plan = {"ttl": 1, "wait": [], "lock": "red", "slots": 2}
        self.seen = history.History(
            [Hold("red", "a", 10, 100 * MS, 500 * MS, 0, slot=1), Hold("red", "b", 20, 200 * MS, 600 * MS, 0, slot=2)],
            [Run("0.1", 90 * MS, plan, 0, 510 * MS, 0, [], [{"event": "acquired", "t_ns": 99 * MS, "owner": "a"}]),
             Run("0.2", 190 * MS, plan, 0, 610 * MS, 0, [], [{"event": "acquired", "t_ns": 199 * MS, "owner": "b"}])],
            [], [{"red": [Entry(99, "hold", "a", 1099), Entry(99, "token", "a", 10), Entry(99, "slot", "a", 1),
                          Entry(199, "hold", "b", 1199), Entry(199, "token", "b", 20), Entry(199, "slot", "b", 2)]}], 0)
        self.a, self.b = self.seen.holds
        self.ledger = self.seen.ledgers[0]["red"]

    def test_a_history_without_fault_passes(self):
        self.clean("slots", "slot", "M", "F")

    def test_two_holders_of_one_slot(self):
        self.b.slot = 1
        self.finds("began 300.0 ms before a was gone", "M")

    def test_no_slot(self):
        self.b.slot = None
        self.finds("slot None of 2", "slots")

    def test_more_than_asked_for(self):
        self.b.slot = 3
        self.finds("slot 3 of 2", "slots")

    def test_another_slot_at_the_server(self):
        self.ledger += [Entry(300, "hold", "b", 1300), Entry(300, "slot", "b", 3)]
        self.finds("has slot 3 at the server, 2 itself", "slot")

    def test_another_slot_of_a_grant_that_nobody_claimed(self):
        self.ledger[0:0] = [Entry(50, "hold", "b", 60), Entry(50, "token", "b", 5), Entry(50, "slot", "b", 1)]
        self.assertEqual([], [str(v) for v in checker.check(self.seen, ["slot"])])

    def test_one_slot_is_given_twice(self):
        self.ledger[5].value = 1
        self.finds("2 leases have slot 1", "slot")

    def test_a_slot_is_free_again(self):
        self.ledger.insert(3, Entry(150, "free", "a"))
        self.ledger[6].value = 1
        self.assertEqual([], list(v for v in checker.check(self.seen, ["slot"]) if "leases" in v.text))

    def test_a_slot_that_the_server_has_lost(self):
        self.ledger.insert(3, Entry(150, "gone", "who"))
        self.ledger[6].value = 1
        self.assertEqual([], list(v for v in checker.check(self.seen, ["slot"]) if "leases" in v.text))


if __name__ == "__main__":
    unittest.main()
