#!/usr/bin/env python3
"""press_tab.py SHELL SCRIPT TYPED...: types each TYPED (with its TABs) into an interactive bash, zsh or fish on a
terminal of its own that has sourced the completion SCRIPT (zsh: that finds it in fpath, if it is named
_rlock). Prints the command line that each made on
stdout, and what the terminal showed meanwhile on stderr. Nothing is executed. In bash the package
bash-completion is loaded when BASH_COMPLETION names it.
"""
import os
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(__file__), "../../harness"))
from terminal import Terminal  # noqa: E402

BASH = """
PS1='ready> '
[ -z "$BASH_COMPLETION" ] || . "$BASH_COMPLETION"
. "$SCRIPT"
show_line() { printf '%s\\n' "$READLINE_LINE" >"$ANSWER.new"; mv "$ANSWER.new" "$ANSWER"; }
bind -x '"\\C-g": show_line'
"""
ZSH = """
PS1='ready> '
[[ ${SCRIPT:t} != _rlock ]] || fpath=(${SCRIPT:h} $fpath)
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' insert-tab false
[[ ${SCRIPT:t} == _rlock ]] || source "$SCRIPT"
show_line() { print -r -- "$BUFFER" >"$ANSWER.new"; mv "$ANSWER.new" "$ANSWER" }
zle -N show_line
bindkey '^G' show_line
"""
FISH = """
function fish_prompt; echo 'ready> '; end
function fish_greeting; end
source "$SCRIPT"
bind \\cg 'commandline >"$ANSWER.new"; mv "$ANSWER.new" "$ANSWER"'
"""


def begin(shell, folder):
    """The shell on a terminal, with FOLDER for its home."""
    files = {"bash": ("rc", BASH), "zsh": (".zshrc", ZSH), "fish": ("config.fish", FISH)}
    name, text = files[shell]
    # Without this folder fish makes completions of all manual pages, in the background.
    os.makedirs(folder + "/fish/generated_completions")
    path = f"{folder}/fish/{name}" if shell == "fish" else f"{folder}/{name}"
    with open(path, "w") as file:
        file.write(text)
    os.environ.update(TERM="xterm", ZDOTDIR=folder, XDG_CONFIG_HOME=folder, XDG_DATA_HOME=folder)
    words = {"bash": ["--noprofile", "--rcfile", path], "zsh": ["-d"], "fish": []}[shell]
    return Terminal([shell, *words, "-i"])


def main(shell, script, *lines):
    with tempfile.TemporaryDirectory() as folder:
        answer = folder + "/answer"
        os.environ.update(SCRIPT=os.path.abspath(script), ANSWER=answer)
        terminal = begin(shell, folder)
        terminal.see("ready> ")
        for typed in lines:
            before = len(terminal.raw)
            terminal.type(typed + "\x07")
            terminal.until(lambda: os.path.exists(answer))  # the shell waits for who reads the terminal
            sys.stderr.buffer.write(terminal.raw[before:])
            with open(answer) as file:
                sys.stdout.write(file.read())
            os.remove(answer)
            terminal.type("\x15")  # ^U: an empty line
        terminal.close()


main(*sys.argv[1:])
