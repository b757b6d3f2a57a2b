"""What the tests of the checks share: a history, and what the checks find in it."""
import unittest

import checker


class Case(unittest.TestCase):
    """A subclass has a history in `seen`."""

    def finds(self, text, *names):
        found = checker.check(self.seen, names)
        self.assertTrue(any(text in v.text for v in found), [str(v) for v in found])

    def clean(self, *names):
        self.assertEqual([], [str(v) for v in checker.check(self.seen, names)])
