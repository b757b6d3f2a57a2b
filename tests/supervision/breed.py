"""Trees of processes that are hard to end, planted as commands of rlock. The processes are made by breed.cpp."""
import os
import struct
import time

from support import PATIENCE, Case, read, until

BREED = os.environ["BREED"]
# The ways in which shells and tools take a process out of its group, its session, its environment or its family.
WAYS_OUT = ("setsid $B & env -i $B & env -i setsid $B & (setsid $B &); nohup $B 2>/dev/null & bash -mc '$B & wait' & "
            "timeout 1000 $B & setsid -f env -i timeout 1000 $B; ").replace("$B", "$B beat")
# Kind but for `sessions N`, how many births there are before it counts as grown.
KINDS = {"forker": 8, "storm 200": 400, "bomb": 400, "threads": 40, "vfork": 2, "deep 60": 60, "daemons": 20}


class Trees(Case):
    def life(self, file):
        """(last sign of life, ns since 1970; births)"""
        try:
            with open(file, "rb") as life:
                return struct.unpack("qq", life.read(16))
        except (OSError, struct.error):
            return 0, 0

    def await_births(self, file, count):
        until(lambda: self.life(file)[1] >= count, f"{count} births", PATIENCE + count / 20)

    def await_quiet(self, file):
        """The end of all of them; returns the last sign of life."""
        def quiet():
            last = self.life(file)[0]
            time.sleep(0.1)  # much longer than any that beats is silent
            return self.life(file)[0] == last and last
        return until(quiet, "the end of all")

    def work(self, name, script, *options, births=1, **how):
        """rlock over a script in which `$B KIND` is a tree, once there were so many births."""
        file = os.path.join(self.folder, f"life.{time.monotonic_ns()}")
        holder = self.hold(name, script.replace("$B", f"{BREED} {file}"), *options, **how)
        holder.life = file
        self.await_births(file, births)
        return holder

    def plant(self, name, kind, *options, trap="", **how):
        """rlock over a tree of that kind, fully grown; `kind` "ways out" is all of those."""
        script = WAYS_OUT if kind == "ways out" else f"$B {kind} & "
        births = KINDS[kind] if kind in KINDS else script.count("$B") if kind == "ways out" else int(kind.split()[1])
        holder = self.work(name, trap + script + "echo on; exec sleep 1000", *options, births=births, **how)
        holder.guard = int(read(f"/proc/{holder.pid}/task/{holder.pid}/children").split()[0])
        if os.geteuid() == 0:
            until(lambda: os.sched_getscheduler(holder.guard) == os.SCHED_FIFO, "the guard to come first")
        return holder

    def last_sign(self, holder):
        """When the last process of the tree was alive, in seconds since 1970; it is dead now."""
        holder.family.await_end()
        return self.life(holder.life)[0] / 1e9

    def crowd(self, count):
        """So many other processes on the host."""
        if count == 0:
            return
        crowd = self.family()
        with open(crowd.path, "wb") as out:
            self.start([BREED, os.path.join(self.folder, "crowd"), "many", str(count)], stdout=out)
        crowd.await_start()
