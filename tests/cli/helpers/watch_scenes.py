#!/usr/bin/env python3
"""watch_scenes.py SCENE: plays one scene with `rlock watch` on a terminal. The server is RLOCK_URL's; SERVER is its folder."""
import os
import re
import signal
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../../harness"))
from redis_server import RedisServer  # noqa: E402
from screen import Screen  # noqa: E402

UTF8 = {"TERM": "xterm", "LC_ALL": "C.UTF-8"}


def watch(*arguments, columns=100, rows=24, env=None):
    return Screen(["rlock", "watch", *arguments], columns, rows, {**UTF8, **(env or {})})


def rlock(*arguments):
    return subprocess.run(["rlock", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def line_of(screen, name):
    return next((line for line in screen.lines() if line[2:].startswith(name)), "")


def live_change():
    """Locks come, are waited for, and go; the screen before is restored."""
    owner = rlock("acquire", "deploy", "--ttl", "20m", "--hide-command", "--reason", "release 7")
    screen = watch()
    screen.until("(release 7)")
    assert "held" in line_of(screen, "deploy"), screen.text()
    second = rlock("acquire", "backup", "--ttl", "20m")
    screen.until("backup")
    with subprocess.Popen(["rlock", "run", "-q", "backup", "--", "true"]) as waiter:
        screen.until("2 locks, 1 waiting")
        screen.type("k")
        screen.until("> backup")
        screen.type("\r")
        screen.until("WAITING")
        screen.until("backup: held, exclusive, 1 waiting")
        screen.type("\x1b")
        screen.until("> backup")
        rlock("release", "backup", "--owner", second)
        screen.until(lambda: "free" in line_of(screen, "backup"))
        assert waiter.wait() == 0
    rlock("release", "deploy", "--owner", owner)
    screen.until("nothing is held")
    assert screen.alternate and not screen.cooked()
    screen.type("q")
    assert screen.status() == 0 and not screen.alternate and screen.cooked()
    assert screen.raw.endswith(b"\x1b[?7h\x1b[?25h\x1b[?1049l"), screen.raw[-80:]


def dead_holder():
    """A holder lives, and then its rlock is killed: the table and the details say so."""
    with subprocess.Popen(["rlock", "run", "-t", "10m", "deploy", "--", "sleep", "1000"]) as holder:
        screen = watch(columns=200)
        screen.until(lambda: "held" in line_of(screen, "deploy"))
        assert "died" not in screen.text(), screen.text()
        holder.kill()
    screen.until(f"[rlock (pid {holder.pid}) has died; processes of its command may still run; the lock is free in ")
    screen.type("\r")
    screen.until(f"lease    rlock (pid {holder.pid}) has died")
    screen.type("q")
    assert screen.status() == 0


def resize():
    """The table follows the size of the terminal, and its lines always fit."""
    for i in range(30):
        rlock("acquire", f"job-{i:02}", "--ttl", "20m")
    screen = watch(rows=12)
    screen.until("job-07")
    assert "job-08" not in screen.text(), screen.text()
    screen.resize(8, 20)
    screen.until(lambda: any(line.split() == ["NAME", "FOR", "AGE"] for line in screen.lines()))
    screen.until(lambda: "job-03" in screen.text() and "job-04" not in screen.text())
    assert all(len(line) <= 20 for line in screen.lines()), screen.text()
    screen.type("G")
    screen.until("> job-29")
    screen.resize(40, 120)
    screen.until(lambda: "COMMAND" in screen.text() and "job-00" in screen.text())
    screen.type("q")
    assert screen.status() == 0


def no_colour():
    """NO_COLOR: no colour is set. Without UTF-8 only ASCII is printed. A dumb terminal gets lines alone."""
    rlock("acquire", "caf\u00e9", "--ttl", "20m")
    screen = watch(env={"NO_COLOR": "1", "LC_ALL": "C"})
    screen.until("caf?")
    screen.type("q")
    assert screen.status() == 0
    assert b"\x1b[1m" not in screen.raw and b"\x1b[7m" not in screen.raw, screen.raw
    assert all(byte < 0x80 for byte in screen.raw), screen.raw
    screen = watch(env={"TERM": "dumb"})
    screen.until(lambda: b"caf\xc3\xa9" in screen.raw)
    screen.type("q")
    assert screen.status() == 0 and b"\x1b" not in screen.raw, screen.raw


def hostile():
    """What others have stored cannot control the terminal."""
    rlock("acquire", "trap", "--ttl", "20m", "--hide-command", "--reason", "\x1b]0;owned\x07\u202e\x1b[2Jx")
    screen = watch()
    screen.until("\\x1b]0;owned")
    screen.type("\r")
    screen.until("reason")
    screen.type("q")
    assert screen.status() == 0
    assert b"\x1b]" not in screen.raw and "\u202e".encode() not in screen.raw, screen.raw


def server_ends():
    """The server is killed and comes back: the table stays with its age, and is up to date again."""
    folder = os.environ["SERVER"]
    rlock("acquire", "deploy", "--ttl", "20m")
    screen = watch()
    screen.until("deploy")
    with open(f"{folder}/pid", encoding="utf-8") as file:
        os.kill(int(file.read()), signal.SIGKILL)
    screen.until("no answer for")
    assert "held" in line_of(screen, "deploy"), screen.text()
    screen.until(lambda: any(f"  {age}s " in line_of(screen, "deploy") for age in range(3, 60)))
    os.unlink(f"{folder}/s")
    RedisServer("--pidfile", f"{folder}/pid", folder=folder, before=[]).start()  # the file of tests ends it
    screen.until(lambda: "no answer" not in screen.text() and "free" in line_of(screen, "deploy"))
    rlock("acquire", "later", "--ttl", "20m")
    screen.until(lambda: "held" in line_of(screen, "later"))
    screen.type("q")
    assert screen.status() == 0


def server_hangs():
    """The only server stops: that is said before its request is given up, the keys work, and the whole reason is shown."""
    rlock("acquire", "backup", "--ttl", "20m")
    rlock("acquire", "deploy", "--ttl", "20m")
    screen = watch(columns=60)
    screen.until("> backup")
    with open(os.environ["SERVER"] + "/pid", encoding="utf-8") as file:
        server = int(file.read())
    os.kill(server, signal.SIGSTOP)
    screen.until(lambda: re.search(r"no answer for \d+s$", screen.lines()[1]))
    screen.type("j")
    screen.until("> deploy")
    screen.until(lambda: "(connected, but no answer: stopped, swapping or busy; look at its log)" in " ".join(screen.text().split()))  # on several lines
    screen.type("\r")
    screen.until("deploy: held, exclusive")
    os.kill(server, signal.SIGCONT)
    screen.until(lambda: "no answer" not in screen.text())
    os.kill(server, signal.SIGSTOP)
    screen.until("no answer for")
    screen.type("q")
    assert screen.status() == 0
    os.kill(server, signal.SIGCONT)


def signals():
    """A signal restores the terminal and ends rlock; ^Z stops it, and it draws again when it is resumed."""
    rlock("acquire", "deploy", "--ttl", "20m")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        screen = watch()
        screen.until("deploy")
        if number == signal.SIGINT:
            screen.type("\x03")
        else:
            os.kill(screen.pid, number)
        assert screen.status() == -number and not screen.alternate, screen.raw[-100:]
        assert screen.cooked()
    # A shell with job control: rlock has a process group of its own, and the shell sets the modes while it is stopped.
    screen = Screen(["bash", "-c", "set -m; rlock watch; echo asleep; read -r; fg; echo code $?"], 100, 24, UTF8)
    screen.until("deploy")
    screen.type("\x1a")
    screen.until(lambda: not screen.alternate and "asleep" in screen.text())
    assert screen.cooked()
    screen.type("\n")
    screen.until(lambda: screen.alternate and "deploy" in screen.text())
    screen.until(lambda: not screen.cooked())
    screen.type("q")
    screen.until("code 0")
    screen.status()


def stopped_output():
    """A ^S that was never undone: q restores the terminal all the same."""
    rlock("acquire", "deploy", "--ttl", "20m")
    screen = watch()
    screen.until("deploy")
    screen.type("\x13q")
    assert screen.status() == 0 and not screen.alternate, screen.raw[-100:]
    assert screen.cooked()


globals()[sys.argv[1]]()
