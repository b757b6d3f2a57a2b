"""A cgroup for each host, so that a whole host can be stopped in one instant."""
import os
import re

from hosts import until


def mount_point():
    with open("/proc/mounts", encoding="ascii") as mounts:
        found = re.search(r"^\S+ (\S+) cgroup2 ", mounts.read(), re.MULTILINE)
    return found.group(1) if found else None


class Freezer:
    """Raises OSError where cgroups are not granted."""

    def __init__(self, hosts):
        top = mount_point()
        if top is None:
            raise OSError("no cgroup v2 is mounted")
        self.folders = []
        try:
            for host in hosts:
                folder = os.path.join(top, f"rlock-chaos-{os.getpid()}-{host.number}")
                os.mkdir(folder)
                self.folders.append(folder)
                self._move(host.process.pid, folder)
        except OSError:
            self.close()
            raise

    def _move(self, pid, folder):
        """The agent that unshare(1) forked, too: what it starts later follows by itself."""
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            for each in [str(pid), *children.read().split()]:
                with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as procs:
                    procs.write(each)

    def freeze(self, number):
        self._write(number, "1")
        return lambda: self._write(number, "0")

    def _write(self, number, state):
        with open(os.path.join(self.folders[number], "cgroup.freeze"), "w", encoding="ascii") as file:
            file.write(state)

    def close(self):
        """After the hosts have ended: the kernel takes a moment to empty a group."""
        for folder in self.folders:
            until(lambda folder=folder: removed(folder), f"an empty {folder}")


def removed(folder):
    try:
        os.rmdir(folder)
        return True
    except OSError:
        return False
