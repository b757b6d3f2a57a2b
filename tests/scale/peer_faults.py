"""What becomes of a command, and of the one that waits, when something befalls the holder, its server or its network."""

import contextlib
import os
import signal
import subprocess
import time

from common import shown, until

AWAY = 15  # seconds that a server or a network is away: longer than a lease
WATCH = 75  # seconds: longer than what a lease, or somebody's absence, leads to


def start(words):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)


def end(process):
    """With all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def begun(path):
    """The pids of the commands that have begun."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as file:
        return [int(word) for word in file.read().split()]
    return []


class Scene:
    """One has the lock, through a relay if it has a network, and another one waits for it."""

    def __init__(self, peer, server, name):
        self.peer, self.server = peer, server
        self.path = os.path.join(server.folder, f"begun-{name}")
        self.relay, address = server.relay() if hasattr(server, "relay") else (None, server.address)
        job = ["sh", "-c", f"echo $$ >>{self.path}; exec sleep 1000"]
        self.first = start(peer.words(address, name, peer.lease, job))
        until(lambda: begun(self.path))
        self.second = start(peer.words(server.address, name, peer.lease, job))
        time.sleep(3)

    def watch(self, after):
        """Until the next command has begun and the first has ended, or had the time to end."""
        seen, begin = {"next": None, "ended": None, "gave_up": None, "beside": False}, time.monotonic()
        first = begun(self.path)[0]
        while (now := time.monotonic() - begin) < WATCH and (seen["ended"] is None or seen["next"] is None):
            if seen["next"] is not None and now > max(seen["next"], AWAY) + AWAY / 2:
                break
            if seen["ended"] is None and not alive(first):
                seen["ended"] = round(now, 1)
            if seen["next"] is None and len(begun(self.path)) > 1:
                seen["next"], seen["beside"] = round(now, 1), alive(first)
            if seen["gave_up"] is None and seen["next"] is None and self.second.poll() is not None:
                seen["gave_up"] = round(now, 1)
            if after and now > AWAY:
                after()
                after = None
            time.sleep(0.02)
        return seen

    def close(self):
        for process in (self.first, self.second):
            end(process)
        for pid in begun(self.path):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.relay:
            self.relay.close()


def harms(scene):
    """{name: (what happens, what ends it after AWAY)}"""
    found = {
        "its process is killed": (lambda: os.kill(scene.first.pid, signal.SIGKILL), None),
        "its process is stopped": (lambda: os.kill(scene.first.pid, signal.SIGSTOP), None),
    }
    if scene.relay:
        found[f"its network stalls for {AWAY} s"] = (scene.relay.stall, scene.relay.go_on)
        found[f"the server is dead for {AWAY} s"] = (scene.server.kill, scene.server.start)
    return found


def faults_of(peer):
    rows = []
    with peer.server(True) as server:
        names = None
        while names is None or names:
            scene = Scene(peer, server, f"fault-{len(rows)}")
            try:
                todo = harms(scene)
                names = list(todo) if names is None else names
                name = names.pop(0)
                harm, after = todo[name]
                harm()
                seen = scene.watch(after)
            finally:
                scene.close()
            rows.append(shown({
                "peer": peer.name, "what_befalls_the_holder": name, "next_command_after_s": seen["next"],
                "beside_the_first": seen["beside"], "first_command_ended_after_s": seen["ended"],
                "waiter_gave_up_after_s": seen["gave_up"]}))
    return rows
