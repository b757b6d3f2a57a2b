#!/usr/bin/env python3
"""The checks of --supersede and --max-failures: a history without fault passes, and each way to break them is found."""
import unittest

import history
import nemesis
import newest_checks
from checked_history import Case
from history import Entry, Fault, Hold, Run
from workloads import SUPERSEDED, UNNUMBERED

MS = 10**6  # ns


def run(number, owner, came, ended, code, plan, events=()):
    words = [{"event": word, "t_ns": at * MS, "owner": owner, "token": token} for word, at, token in events]
    return Run(number, came * MS, {"ttl": 1, "wait": [], "lock": "red", **plan}, 0, ended * MS, code, [], words)


class Newest(Case):
    """a holds the lock from 100 to 500 ms. b (5) waits until c (7) replaces it, before d; c runs from 505 to 900 ms."""

    def setUp(self):
        self.seen = history.History(
            [Hold("red", "a", 10, 100 * MS, 500 * MS, 0), Hold("red", "c", 20, 505 * MS, 900 * MS, 0)],
            [run("0.1", "a", 90, 502, 0, {}, [("acquired", 99, 10)]),
             run("0.2", "b", 190, 310, SUPERSEDED, {"supersede": 5}, [("enqueued", 200, None), ("superseded", 305, None)]),
             run("0.3", "c", 290, 902, 0, {"supersede": 7}, [("enqueued", 301, None), ("acquired", 504, 20)])],
            [], [{"red": [Entry(99, "hold", "a", 1099), Entry(99, "token", "a", 10),
                          Entry(200, "queue", "b", 200), Entry(200, "newest", "b"), Entry(250, "queue", "d", 250),
                          Entry(300, "leave", "b"), Entry(300, "tombstone", "b", 5), Entry(300, "queue", "c", 200),
                          Entry(300, "newest", "c"), Entry(501, "free", "a"), Entry(501, "tombstone", "a", 2),
                          Entry(501, "leave", "c"), Entry(501, "hold", "c", 2501), Entry(501, "token", "c", 20)]}], 0)
        self.b, self.c = self.seen.runs[1:]
        self.ledger = self.seen.ledgers[0]["red"]

    def e_runs(self, number):
        """e comes later and runs."""
        self.seen.runs.append(run("0.4", "e", 910, 990, 0, {"supersede": number}, [("acquired", 920, 30)]))
        self.seen.holds.append(Hold("red", "e", 30, 925 * MS, 980 * MS, 0))

    def test_a_history_without_fault_passes(self):
        self.e_runs(7)
        self.clean(*nemesis.NEWEST, "E", "Q", "M", "F")
        self.assertIn("1 superseded in the queue", newest_checks.summary(self.seen))

    def test_an_older_one_runs_after_a_newer_one(self):
        self.e_runs(6)
        self.finds("run 0.4 of 6 began after run 0.3 of 7 was granted the lock", "newest")

    def test_one_without_a_number_may_run_after_any(self):
        self.e_runs(UNNUMBERED)
        self.clean("newest")

    def test_what_was_forgotten_bars_nobody(self):
        self.e_runs(6)
        self.seen.faults.append(Fault("forgotten", 903 * MS, 904 * MS, lock="red"))
        self.clean("newest")
        self.seen.faults[0].lock = "green"
        self.finds("began after run 0.3", "newest")

    def test_a_superseded_one_ran(self):
        self.seen.holds.append(Hold("red", "b", 15, 300 * MS, 304 * MS))
        self.finds("run 0.2 was superseded, but its command started", "superseded")
        self.finds("exit code 98, but its command started", "E")

    def test_superseded_by_an_older_one(self):
        self.c.plan["supersede"] = 4
        self.finds("run 0.2 of 5 was superseded, but nobody was newer", "superseded")

    def test_superseded_by_one_that_came_later(self):
        self.c.began = 320 * MS
        self.finds("nobody was newer", "superseded")

    def test_two_of_them_wait(self):
        del self.ledger[5:7]
        self.finds("2 wait that supersede each other", "place")

    def test_its_place_is_lost(self):
        self.ledger[7].value = 300
        self.finds("c did not get the place of the one that it replaced", "place")

    def test_one_that_replaces_nobody_comes_within_the_same_ms(self):
        self.ledger[9:9] = [Entry(300, "leave", "c", 0, 1), Entry(300, "queue", "e", 301, 2), Entry(300, "newest", "e", 0, 2)]
        self.clean("place")


class Failures(Case):
    """a and b fail, c gives up."""

    def setUp(self):
        plan = {"once": "key", "key": "k", "max": 2}
        self.seen = history.History(
            [Hold("red", "a", 10, 100 * MS, 500 * MS, 7), Hold("red", "b", 20, 505 * MS, 900 * MS, 1)],
            [run("0.1", "a", 90, 503, 7, plan, [("acquired", 99, 10), ("released", 501, 10)]),
             run("0.2", "b", 190, 903, 1, plan, [("acquired", 504, 20), ("released", 901, 20)]),
             run("0.3", "c", 290, 904, 75, plan, [("enqueued", 291, None), ("failed", 902, None)])], [], [{"red": []}], 0)
        self.a, self.b, self.c = self.seen.runs

    def d_runs(self):
        self.seen.runs.append(run("0.4", "d", 910, 990, 0, self.a.plan, [("acquired", 920, 30)]))
        self.seen.holds.append(Hold("red", "d", 30, 925 * MS, 980 * MS, 0))

    def test_a_history_without_fault_passes(self):
        self.clean("failures", "E")
        self.assertIn("2 failures, 1 gave up", newest_checks.summary(self.seen))

    def test_another_one_tries(self):
        self.d_runs()
        self.finds("run 0.4 began although 2 runs had failed", "failures")

    def test_what_was_forgotten_may_be_tried_again(self):
        self.d_runs()
        self.seen.faults.append(Fault("forgotten", 905 * MS, 906 * MS, lock="red"))
        self.clean("failures")

    def test_a_success_ends_the_count(self):
        self.d_runs()
        self.seen.holds[1].stop = self.b.code = 0
        self.c.code, self.c.events = 99, self.c.events[:1]
        self.clean("failures")

    def test_whom_an_operator_broke_did_not_fail(self):
        self.d_runs()
        self.seen.faults.append(Fault("operator", 850 * MS, 860 * MS))
        self.clean("failures")

    def test_a_release_that_was_not_confirmed_may_not_count(self):
        self.d_runs()
        self.b.events[-1]["detail"] = "not confirmed: no answer"
        self.clean("failures")

    def test_it_gives_up_early(self):
        self.seen.holds[1].stop = self.b.code = 0
        self.finds("run 0.3 gave up after 1 failures", "failures")

    def test_one_that_never_learned_of_its_grant_may_count(self):
        self.seen.holds.pop()
        self.b.code, self.b.events = 69, []
        self.clean("failures")

    def test_one_that_failed_for_another_reason_did_not_give_up(self):
        self.seen.holds[1].stop = self.b.code = 0
        self.c.code = 76
        self.clean("failures")

    def test_busy_though_it_was_to_wait(self):
        self.c.events = self.c.events[:1]
        self.finds("exit code 75, but it was to wait for ever", "E")


if __name__ == "__main__":
    unittest.main()
