#!/usr/bin/env python3
"""mutants.py PROGRAM...: shows that the checker can fail. Each program is an rlock with one fault, named after the patch in
tests/mutants/chaos that it was built with. It runs under fitting faults and must be caught within a minute.
"""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 60  # s of run

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
    "failed_run_marked": ["--mode", "once", "--calm"],
    "success_not_marked": ["--mode", "once", "--calm"],
    "done_waiter_starts": ["--mode", "once", "--calm", "--locks", "1"],
    "stopped_run_marked": ["--mode", "once", "--fault", "rlock_signalled", "--kind", "stubborn", "--hold", "0.5", "1"],
    "older_one_starts": ["--mode", "supersede", "--calm", "--hold", "0.01", "0.1"],
    "newcomer_goes_last": ["--mode", "supersede", "--calm", "--locks", "1"],
    "replaced_one_waits_on": ["--mode", "supersede", "--calm", "--locks", "1"],
    "second_failure_not_counted": ["--mode", "supersede", "--calm", "--locks", "1"],
    "slot_at_random": ["--mode", "slots", "--calm"],
    "slot_lost_by_put_back": ["--mode", "slots_loss", "--fault", "flushed", "--hold", "0.5", "2"],
}


def run(program):
    """Whether the fault was caught, and a line about it."""
    words = [sys.executable, "-B", os.path.join(HERE, "main.py"), "--until-caught", "--seconds", str(LIMIT),
             "--every", "0.3", *MUTANTS[os.path.basename(program)]]
    begin = time.monotonic()
    ended = subprocess.run(words, env={**os.environ, "RLOCK": program}, capture_output=True, text=True, check=False)
    took = time.monotonic() - begin
    broken = sorted(set(re.findall(r"^violation (\w+)", ended.stdout, re.MULTILINE)))
    example = re.search(r"^violation (.*)", ended.stdout, re.MULTILINE)
    if ended.returncode == 1 and broken:
        return True, f"caught in {took:.0f} s by {' '.join(broken)} ({example.group(1)})"
    return False, f"SURVIVED {took:.0f} s\n{ended.stdout}{ended.stderr}"


def main():
    programs = sys.argv[1:]
    if not programs:
        sys.exit(__doc__)
    unknown = [program for program in programs if os.path.basename(program) not in MUTANTS]
    if unknown:
        sys.exit(f"mutants.py does not know under which faults to run {' '.join(unknown)}: add it to MUTANTS")
    survivors = 0
    for program in programs:
        caught, how = run(program)
        print(f"{os.path.basename(program)}: {how}", flush=True)
        survivors += not caught
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
