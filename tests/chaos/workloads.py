"""What the runs of a chaos run ask for beside the lock itself, by the mode: nothing, to be done once, or slots."""
import random

import clock

DONE = 99  # the exit code for what was done already
UNREACHABLE = 69  # rlock's own
BUSY = 75  # rlock's own
MINUTE = 60  # s
APART = 30  # s: the clocks of two hosts, at most
MORNING = 1_800_000_000  # s since 1970: a minute begins
PERIOD = 1.5  # s: what a minute of the hosts' false clocks takes; a KEY and a distance last about as long
SLOTS = 4


class Plain:
    """The lock alone."""
    quiet = ["-q"]
    done = ()  # codes of runs whose next one would find the same

    def __init__(self, config):
        self.config = config
        self.period = PERIOD * config["slow"]

    def age(self):
        """Periods since the beginning."""
        return (clock.now() - self.config["begin"]) / 1e9 / self.period

    def plan(self, _chance, _lock):
        """What is noted of a run, beside what every run has."""
        return {}

    def words(self, _plan):
        return []

    def environment(self, _plan):
        return {}

    def pause(self, chance, code):
        """s until the worker's next run; most are too short to wait for."""
        if code in self.done:
            return self.period * chance.uniform(0.05, 0.3)
        return chance.uniform(0.05, 0.25) if code in (65, 69, 75, 77, 78) else 0


class Once(Plain):
    """Each run is due in a minute by its host's clock, or has a KEY, or a distance; few are plain. The clocks run faster,
    so that a minute lasts PERIOD, and differ by up to half of it; while rlock runs its clock stands still enough, as a
    crontab that fires at the full minute would have it."""
    quiet = []  # a success that is not recorded is in a warning
    done = (DONE,)

    def __init__(self, config):
        super().__init__(config)
        # The first and the last host are the farthest apart.
        self.behind = APART * config["host"] / max(1, config["hosts"] - 1)

    def minute(self):
        return int((self.age() * MINUTE - self.behind) // MINUTE)

    def plan(self, chance, lock):
        now = int(self.age())
        # Most who come to a lock at about the same time want the same.
        draw = random.Random(f"{self.config['seed']} {lock} {now}") if chance.random() < 0.8 else chance
        kind = draw.choices(("key", "per", "within", ""), (5, 5, 3, 1))[0]
        plan = {"closed": False, "once": kind, "key": ""}
        if kind == "key":
            return plan | {"key": f"k{max(0, now - chance.choice((0, 0, 0, 0, 1, 5)))}"}
        if kind == "per":
            return plan | {"key": self.minute()}
        return plan | {"span": round(self.period / 2, 3)} if kind else {}

    def words(self, plan):
        option = {"key": ["--once", str(plan.get("key"))], "per": ["--once-per", "minute"],
                  "within": ["--once-within", f"{plan.get('span')}s"]}.get(plan.get("once"), [])
        return [*option, "--exit-code", f"done={DONE}"] if option else []

    def environment(self, plan):
        return clock.showing(MORNING + plan["key"] * MINUTE) if plan.get("once") == "per" else {}


class Slots(Plain):
    """Several holders; some runs want fewer beside them, and so get one of the first slots."""

    def plan(self, chance, _lock):
        return {"slots": chance.choices((SLOTS, SLOTS - 1, 2), (20, 1, 1))[0]}

    def words(self, plan):
        return ["--slots", str(plan["slots"])]


WORKLOADS = {"plain": Plain, "once": Once, "slots": Slots}
