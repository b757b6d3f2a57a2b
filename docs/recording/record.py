#!/usr/bin/env python3
"""record.py RLOCK FILE.svg: plays a session in a real terminal, on a server of its own, and draws it as an animated picture.

Two hosts, web1 and web2, are host names in namespaces of their own, where db1 is this machine: needs root, redis-server and unshare.
"""
import html
import os
import pathlib
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests/harness"))
from harness import free_ports  # noqa: E402  # pylint: disable=wrong-import-position
from redis_server import RedisServer  # noqa: E402  # pylint: disable=wrong-import-position
from screen import Screen  # noqa: E402  # pylint: disable=wrong-import-position

TITLE = "web2 waits for the lock that web1 holds; when the server hangs, rlock stops the job before its lease expires"
COLUMNS, ROWS = 92, 17
WIDE, HIGH, MARGIN = 8.4, 20, 18
KEY = 0.05   # seconds between two keys
REST = 1.4   # before the next command is typed
STYLE = """
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dde5; white-space: pre; }
.command { fill: #ffffff; font-weight: 600; } .prompt { fill: #6fc18b; } .title { fill: #8d97a5; font-size: 12px; }
@keyframes stay { 0%, 99.99% { opacity: 1 } 100% { opacity: 0 } }
@keyframes show { 0% { opacity: 0 } 100% { opacity: 1 } }
"""


class WrappingScreen(Screen):
    """Continues a long line in the next row."""

    def put(self, character):
        row, column = self.at
        if column > COLUMNS and character not in "\r\n":
            self.at = (row + 1, 1)
        super().put(character)


class Session:
    """What each row of the screen showed, and when."""

    def __init__(self, argv, env):
        self.screen = WrappingScreen(argv, COLUMNS, ROWS, env)
        self.begin = None
        self.rows = [[] for _ in range(ROWS)]  # [from, until or None, text]

    def now(self):
        return time.monotonic() - self.begin

    def look(self):
        for row, text in zip(self.rows, self.screen.lines()):
            text = text.rstrip()
            if not row or row[-1][2] != text:
                if row:
                    row[-1][1] = self.now()
                row.append([self.now(), None, text])

    def read(self, seconds):
        self.screen.take(seconds)
        if self.begin is not None:
            self.look()

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.02)

    def prompts(self):
        return sum(line.startswith("$") for line in self.screen.lines())

    def start(self):
        while not self.prompts():
            self.read(0.1)
        self.begin = time.monotonic()
        self.look()

    def enter(self, command):
        """Types a command and waits until the shell asks for the next one."""
        self.rest(REST)
        for key in command:
            self.screen.type(key)
            self.rest(KEY)
        before = self.prompts()
        self.screen.type("\n")
        end = time.monotonic() + 60
        while self.prompts() == before:
            if time.monotonic() > end:
                raise SystemExit(f"it never ended: {command}\n{self.screen.text()}")
            self.read(0.02)


def shape(begin, end, text, row):
    """A row's text while it was there. What stays to the end is visible without animations, too."""
    y = MARGIN + 24 + (row + 1) * HIGH
    if end is None:
        style = f"animation: show .01s {begin:.2f}s backwards" if begin > 0.05 else ""
    else:
        style = f"opacity: 0; animation: stay {end - begin:.2f}s {begin:.2f}s"
    if text.startswith("$"):
        words = f'<tspan class="prompt">$</tspan><tspan class="command">{html.escape(text[1:])}</tspan>'
    else:
        words = html.escape(text)
    style = f' style="{style}"' if style else ""
    return f'<text x="{MARGIN}" y="{y}" xml:space="preserve"{style}>{words}</text>'


def draw(session, title):
    width, height = COLUMNS * WIDE + 2 * MARGIN, ROWS * HIGH + 2 * MARGIN + 24
    shapes = [shape(*entry, number) for number, row in enumerate(session.rows) for entry in row
              if entry[2].strip() and (entry[1] is None or entry[1] - entry[0] > 0.005)]
    lights = "".join(f'<circle cx="{MARGIN + 4 + 18 * i}" cy="18" r="5.5" fill="{colour}"/>'
                     for i, colour in enumerate(("#e0655c", "#e3b341", "#58a55c")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
            f'role="img">\n<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n'
            f'<rect width="100%" height="100%" rx="9" fill="#1b2027"/>\n{lights}'
            f'<text class="title" x="50%" y="22" text-anchor="middle">web2</text>\n' + "\n".join(shapes) + "\n</svg>\n")


def on_host(name, *argv):
    return ["unshare", "--uts", "--mount", "sh", "-c", 'mount --bind hosts /etc/hosts; hostname "$1"; shift; exec "$@"', "sh", name, *argv]


def play(folder, env, server_pid):
    """The session: web2 waits for the job that web1 does, and then loses the server while it works itself."""
    (folder / "backup.sh").write_text('#!/bin/sh\nsleep "${1:-1}"\necho "backup of $(hostname) done, token $RLOCK_TOKEN"\n', encoding="utf-8")
    (folder / "backup.sh").chmod(0o755)
    (folder / "hosts").write_text("127.0.0.1 db1\n", encoding="ascii")
    job = ["rlock", "run", "shop/nightly", "--", "./backup.sh", "9"]
    quiet = {"cwd": folder, "env": env, "stdout": subprocess.DEVNULL}
    for _ in range(3):  # so that web2 can say how long it usually takes
        subprocess.run(on_host("web1", *job), check=True, **quiet)
    inputrc = folder / "inputrc"
    inputrc.write_text("set enable-bracketed-paste off\n", encoding="utf-8")
    shell = {**env, "PS1": "$ ", "TERM": "xterm", "INPUTRC": str(inputrc), "SERVER": str(server_pid)}
    session = Session(on_host("web2", "bash", "--norc", "--noprofile"), shell)
    with subprocess.Popen(on_host("web1", *job), **quiet) as holder:
        session.start()
        session.enter("rlock status")
        session.enter("rlock run shop/nightly -- ./backup.sh")
        holder.wait()
    session.enter("(sleep 9 && kill -STOP $SERVER &)     # the server is going to hang")
    session.enter("rlock run -t 6s shop/nightly -- ./backup.sh 60; echo $?")
    session.rest(3)
    os.kill(server_pid, signal.SIGCONT)
    session.screen.close()
    return session


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    rlock = pathlib.Path(sys.argv[1]).resolve()
    with RedisServer(port=free_ports(1)[0]) as server:
        os.chdir(server.folder)
        env = {**os.environ, "PATH": f"{rlock.parent}:{os.environ['PATH']}", "RLOCK_URL": f"redis://db1:{server.port}", "RLOCK_CONFIG": "/dev/null"}
        session = play(pathlib.Path(server.folder), env, server.process.pid)
    pathlib.Path(TOP, sys.argv[2]).write_text(draw(session, TITLE),
                                              encoding="utf-8")
    print("\n".join(session.screen.lines()))


if __name__ == "__main__":
    main()
