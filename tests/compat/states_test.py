"""What each release left at a server, in the hands of today's rlock: the program RLOCK."""
import concurrent.futures
import json
import os
import pathlib
import tempfile
import unittest

import lab
import record
import situations
from lab import mutant

HERE = pathlib.Path(__file__).resolve().parent


def check(program, name, state):
    """The program finds what an rlock left in a situation."""
    situation = situations.ALL[name]
    with lab.Lab(program, situation.servers) as today:
        today.restore(state)
        if situation.shows:
            assert_contains(state["shown"], today.shown())
        situation.check(today, state)


def assert_contains(earlier, now, path="shown"):
    """A later rlock may show more."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        for field, value in earlier.items():
            assert field in now, f"{path}.{field} is gone"
            assert_contains(value, now[field], f"{path}.{field}")
    elif isinstance(earlier, list) and isinstance(now, list) and len(earlier) == len(now):
        for number, pair in enumerate(zip(earlier, now)):
            assert_contains(*pair, f"{path}[{number}]")
    else:
        assert earlier == now, f"{path} was {earlier!r}, and is {now!r}"


class States(unittest.TestCase):
    def check_folder(self, folder):
        with concurrent.futures.ProcessPoolExecutor(record.AT_ONCE) as pool:
            checks = {path.stem: pool.submit(check, os.environ["RLOCK"], path.stem, json.loads(path.read_text()))
                      for path in sorted(folder.glob("*.json"))}
            for situation, checked in checks.items():
                with self.subTest(version=folder.name, situation=situation):
                    checked.result()

    def test_today_s_rlock_reads_what_each_release_left(self):
        """packaging/releases names the releases whose states are here."""
        lines = (HERE.parents[1] / "packaging/releases").read_text().splitlines()
        releases = {line.split()[0] for line in lines if not line.startswith("#")}
        folders = {path.name: path for path in HERE.glob("states/*")}
        self.assertEqual(releases, set(folders))
        for folder in folders.values():
            self.check_folder(folder)

    def test_today_s_rlock_reads_what_it_leaves(self):
        """So what a release will leave can be recorded, and is found again."""
        with tempfile.TemporaryDirectory(prefix="rlock-states.") as folder:
            record.write(os.environ["RLOCK"], pathlib.Path(folder))
            self.check_folder(pathlib.Path(folder))


class Mutants(unittest.TestCase):
    """A version that reads a field wrongly is noticed by what today's leaves."""

    def check_notices(self, program, situation):
        with self.assertRaises(AssertionError) as noticed:
            check(program, situation, record.record(os.environ["RLOCK"], situation))
        print(f"# {program.name}: {str(noticed.exception).splitlines()[0]}")

    def test_a_success_that_is_not_found_is_noticed(self):
        self.check_notices(mutant("success_not_found"), "Done")

    def test_a_token_counter_that_is_not_found_is_noticed(self):
        self.check_notices(mutant("token_counter_not_found"), "ClockAhead")
