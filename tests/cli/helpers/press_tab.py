#!/usr/bin/env python3
"""press_tab.py SHELL SCRIPT TYPED: types TYPED (with its TABs) into an interactive bash, zsh or fish on a
terminal of its own that has sourced the completion SCRIPT (zsh: that finds it in fpath, if it is named
_rlock). Prints the command line that this made on
stdout, and what the terminal showed meanwhile on stderr. Nothing is executed. In bash the package
bash-completion is loaded when BASH_COMPLETION names it.
"""
import os
import pty
import signal
import sys
import tempfile

READY = b"ready> "

BASH = """
PS1='ready> '
[ -z "$BASH_COMPLETION" ] || . "$BASH_COMPLETION"
. "$SCRIPT"
show_line() { printf '%s\\n' "$READLINE_LINE" >"$ANSWER"; }
bind -x '"\\C-g": show_line'
"""
ZSH = """
PS1='ready> '
[[ ${SCRIPT:t} != _rlock ]] || fpath=(${SCRIPT:h} $fpath)
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' insert-tab false
[[ ${SCRIPT:t} == _rlock ]] || source "$SCRIPT"
show_line() { print -r -- "$BUFFER" >"$ANSWER" }
zle -N show_line
bindkey '^G' show_line
"""
FISH = """
function fish_prompt; echo 'ready> '; end
function fish_greeting; end
source "$SCRIPT"
bind \\cg 'commandline >"$ANSWER"'
"""


def start(shell, folder):
    """Becomes the shell, with FOLDER for its home."""
    files = {"bash": ("rc", BASH), "zsh": (".zshrc", ZSH), "fish": ("config.fish", FISH)}
    name, text = files[shell]
    os.makedirs(folder + "/fish")
    path = f"{folder}/fish/{name}" if shell == "fish" else f"{folder}/{name}"
    with open(path, "w") as file:
        file.write(text)
    os.environ.update(TERM="xterm", ZDOTDIR=folder, XDG_CONFIG_HOME=folder, XDG_DATA_HOME=folder)
    words = {"bash": ["--noprofile", "--rcfile", path], "zsh": ["-d"], "fish": []}[shell]
    os.execvp(shell, [shell, *words, "-i"])


def main(shell, script, typed):
    signal.alarm(60)
    with tempfile.TemporaryDirectory() as folder:
        answer = folder + "/answer"
        os.environ.update(SCRIPT=os.path.abspath(script), ANSWER=answer)
        os.mkfifo(answer)
        pid, terminal = pty.fork()
        if pid == 0:
            start(shell, folder)
        shown = b""
        while READY not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, typed.encode() + b"\x07")
        line, shown = wait_for_line(answer, terminal)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    sys.stdout.write(line)
    sys.stderr.buffer.write(shown)


def wait_for_line(answer, terminal):
    """The terminal must be read all the while, else the shell would wait for us."""
    reader = os.fork()
    if reader == 0:
        with open(answer) as fifo:
            line = fifo.read()
        with open(answer + ".line", "w") as file:
            file.write(line)
        os._exit(0)
    os.set_blocking(terminal, False)
    shown = b""
    while os.waitpid(reader, os.WNOHANG) == (0, 0):
        shown += read_what_there_is(terminal)
    shown += read_what_there_is(terminal)
    with open(answer + ".line") as file:
        return file.read(), shown


def read_what_there_is(terminal):
    import select

    if not select.select([terminal], [], [], 0.02)[0]:
        return b""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


main(*sys.argv[1:])
