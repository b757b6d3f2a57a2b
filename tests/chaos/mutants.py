#!/usr/bin/env python3
"""mutants.py [NAME...]: shows that the checker can fail. Every fault that RLOCK_MUTANTS compiles into rlock is run under a
fitting nemesis, and must be caught within a minute.
"""
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 60  # s of run
NOT_BUILT_IN = f"ended by signal {signal.SIGABRT:d}"  # mutated.cpp finds no place to change

# name -> how main.py is to be run
MUTANTS = {
    "no_renewal": ["--calm"],
    "renewal_ignored": ["--fault", "operator", "--fault", "link_down", "--locks", "2", "--ttl", "1",
                        "--hold", "2", "4"],
    "blind_release": ["--fault", "rlock_stopped"],
    "deadline_from_reply": ["--fault", "replies_delay", "--locks", "2", "--ttl", "1.5"],
    "guard_off": ["--fault", "rlock_stopped", "--locks", "2", "--ttl", "1", "--hold", "1", "3"],
    "no_check_after_wait": ["--fault", "replies_delay", "--locks", "2", "--ttl", "1.5"],
    "token_reset": ["--mode", "loss", "--fault", "flushed"],
    "last_come_first_served": ["--calm", "--locks", "2"],
    "socket_inherited": ["--calm"],
    "unclaimed_grant_runs": ["--fault", "waiter_stopped", "--locks", "1", "--workers", "2"],
    "forced_out_put_back": ["--mode", "loss", "--fault", "operator_now", "--workers", "1", "--locks", "4"],
}


def hunt(name):
    """Whether it was caught, in how many seconds, and how."""
    words = [sys.executable, "-B", os.path.join(HERE, "main.py"), "--until-caught", "--seconds", str(LIMIT),
             "--every", "0.3", *MUTANTS[name]]
    begin = time.monotonic()
    told = subprocess.run(words, env={**os.environ, "RLOCK_MUTANT": name}, capture_output=True, text=True, check=False)
    took = time.monotonic() - begin
    broken = sorted(set(re.findall(r"^violation (\w+)", told.stdout, re.MULTILINE)))
    example = re.search(r"^violation (.*)", told.stdout, re.MULTILINE)
    if NOT_BUILT_IN in told.stdout:
        return False, "was not built in: the rule that it breaks has changed its words"
    if told.returncode == 1 and broken:
        return True, f"caught in {took:.0f} s by {' '.join(broken)} ({example.group(1)})"
    return False, f"SURVIVED {took:.0f} s\n{told.stdout}{told.stderr}"


def main():
    survivors = []
    for name in sys.argv[1:] or MUTANTS:
        caught, how = hunt(name)
        print(f"{name}: {how}", flush=True)
        if not caught:
            survivors.append(name)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
