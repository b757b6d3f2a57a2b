#!/usr/bin/env python3
"""What `--once-per` and `--once-within` promise to the users of cron on many hosts, whose clocks differ. RLOCK and
CLOCK_LIBRARY name what the build made. ONCE_TICKS, ONCE_NIGHTS: how many, where more are wanted than in the suite.
"""
import collections
import datetime
import os
import random
import shutil
import tempfile
import unittest
import zoneinfo

import clock
from crontabs import Crontabs, Start
from workloads import APART, DONE, MINUTE, MORNING

HOSTS = 10
TICKS = int(os.environ.get("ONCE_TICKS", "100"))
NIGHTS = int(os.environ.get("ONCE_NIGHTS", "170"))
AUTUMN = datetime.datetime(2026, 10, 20, 3, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))  # clocks change after 5 and 159 days
JOB = 0.05  # s
SEED = int(os.environ.get("ONCE_SEED", "0")) or random.SystemRandom().randrange(10**9)


class Case(unittest.TestCase):
    def setUp(self):
        self.chance = random.Random(SEED)
        self.folder = tempfile.mkdtemp(prefix="rlock-once-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def crontabs(self, options, job=JOB, most=40):
        tabs = Crontabs(self.folder, options, job, most)
        self.addCleanup(tabs.server.kill)
        return tabs

    def say(self, text):
        print(f"# {self._testMethodName}: {text} (seed {SEED})", flush=True)

    def clean(self, runs, codes):
        strange = [run for run in runs if run.exit not in codes]
        self.assertEqual([], [(run.exit, run.message) for run in strange[:3]])


def successes(tabs, name="nightly"):
    """tick -> how many runs of it succeeded."""
    return collections.Counter(tick for word, tick, _, _, code in tabs.jobs(name) if word == "end" and code == 0)


def failures(tabs, name="nightly"):
    return collections.Counter(tick for word, tick, _, _, code in tabs.jobs(name) if word == "end" and code != 0)


class OncePerMinute(Case):
    LASTS = 0.1  # s: what a minute of the false clocks takes here

    def starts(self, hosts_at, code):
        """Each host at each of its ticks, which comes as late as its clock is behind the first one's."""
        begin = clock.now()
        behind = [0, APART, *(self.chance.uniform(0, APART) for _ in range(HOSTS - 2))]
        share = self.LASTS / MINUTE
        return [Start(begin + int((tick * self.LASTS + behind[host] * share) * 1e9), tick, host,
                      wall=MORNING + tick * MINUTE + self.chance.randrange(3), code=code)
                for tick in range(TICKS) for host in hosts_at(tick)]

    def test_ten_hosts_whose_clocks_differ_run_it_once_a_minute(self):
        tabs = self.crontabs(["--once-per", "minute"])
        runs = tabs.run(self.starts(lambda _: range(HOSTS), "0"))
        self.clean(runs, (0, DONE))
        self.assertEqual({tick: 1 for tick in range(TICKS)}, dict(successes(tabs)))
        self.assertEqual(TICKS, sum(run.exit == 0 for run in runs))
        self.say(f"{TICKS} ticks, {TICKS} successful runs, {len(runs) - TICKS} found it done")

    def test_a_failed_tick_is_taken_over_while_somebody_comes(self):
        """Each tick comes to some of the hosts only, so that nobody is left for some."""
        tabs = self.crontabs(["--once-per", "minute"])
        runs = tabs.run(self.starts(lambda _: self.chance.sample(range(HOSTS), self.chance.choice((1, 1, 2, 3, 10))), "third"))
        self.clean(runs, (0, 1, DONE))
        good, bad = successes(tabs), failures(tabs)
        for tick in range(TICKS):
            codes = [run.exit for run in runs if run.tick == tick]
            lost = all(code == 1 for code in codes)
            self.assertEqual(0 if lost else 1, good[tick], f"tick {tick}: {codes}")
        taken = sum(1 for tick in bad if good[tick])
        self.assertGreater(taken, 0)
        self.say(f"{sum(good.values())} of {TICKS} ticks, {sum(bad.values())} runs failed, {taken} ticks were taken over, "
                 f"in {TICKS - sum(good.values())} nobody else came")


class OnceWithin(Case):
    """A distance instead of a calendar: half of the period, by hosts whose clocks are up to 0.35 of it apart."""
    LASTS = 3.0  # s: the period
    NAMES = 8  # beside each other, to save time
    APART = 0.35
    LATE = 0.08  # of a period: a host that this machine starts later is none with such a clock
    TIMES = 4  # as many ticks at most, where this machine is busy

    def starts(self, code, ticks):
        begin, found = clock.now(), []
        for number in range(self.NAMES):
            behind = [0, self.APART, *(self.chance.uniform(0, self.APART) for _ in range(HOSTS - 2))]
            phase = number / self.NAMES
            found += [Start(begin + int((tick - ticks[0] + phase + behind[host]) * self.LASTS * 1e9), tick, host, f"sync{number}",
                            code=code) for tick in ticks for host in range(HOSTS)]
        return found

    def in_time(self, runs):
        """(name, tick) -> whether this machine kept the hosts' clocks there, and one tick before."""
        bound, first = self.LATE * self.LASTS * 1e9, {}  # by how much the first host of a tick was late: then all of them may be
        for run in runs:
            late = run.asked - run.due
            first[run.name, run.tick] = min(late, first.get((run.name, run.tick), late))
        late = {(run.name, run.tick) for run in runs if run.asked - run.due - first[run.name, run.tick] > bound}
        late |= {(name, tick) for (name, tick), by in first.items() if abs(by - first.get((name, tick - 1), by)) > bound / 2}
        late |= {(name, tick + 1) for name, tick in late}
        return {(run.name, run.tick): (run.name, run.tick) not in late for run in runs}

    def all_of(self, tabs, count):
        return {(f"sync{number}", tick): times for number in range(self.NAMES)
                for tick, times in count(tabs, f"sync{number}").items()}

    def check(self, code, codes, ticks=TICKS):
        tabs = self.crontabs(["--once-within", f"{int(self.LASTS * 500)}ms"], most=200)
        each, first, counted = ticks // self.NAMES, 0, []
        while len(counted) < each * self.NAMES / 2:
            self.assertLess(first, each * self.TIMES, "this machine is too busy: hosts were late in nearly every tick")
            runs = tabs.run(self.starts(code, range(first, first + each)))
            self.clean(runs, codes)
            kept = self.in_time(runs)
            counted = [tick for tick, yes in kept.items() if yes]
            first += each
        good = self.all_of(tabs, successes)
        wrong = {tick: good.get(tick, 0) for tick in counted if good.get(tick, 0) != 1}
        self.assertEqual({}, wrong)
        bad = sum(self.all_of(tabs, failures).values())
        self.say(f"{len(counted)} of {len(kept)} ticks in time, each with one successful run; {bad} runs failed; "
                 f"{sum(run.exit == DONE for run in runs)} found it done")
        return bad

    def test_ten_hosts_whose_clocks_differ_run_it_once_a_period(self):
        self.assertEqual(0, self.check("0", (0, DONE)))

    def test_a_failed_tick_is_taken_over(self):
        self.assertGreater(self.check("third", (0, 1, DONE), TICKS // 2), 0)


class LongJob(Case):
    PERIOD = 1.0  # s
    TICKS = 24

    def test_a_job_five_periods_long_leaves_no_backlog(self):
        """All that wait behind it are done by the next one, however many ticks it has missed."""
        tabs = self.crontabs(["--once-within", f"{int(self.PERIOD * 500)}ms"], 5 * self.PERIOD, most=10**6)
        begin = clock.now()
        apart = 0.4 * self.PERIOD
        runs = tabs.run([Start(begin + int((tick * self.PERIOD + self.chance.uniform(0, apart)) * 1e9), tick, host)
                         for tick in range(self.TICKS) for host in range(HOSTS)])
        self.clean(runs, (0, DONE))
        worked = sorted((run for run in runs if run.exit == 0), key=lambda run: run.ended)
        for run in runs:
            # One job may be under way as it asks, and one more is due to it.
            ended = sum(run.asked < other.ended < run.ended for other in worked)
            self.assertLessEqual(ended, 3, f"tick {run.tick} waited for {ended} jobs")
        last = max(run.asked for run in runs)
        after = sum(run.ended > last for run in worked)
        self.assertLessEqual(after, 2)
        self.assertLess(len(worked), self.TICKS)
        self.say(f"{self.TICKS} ticks of {HOSTS} hosts, {len(worked)} runs; at most {tabs.crowd} at a "
                 f"time; {after} runs ended after the last tick")


class Nights(Case):
    HOSTS = 3
    LASTS = 0.02  # s: how far apart the hosts start

    def test_no_night_is_lost_but_those_in_which_all_hosts_failed(self):
        """03:00 by the calendar of Berlin, which has two nights in a winter with another number of hours."""
        tabs = self.crontabs(["--once-per", "day"], 0)
        tabs.environment["TZ"] = "Europe/Berlin"
        lost = 0
        for night in range(NIGHTS):
            three = int((AUTUMN + datetime.timedelta(days=night)).timestamp())
            codes = {host: self.chance.random() < 0.25 for host in range(self.HOSTS)}
            begin = clock.now()
            tabs.run([Start(begin + int(self.chance.uniform(0, self.LASTS) * 1e9), night, host,
                            wall=three + self.chance.randrange(APART), code=str(int(fails)))
                      for host, fails in codes.items()])
            lost += all(codes.values())
        self.clean(tabs.ended, (0, 1, DONE))
        good = successes(tabs)
        for night in range(NIGHTS):
            codes = [run.exit for run in tabs.ended if run.tick == night]
            self.assertEqual(0 if all(code == 1 for code in codes) else 1, good[night], f"night {night}: {codes}")
        self.assertEqual(NIGHTS - lost, sum(good.values()))
        self.say(f"{sum(good.values())} of {NIGHTS} nights, {sum(failures(tabs).values())} runs failed; in {lost} nights all "
                 f"{self.HOSTS} hosts did")


if __name__ == "__main__":
    unittest.main()
