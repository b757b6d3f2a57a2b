"""Pagers, editors and shells below rlock on a terminal. [docs/SUPERVISION.md, "Terminal"]"""
import os
import shutil
import signal
import termios

from support import Case, command_of, gone, pid_in, read, send, stopped, until
from shell import PROMPT, Shell

FAMILY = "setsid sh -c 'echo $$. >left; exec sleep 1000' & echo $$. >first; i=0; " \
         "while [ $i -lt 100 ]; do echo li''ne $i; i=$((i + 1)); done; sleep 1001"


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.shell = Shell(self)

    def needs(self, *programs):
        """The first of them that is installed."""
        found = [program for program in programs if shutil.which(program)]
        if not found:
            self.skipTest(f"not installed: {', '.join(programs)}")
        return found[0]

    def raw(self):
        return self.shell.modes() & termios.ICANON == 0

    def begin(self, pipe, options="-t 12"):
        for file in "left", "first":
            if os.path.exists(file):
                os.remove(file)
        with open("family", "w", encoding="utf-8") as file:
            file.write(FAMILY)
        self.shell.enter(f"rlock run {options} hit -- sh ./family{pipe}")
        self.command, self.left = pid_in("first"), pid_in("left")
        self.shell.see("line 1")
        return self.shell.rlock()

    def everybody_is_gone(self):
        until(lambda: gone(self.command) and gone(self.left), "the end of command and setsid child")

    def hit(self, rlock, fault):
        if fault == "killed":
            send(rlock, signal.SIGKILL)
        elif fault == "deleted":
            self.server.call("DEL", "rlock:{hit}:holders")
        else:
            send(rlock, signal.SIGSTOP)
        self.everybody_is_gone()
        if fault == "stopped":
            send(rlock, signal.SIGCONT)
        until(lambda: gone(rlock), "the end of rlock")

    def each_fault(self, pipe, leave=""):
        for fault in "stopped", "killed", "deleted":
            with self.subTest(fault=fault):
                self.server.call("FLUSHALL")
                rlock = self.begin(pipe, "-t 5 --no-renew" if fault == "stopped" else "-t 12")
                if leave:
                    until(self.raw, "a pager in raw mode")
                self.hit(rlock, fault)
                if leave:
                    self.assertTrue(self.raw(), "the pager has lost its modes")
                    self.shell.type(leave)
                self.shell.see(PROMPT)
                self.shell.assert_usable()

    def test_a_command_alone_ends_at_each_fault(self):
        """Rlock stopped, killed, key deleted: its command and a setsid child are dead."""
        self.each_fault("")

    def test_a_pipe_to_cat_ends_at_each_fault(self):
        """With `| cat`, too."""
        self.each_fault(" | cat")

    def test_a_pipe_to_less_outlives_each_fault(self):
        """With `| less`, which goes on until it is left."""
        self.needs("less")
        self.each_fault(" 2>/dev/null | less", "q")

    def test_the_modes_of_a_pager_are_its_own(self):
        """Where rlock ends its command it restores no modes that a pager behind it set or will reset: neither
        below one that came later than rlock, nor those of one that has gone before."""
        self.needs("less")
        self.begin(" 2>/dev/null | sh -c 'until [ -e left ]; do :; done; exec less'")
        until(self.raw, "a pager in raw mode")
        self.hit(self.shell.rlock(), "deleted")
        self.assertTrue(self.raw(), "cooked below the pager")
        self.shell.type("q")
        self.shell.see(PROMPT)
        rlock = self.begin(" 2>/dev/null | less")
        until(self.raw, "a pager in raw mode")
        self.shell.type("q")
        until(lambda: not self.raw(), "the end of the pager")
        self.hit(rlock, "deleted")
        self.shell.see(PROMPT)
        self.shell.assert_usable()

    def test_pagers_keep_the_terminal(self):
        """`rlock … | less` works beside rlock and after it; `… | rlock … less` has the keys of the terminal, its code comes back."""
        self.needs("less")
        number = "seq -f 'num''ber %g' 100"
        for line in f"rlock run pager -- {number} | less", f"{number} | rlock run pager -- less":
            self.shell.enter(line + "; echo co''de=$?")
            self.shell.see("number 10")
            self.shell.type("G")
            self.shell.see("number 100")
            self.shell.type("q")
            self.shell.see("code=0")
            self.shell.see(PROMPT)
            self.shell.assert_usable()

    def test_a_substitution_returns_with_the_command(self):
        """`x=$(rlock …)` gets the output, and returns when the command does."""
        self.assertEqual(self.shell.says("x=$(rlock run sub -- echo te''xt); echo \"$? [$x]\""), "0 [text]\n")

    def test_vim_stops_and_resumes(self):
        """Vim: ^Z, fg, :wq."""
        vim = self.needs("vim", "vim.tiny")
        self.shell.enter(f"rlock run edit -- {vim} -u NONE -N file")
        editor = command_of(self.shell.rlock(), vim)
        self.shell.see("file")
        self.shell.type("ihello\x1b")
        until(self.raw, "raw mode")
        self.shell.type("\x1a")
        self.shell.see("Stopped")
        self.shell.see(PROMPT)
        until(lambda: stopped(editor), "the stop of the editor")
        self.shell.assert_usable()
        self.shell.enter("fg")
        self.shell.see("hello")
        self.shell.type(":wq\r")
        self.shell.see(PROMPT)
        self.assertEqual(read("file"), "hello\n")
        self.shell.assert_usable()

    def test_a_killed_vim_leaves_a_cooked_terminal(self):
        """Vim SIGKILLed: the terminal is cooked again."""
        vim = self.needs("vim", "vim.tiny")
        self.shell.enter(f"rlock run edit -- {vim} -u NONE -N file; sh -c 'stty -a' >modes")
        editor = command_of(self.shell.rlock(), vim)
        until(self.raw, "raw mode")
        send(editor, signal.SIGKILL)
        until(lambda: "\n" in read("modes"), "the modes after rlock")
        self.assertIn(" icanon", read("modes"))
        self.assertIn(" echo ", read("modes"))
        self.shell.assert_usable()

    def test_an_inner_shell_has_its_keys(self):
        """bash below rlock: ^C, ^Z and fg work inside, and exit returns its code."""
        self.shell.begin_inner()
        self.shell.end_inner()
