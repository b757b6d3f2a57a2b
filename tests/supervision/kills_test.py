"""rlock killed, starved of memory, or target by name. [docs/SUPERVISION.md, "When rlock or its guard dies"]"""
import os
import signal
import subprocess

from support import Case, child_of, named_below, needs_root, read, send, until

# In a group, in a session and in both of its own: killing only the command's group leaves these.
FAMILY = "timeout 1000 sleep 1001 & setsid sleep 1002 & (setsid sh -c 'sleep 1003 & sleep 1004' &); echo on; sleep 1005"

# FOLDER GROUP SCRIPT FAMILY: the memory controller belongs to one of both versions of cgroups.
OOM = r"""
mount -t cgroup2 none "$1" || exit
limit=memory.max
if ! grep -qw memory "$1/cgroup.controllers"; then
  umount "$1"
  mount -t cgroup -o memory none "$1" || exit
  limit=memory.limit_in_bytes
else
  echo +memory >"$1/cgroup.subtree_control" || exit
fi
mkdir "$1/$2" || exit
trap exit TERM
trap 'xargs -r kill -KILL <"$1/$2/cgroup.procs"; until rmdir "$1/$2"; do sleep 0.05; done' EXIT
echo 32M >"$1/$2/$limit" || exit
(echo 0 >"$1/$2/cgroup.procs"; exec rlock run oom -- sh -c "$3") >"$4" &
rlock=$!
touch limited
read -r _
echo 1000 >/proc/$rlock/oom_score_adj
# Together too much for the group, one by one of less weight than rlock now has.
hog='import time; x = bytearray(18 << 20); time.sleep(60)'
for _ in 1 2; do (echo 0 >"$1/$2/cgroup.procs"; exec python3 -c "$hog") & done
wait "$rlock"
"""


class Kills(Case):
    def kill_with(self, *pkill):
        """Among processes of its own, so that nobody else's rlock is hit."""
        needs_root("unshare", "-fp", "--mount-proc", "true")
        family = self.family()
        script = 'rlock run target -- sh -c "$1" >"$2" & read -r _; shift 2; "$@"; echo $? >hit; exec sleep 1000'
        init = self.start(["unshare", "-fp", "--kill-child", "--mount-proc", "sh", "-c", script, "sh", FAMILY,
                           family.path, *pkill], stdin=subprocess.PIPE)
        family.await_start()
        guard = named_below(init.pid, "lease-guard")
        until(lambda: read(f"/proc/{guard}/cmdline").startswith("lease-guard"), "the guard's own arguments")
        init.stdin.write(b"\n")
        init.stdin.flush()
        family.await_end()
        until(lambda: read("hit"), "the end of pkill")
        self.assertEqual(read("hit"), "0\n", "pkill found nothing")
        self.assertIsNone(init.poll(), "the end of the namespace would end everything")

    def test_a_pkill_by_name_leaves_the_guard(self):
        """`pkill -9 rlock` leaves the guard, which ends the grandchildren."""
        self.kill_with("pkill", "-9", "rlock")

    def test_a_pkill_by_command_line_leaves_the_guard(self):
        """`pkill -9 -f` likewise."""
        self.kill_with("pkill", "-9", "-f", "rlock run target")

    def test_the_kernel_ends_the_child_if_rlock_and_guard_are_killed(self):
        """Nobody is left to end the tree: the direct child dies by the kernel's hand."""
        holder = self.hold("both", "echo on; exec sleep 1000")
        guard = child_of(holder.pid, "lease-guard")
        send(holder.pid, signal.SIGSTOP)
        send(guard, signal.SIGKILL)
        send(holder.pid, signal.SIGKILL)
        holder.family.await_end()

    def test_the_guard_kills_the_descendants_after_an_oom_kill_of_rlock(self):
        """The OOM killer takes rlock, the guard ends the rest."""
        needs_root("unshare", "-m", "true")
        family = self.family()
        os.mkdir("cgroup")
        group = "rlock-" + os.path.basename(self.folder)
        memory = self.start(["unshare", "-m", "bash", "-uc", OOM, "bash", self.folder + "/cgroup", group, FAMILY,
                             family.path], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(memory.wait)
        self.addCleanup(memory.terminate)
        until(lambda: os.path.exists("limited") or memory.poll() is not None, "a group of limited memory")
        if memory.poll() is not None:
            self.skipTest("no limit of memory by cgroups here: " + memory.stderr.read().decode().strip())
        family.await_start()
        memory.stdin.write(b"\n")
        memory.stdin.flush()
        family.await_end()
        self.assert_ends(memory, 128 + signal.SIGKILL)
