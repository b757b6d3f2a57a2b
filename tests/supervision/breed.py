"""Trees of processes that are hard to end, planted as commands of rlock. The processes are made by breed.cpp."""
import os
import struct
import time

from support import Case, read, until

BREED = os.environ["BREED"]
# The ways in which shells and tools take a process out of its group, its session, its environment or its family.
WAYS_OUT = ("setsid $B & env -i $B & env -i setsid $B & (setsid $B &); nohup $B 2>/dev/null & bash -mc '$B & wait' & "
            "timeout 1000 $B & setsid -f env -i timeout 1000 $B; ")
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

    def plant(self, name, kind, *options, **how):
        """rlock over a tree of that kind, fully grown; `kind` "ways out" is all of those."""
        file = os.path.join(self.folder, f"life.{time.monotonic_ns()}")
        if kind == "ways out":
            script = WAYS_OUT.replace("$B", f"{BREED} {file} beat")
            births = script.count(BREED)
        else:
            births = KINDS[kind] if kind in KINDS else int(kind.split()[1])
            script = f"{BREED} {file} {kind} & "
        trap = how.pop("trap", "")
        holder = self.hold(name, trap + script + "echo on; exec sleep 1000", *options, **how)
        holder.life = file
        until(lambda: self.life(file)[1] >= births, f"the births of {kind}")
        holder.guard = int(read(f"/proc/{holder.pid}/task/{holder.pid}/children").split()[0])
        if os.geteuid() == 0:
            until(lambda: os.sched_getscheduler(holder.guard) == os.SCHED_FIFO, "the guard to come first")
        return holder

    def lease_end(self, name):
        """In seconds since 1970, as the server has it."""
        key = f"rlock:{{{name}}}:holders"
        lone = self.server.ask("get", key).split(" ")
        if lone[0] == "1":
            return int(lone[7]) / 1000
        holders = self.server.ask("zrange", key, "0", "-1", "withscores").split("\n")
        return int(holders[1]) / 1000 if len(holders) == 2 else 0

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
