#!/usr/bin/env python3
"""The checker itself: a history without fault passes, and each way to break an invariant is found in it."""
import os
import tempfile
import unittest

import checker
import history
import nemesis
import redis_talk
from history import Entry, Fault, Hold, Run

MS = 10**6  # ns
PLAN = {"ttl": 1, "wait": [], "lock": "red"}


def good():
    """Two runs: a (token 10) from 100 to 500 ms; b (token 20) waits from 200 and has it from 501 to 900 ms."""
    def run(number, owner, began, ended, fresh):
        events = [{"event": "acquired", "t_ns": fresh * MS, "owner": owner},
                  {"event": "exited", "t_ns": ended * MS, "owner": owner}]
        return Run(number, began * MS, dict(PLAN), 0, ended * MS, 0, [], events)
    holds = [Hold("red", "a", 10, 100 * MS, 500 * MS, 0, 0, 0, [(110 * MS, 1)], [(111 * MS, "accepted", 0)]),
             Hold("red", "b", 20, 505 * MS, 900 * MS, 0, 0, 0, [(510 * MS, 2)], [(511 * MS, "accepted", 10)])]
    ledger = [Entry(100, "hold", "a", 1100), Entry(100, "token", "a", 10), Entry(200, "queue", "b", 15),
              Entry(501, "free", "a"), Entry(501, "tombstone", "a", 2), Entry(501, "leave", "b"),
              Entry(501, "hold", "b", 2501), Entry(501, "token", "b", 20), Entry(502, "hold", "b", 1502),
              Entry(901, "free", "b"), Entry(901, "tombstone", "b", 2)]
    runs = [run("0.1", "a", 90, 502, 100), run("0.2", "b", 190, 902, 503)]
    return history.History(holds, runs, [], [{"red": ledger}], 0)


def entry(seen, what, owner):
    return next(e for e in seen.ledgers[0]["red"] if (e.what, e.owner) == (what, owner))


class Checker(unittest.TestCase):
    def setUp(self):
        self.seen = good()
        self.a, self.b = self.seen.holds
        self.ledger = self.seen.ledgers[0]["red"]

    def finds(self, invariant, text, *names):
        found = [v for v in checker.check(self.seen, names or nemesis.MODES["durable"][1]) if v.invariant == invariant]
        self.assertTrue(any(text in v.text for v in found), [str(v) for v in found])

    def clean(self):
        self.assertEqual([], [str(v) for v in checker.check(self.seen, checker.CHECKS)])

    def test_a_history_without_fault_passes_every_check(self):
        self.clean()

    def test_m_the_file_of_the_lock_was_taken(self):
        self.b.overlaps = 1
        self.finds("M", "file taken")

    def test_m_two_commands_at_once(self):
        self.b.start = 499 * MS
        self.finds("M", "before a was gone")

    def test_m_two_commands_at_once_with_one_between(self):
        self.a.last = 2000 * MS
        self.seen.holds.append(Hold("red", "c", 30, 950 * MS, 990 * MS))
        self.finds("M", "c began")

    def test_m_an_update_is_lost(self):
        self.b.bumps = [(510 * MS, 1)]
        self.finds("M", "an update was lost")

    def test_f_a_token_is_given_twice(self):
        self.b.token = 10
        self.finds("F", "given twice")

    def test_f_tokens_fall(self):
        entry(self.seen, "token", "b").value = 9
        self.finds("F", "issued after")

    def test_f_the_resource_takes_a_stale_write(self):
        self.a.stores.append((520 * MS, "accepted", 20))
        self.finds("F", "the resource took")

    def test_f_a_stale_holder_comes(self):
        self.a.stores.append((520 * MS, "refused", 20))
        self.finds("F", "came with token")

    def test_o_a_released_owner_comes_back(self):
        self.ledger.append(Entry(950, "hold", "a", 2000))
        self.finds("O", "brought back")

    def test_o_an_expired_owner_may_come_back(self):
        entry(self.seen, "tombstone", "b").value = 0
        self.ledger += [Entry(950, "hold", "b", 1950), Entry(960, "free", "b"), Entry(960, "tombstone", "b", 2)]
        self.clean_of("O")

    def forced_out(self, *lost):
        """a is broken by an operator, then `lost` vanishes."""
        entry(self.seen, "tombstone", "a").value = 7
        self.ledger += [Entry(940, "gone", part) for part in lost]

    def test_o_a_forced_owner_is_put_back_without_the_tombstones(self):
        self.forced_out("released")
        self.ledger += [Entry(950, "token", "a", 10), Entry(950, "hold", "a", 2000)]
        self.finds("O", "a was brought back", "O")

    def test_o_a_forced_owner_is_put_back_and_extended_without_the_tombstones(self):
        self.forced_out("released")
        self.ledger += [Entry(950, "token", "a", 10), Entry(950, "hold", "a", 2000), Entry(960, "token", "a", 11)]
        self.finds("O", "a was brought back", "O")

    def test_o_a_forced_owner_comes_anew_without_the_tombstones(self):
        self.forced_out("released")
        self.ledger += [Entry(950, "hold", "a", 2000), Entry(950, "token", "a", 30)]
        self.clean_of("O")

    def test_o_a_forced_owner_is_put_back_without_the_note(self):
        self.forced_out("who")
        self.ledger += [Entry(950, "token", "a", 10), Entry(950, "hold", "a", 2000)]
        self.finds("O", "a was brought back", "O")

    def test_o_nothing_remembers_that_an_owner_was_forced_out(self):
        self.forced_out("who", "released")
        self.ledger += [Entry(950, "token", "a", 10), Entry(950, "hold", "a", 2000)]
        self.clean_of("O")

    def clean_of(self, *names):
        self.assertEqual([], [str(v) for v in checker.check(self.seen, names)])

    def test_o_a_lease_is_removed_early(self):
        self.ledger.remove(entry(self.seen, "tombstone", "a"))
        self.finds("O", "without a release or an operator")

    def test_o_the_keys_vanish(self):
        self.ledger.insert(3, Entry(400, "gone", "holders"))
        self.finds("O", "without a release or an operator")

    def test_o_a_loss_is_reported_in_the_middle_of_the_lease(self):
        self.seen.runs[0].events.append({"event": "lost", "t_ns": 300 * MS, "owner": "a", "detail": "deleted"})
        self.finds("O", "in the middle of its lease")

    def test_k_the_command_outlives_its_lease(self):
        self.b.last = 1510 * MS
        entry(self.seen, "hold", "b").value = 1502
        self.finds("K", "longer than its lease")

    def test_k_the_command_outlives_its_release(self):
        self.a.last = 520 * MS
        self.finds("K", "after its release")

    def test_k_a_command_without_a_lease(self):
        self.seen.holds.append(Hold("red", "c", 30, 950 * MS, 990 * MS))
        self.finds("K", "without ever having had a lease")

    def test_k_by_the_owners_own_account(self):
        self.b.last = 1600 * MS
        self.finds("K", "after its last renewal", "kept")

    def test_l_a_free_lock_is_not_granted(self):
        self.later(1600)
        self.finds("L", "free for 1600 ms")

    def later(self, ms):
        """What comes with and after the hand-over comes so much later."""
        at = self.ledger.index(entry(self.seen, "leave", "b"))
        for one in self.ledger[at:]:
            one.ms += ms

    def test_l_an_outage_is_an_excuse(self):
        self.later(1600)
        self.seen.faults.append(Fault("server_stopped", 600 * MS, 2000 * MS))
        self.clean_of("L")

    def test_l_a_lag_of_this_machine_excuses_itself_alone(self):
        self.later(1600)
        self.seen.faults.append(Fault("lag", 600 * MS, 700 * MS))
        self.finds("L", "free for 1600 ms")

    def test_f_tokens_do_not_grow_from_hold_to_hold(self):
        self.b.token = 9
        self.finds("F", "token 9 came after 10", "grows")

    def test_f_a_newcomer_has_an_older_token(self):
        self.b.token = 9
        self.seen.runs[1].began = 300 * MS
        self.finds("F", "token 9 was issued when 10 was known")

    def test_l_nobody_hands_the_lock_on(self):
        self.b.start = 4000 * MS
        self.finds("L", "free for 3499 ms", "handed")

    def test_l_a_minority_of_servers_is_no_excuse(self):
        self.b.start = 4000 * MS
        self.seen.faults.append(Fault("server_stopped", 600 * MS, 3900 * MS, 0, False))
        self.finds("L", "free for", "handed")

    def test_k_a_majority_of_servers_no_longer_keeps_others_out(self):
        short = [Entry(502, "hold", "b", 800)]
        self.seen.ledgers += [{"red": short}, {"red": short}]
        self.finds("K", "b ran 100 ms longer", "K")

    def test_q_somebody_is_passed_over(self):
        self.ledger.insert(3, Entry(150, "queue", "c", 12))
        self.finds("Q", "b was served before 1")

    def test_q_somebody_does_not_queue(self):
        self.ledger.insert(3, Entry(300, "hold", "c", 1300))
        self.finds("Q", "c was served before 1")

    def test_e_a_code_that_the_command_did_not_give(self):
        self.seen.runs[0].code = 7
        self.finds("E", "exit code 7, but its command said 0")

    def test_e_a_success_of_a_command_that_never_started(self):
        self.seen.holds.remove(self.a)
        self.finds("E", "never started")

    def test_e_busy_although_it_was_to_wait(self):
        self.seen.runs[0].code = 75
        self.finds("E", "exit code 75")

    def test_e_removed_by_an_operator(self):
        self.seen.runs[0].code, self.seen.runs[0].events = 75, []
        self.seen.faults.append(Fault("operator", 100 * MS, 110 * MS))
        self.clean_of("E")

    def test_e_lost_without_a_loss(self):
        self.seen.runs[0].code = 76
        self.finds("E", "never lost")

    def test_e_unreachable_without_an_outage(self):
        self.seen.runs[0].code = 69
        self.finds("E", "exit code 69")

    def test_e_unguarded_with_a_guard(self):
        self.seen.runs[0].code = 71
        self.finds("E", "nobody had killed its guard")

    def test_e_unguarded(self):
        self.seen.runs[0].code = 71
        self.seen.runs[0].faults.append({"fault": "guard_killed", "at": 200 * MS, "seconds": 0, "signal": 9})
        self.clean_of("E")

    def test_e_a_signal_that_nobody_sent(self):
        self.seen.runs[0].code = -6
        self.finds("E", "signal 6")

    def test_e_an_internal_error(self):
        self.seen.runs[0].code = 70
        self.finds("E", "exit code 70")

    def test_e_a_lease_ends_without_a_failed_renewal(self):
        lost = {"event": "lost", "t_ns": 300 * MS, "owner": "a", "detail": "the lease ended"}
        self.seen.runs[0].events.append(lost)
        self.finds("E", "nothing was wrong")

    def test_left_a_socket_in_the_command(self):
        self.a.sockets = 1
        self.finds("left", "a socket")


class Reading(unittest.TestCase):
    def test_a_ledger_is_read_with_the_time_of_each_script(self):
        due = str(500 + history.META_LIFE_MS)
        commands = [["SELECT", "0"], ["MULTI"], ["ZADD", "rlock:{red}:holders", "1500", "a"],
                    ["HSET", "rlock:{red}:who", "a", "x", "+a", "1 held 1 42 500 1000 0 1"],
                    ["PEXPIREAT", "rlock:{red}:meta", due], ["EXEC"],
                    ["UNLINK", "rlock:{red}:meta", "rlock:{red}:released", "rlock:{red}:holders"], ["FLUSHALL"]]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "aof")
            with open(path, "wb") as file:
                file.write(b"#TS:1\r\n" + b"".join(map(redis_talk.encode, commands)) + b"*2\r\n$3\r\nDE")
            entries = history.read_ledger([path])["red"]
        wanted = [Entry(500, "hold", "a", 1500), Entry(500, "token", "a", 42), Entry(500, "gone", "holders"),
                  Entry(500, "gone", "released"), Entry(500, "gone", "all")]
        self.assertEqual(wanted, entries)

    def test_the_short_ways_show_the_time_of_each_script(self):
        commands = [["SET", "rlock:{red}:holders", "1 a 1 42 500 1000 2 1500 | {x", "PXAT", "61500"],
                    ["SET", "rlock:{red}:holders", "1 a 1 42 500 1000 2 1800 slot=3 | {x", "KEEPTTL"],
                    ["MULTI"], ["DEL", "rlock:{red}:holders", "rlock:{red}:limits"],
                    ["LPUSH", "rlock:{red}:history", "run 42 500 900 released exit:0 {x"], ["EXEC"],
                    ["SET", "rlock:{red}:holders", "not a lock"]]
        ledger = history.Ledger()
        for words in commands:
            ledger.command(words)
            if words[0] == "SET":
                ledger.settle()
        wanted = [Entry(500, "hold", "a", 1500), Entry(500, "token", "a", 42), Entry(800, "hold", "a", 1800),
                  Entry(800, "token", "a", 42), Entry(800, "slot", "a", 3), Entry(900, "gone", "holders")]
        self.assertEqual(wanted, ledger.locks["red"])


if __name__ == "__main__":
    unittest.main()
