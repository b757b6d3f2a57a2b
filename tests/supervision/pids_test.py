"""Recycled pids: who got the number of an ended command is never signalled. [docs/SUPERVISION.md, "The guard"]"""
import os
import random

from support import RLOCK, ROUNDS, Case, needs_root, note

SMALL = 420  # pids, in a namespace of our own

# In the namespace: `ROUNDS` times a few holds whose leases end just when their commands do, and strangers that
# come and go between. Prints how many holds there were, and how many strangers were ended by a signal.
STRESS = r"""
import os, random, subprocess, sys
rlock, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
holds = strays = 0
for _ in range(rounds):
    running = [subprocess.Popen([rlock, "run", "-q", "-t", "1", "--no-renew", "-k", "1ms", f"pids-{number}", "--", "sleep",
                                 f"{random.uniform(0.6, 0.9):.3f}"]) for number in range(8)]
    holds += len(running)
    while any(run.poll() is None for run in running):
        for stranger in [subprocess.Popen(["/bin/true"], start_new_session=True) for _ in range(8)]:
            strays += stranger.wait() < 0
print(holds, strays)
"""


def own_pid_max():
    """Whether a pid namespace has a pid_max of its own: Linux 6.14. Before, it was everybody's."""
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    return (major, minor) >= (6, 14)


class Pids(Case):
    def test_reused_pids_confuse_nothing(self):
        """Pid_max 420: holds whose leases end with their commands, among strangers."""
        needs_root("unshare", "-fp", "--mount-proc", "true")
        if not own_pid_max():
            self.skipTest(f"pid_max is everybody's before Linux 6.14, here {os.uname().release}")
        seed = random.randrange(1 << 30)
        script = f'echo {SMALL} >/proc/sys/kernel/pid_max && exec python3 -c "$1" "$2" "$3" "$4"'
        init = ["unshare", "-fp", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"]
        got = self.run_program([*init, STRESS, RLOCK, str(ROUNDS), str(seed)], timeout=60 + 10 * ROUNDS)
        self.assertRegex(got.stdout, r"^\d+ \d+\n$", got)
        holds, strays = (int(number) for number in got.stdout.split())
        note(f"pid_max {SMALL}, seed {seed}: {holds} holds, {strays} strangers signalled")
        self.assertEqual(strays, 0)
