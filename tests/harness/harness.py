"""What every Python test needs that starts programs: they end with the test, and nobody waits for a time."""
import contextlib
import os
import random
import socket
import subprocess
import time

PATIENCE = 60.0  # s: only a failing test waits so long
BLOCK = 16  # ports
DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def until(holds, what="", seconds=PATIENCE, pause=0.01):
    """Asks again and again until a state is reached; its change cannot be waited for; returns what `holds` returned. `what` names the state,
    or makes its name."""
    end = time.monotonic() + seconds
    while not (result := holds()):
        if time.monotonic() > end:
            name = what() if callable(what) else what
            raise AssertionError(f"did not come true: {name or getattr(holds, '__qualname__', holds)}")
        time.sleep(pause)
    return result


def free_ports(count):
    """Of the loopback interface, at most BLOCK; none that a client's connection may get, nor open_port of the tests in bash. A test
    that listens on one of a block keeps the others off all of it."""
    while True:
        first = random.randrange(10000, 20000, BLOCK)
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for port in range(first, first + BLOCK):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return list(range(first, first + count))


def environment(url, config="/dev/null"):
    """For an rlock that uses these servers, whatever the tests themselves run under."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("RLOCK", "CI_JOB_URL", "BUILD_URL", "BUILDKITE_", "CIRCLE_", "GITHUB_"))}
    return ours | {"RLOCK_URL": url, "RLOCK_CONFIG": config}


def refusal(*words):
    """Why a command does not work here; empty when it does."""
    try:
        tried = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        if os.path.isabs(words[0]):  # a program of the tests: its build is what failed
            raise
        return str(error)
    return "" if tried.returncode == 0 else (tried.stderr.strip() or f"{words[0]} failed")
