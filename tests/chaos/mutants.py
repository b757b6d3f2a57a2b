#!/usr/bin/env python3
"""mutants.py PROGRAM: shows that the checker can fail. PROGRAM is an rlock with one fault, named after the patch in
tests/mutants/chaos that it was built with. Under fitting faults it must break its invariant within four minutes, and the
real program, RLOCK, must break none under the same faults.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 240  # s of run; most are caught within 20
CONTROL = 5  # s of the real program's run

# name -> the invariant that it must break, and how main.py is to be run
MUTANTS = {
    "no_renewal": ("truthful exit", ["--calm"]),
    "renewal_ignored": ("no overlap", ["--fault", "operator", "--fault", "link_down", "--locks", "2", "--ttl", "1",
                              "--hold", "2", "4"]),
    "deadline_from_reply": ("dead in time", ["--fault", "replies_delay", "--locks", "2", "--ttl", "1.5"]),
    "guard_off": ("dead in time", ["--fault", "rlock_stopped", "--locks", "2", "--ttl", "1", "--hold", "1", "3"]),
    "no_check_after_wait": ("dead in time", ["--fault", "replies_delay", "--locks", "2", "--ttl", "1.5"]),
    "socket_inherited": ("left", ["--calm"]),
    "failed_run_marked": ("once", ["--mode", "once", "--calm"]),
    "stopped_run_marked": ("once", ["--mode", "once", "--fault", "rlock_signalled", "--kind", "stubborn", "--hold", "0.5", "1"]),
}


def run(program, faults, *words):
    print(f"--- {program}", flush=True)
    return subprocess.run([sys.executable, "-B", os.path.join(HERE, "main.py"), "--crowd", "0", "--every", "0.3", *faults, *words],
                          env={**os.environ, "RLOCK": program}, stdout=subprocess.PIPE, text=True, check=False)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    name = os.path.basename(sys.argv[1])
    if name not in MUTANTS:
        sys.exit(f"mutants.py does not know which invariant {name} breaks, and under which faults: add it to MUTANTS")
    invariant, faults = MUTANTS[name]
    mutant = run(sys.argv[1], faults, "--seconds", str(LIMIT), "--until-caught", invariant)
    print(mutant.stdout)
    caught = f"\nviolation {invariant}: " in mutant.stdout
    control = run(os.environ["RLOCK"], faults, "--seconds", str(CONTROL))
    print(control.stdout)
    print(f"{name}: invariant {invariant} {'was broken' if caught else 'HELD'}; the real program was "
          f"{'clean' if control.returncode == 0 else 'NOT CLEAN'}")
    return 0 if caught and control.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
