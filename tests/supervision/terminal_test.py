"""What a person at a terminal types at rlock, and shells around it. [docs/SUPERVISION.md, "Terminal"]"""
import re
import signal
import termios
import time

from shell import PROMPT, Shell, await_session
from support import PROBE, RLOCK, Case, command_of, gone, named_below, pid_in, read, send, stopped, until
from terminal import Terminal

# Says its pid at each turn, and then runs for ever.
TURN = "rlock run loop -- sh -c 'echo tu''rn=$$.; exec sleep 1000'"


class AtATerminal(Case):
    def shell(self):
        return Shell(self)

    def pid_after(self, shell, word):
        shell.see(word + "=")
        return int(shell.see("."))

    def test_each_signal_of_a_key_arrives_once(self):
        r"""^C, ^\ and WINCH reach the command once."""
        terminal = Terminal([RLOCK, "run", "once", "--", PROBE, "signals"], self.environment)
        self.addCleanup(terminal.close)
        terminal.see("ready\r\n")
        await_session(terminal)
        terminal.resize(30, 100)
        terminal.see("28\r\n")
        terminal.type("\x03")
        terminal.see("2\r\n")
        terminal.type("\x1c")
        terminal.see("3\r\n")
        # A second one of any of them would come before this.
        send(terminal.pid, signal.SIGUSR2)
        terminal.see("12\r\n")
        terminal.type("\x04")
        self.assertEqual(terminal.status(), 0)
        lines = terminal.shown.replace("^C", "").replace("^\\", "").split()
        self.assertEqual(lines, ["ready", "28", "2", "3", "12"])

    def on(self, *argv):
        """A terminal with ARGV on it, which has said `on`."""
        terminal = Terminal(list(argv), self.environment)
        self.addCleanup(terminal.close)
        terminal.see("on\r\n")
        return terminal

    def test_a_command_outside_of_the_group_gets_the_keys(self):
        r"""^C and ^\ reach a command that has left the group of the terminal, as setsid and timeout do."""
        for keys, number in ("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT):
            for outside in ["setsid"], ["timeout", "1000"]:
                with self.subTest(number=number, outside=outside):
                    terminal = self.on(RLOCK, "run", "out", "--", *outside, "sh", "-c", "echo on; exec sleep 1000")
                    terminal.type(keys)
                    self.assertIn(terminal.status(), (-number, 128 + number))  # timeout makes a code of it

    def test_a_descendant_that_is_waited_for_gets_the_keys(self):
        """^C with --wait-descendants, when the command itself has ended: the code stays the command's."""
        script = "echo $$. >pid; setsid -f sh -c 'echo on; exec sleep 1000'; exit 5"
        terminal = self.on(RLOCK, "run", "--wait-descendants", "-v", "left", "--", "sh", "-c", script)
        until(lambda: gone(pid_in("pid")), "the end of the command")
        terminal.type("\x03")
        self.assertEqual(terminal.status(), 5)

    def test_a_slow_cleanup_names_what_it_left(self):
        """^C counts only within --kill-after: a command that cleans up for longer keeps its worker, and rlock says so."""
        worker = "(trap '' INT; echo $$. >pid; exec sleep 1000 </dev/null >/dev/null 2>&1)"
        cleanup = "sleep 0.2; exit 130"
        terminal = self.on(RLOCK, "run", "-k", "50ms", "slow", "--", "sh", "-c",
                           f"{worker} & trap 'echo asked; {cleanup}' INT; until [ -s pid ]; do sleep 0.01; done; echo on; while :; do sleep 0.05; done")
        terminal.type("\x03")
        terminal.see("asked\r\n")
        terminal.see("the command failed with 130 and left a process running without the lock: process ")
        self.assertEqual(terminal.status(), 130)
        self.sweep()

    def test_what_the_command_put_apart_does_not_get_the_keys(self):
        """^C ends a command in our group; a daemon of its own it has to end itself."""
        script = ("setsid -f sh -c 'echo $$. >pid; exec sleep 1000 </dev/null >/dev/null 2>&1'; "
                  f"until [ -s pid ]; do sleep 0.01; done; echo on; exec {PROBE} signals")
        terminal = self.on(RLOCK, "run", "apart", "--", "sh", "-c", script)
        terminal.see("ready\r\n")
        terminal.type("\x03")
        terminal.see("2\r\n")
        terminal.type("\x04")
        self.assertEqual(terminal.status(), 0)
        daemon = pid_in("pid")
        self.assertFalse(gone(daemon))
        send(daemon, signal.SIGKILL)

    def test_an_alarm_of_the_kernel_is_no_key(self):
        """alarm(2), set by the program that executes rlock: the command gets the signal, as it is without a terminal."""
        alarm = "import os, signal, sys; signal.alarm(1); os.execvp(sys.argv[1], sys.argv[1:])"
        terminal = Terminal(["python3", "-c", alarm, RLOCK, "run", "alarm", "--", "sleep", "1000"], self.environment)
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.status(), -signal.SIGALRM)

    def interrupt(self, line):
        """^C in the middle of LINE's first turn; there must be no second."""
        shell = self.shell()
        shell.enter(line)
        command = self.pid_after(shell, "turn")
        until(lambda: read(f"/proc/{command}/comm") == "sleep\n", "the command")
        shell.type("\x03")
        self.assertNotIn("turn", shell.see("ready> "))
        self.assertTrue(gone(command))
        shell.assert_usable()
        self.assert_nothing_left("loop")

    def test_an_interrupt_ends_a_loop_of_bash(self):
        """^C ends the loop of an interactive bash."""
        self.interrupt(f"for i in 1 2 3; do {TURN}; done")

    def test_an_interrupt_ends_the_loop_of_a_script(self):
        """^C ends the loop of a script in bash and in dash."""
        for shell in "bash", "dash":
            with self.subTest(shell=shell):
                with open("script", "w", encoding="utf-8") as file:
                    file.write(f"for i in 1 2 3; do {TURN}; done\n")
                self.interrupt(f"{shell} ./script")

    def test_an_interrupt_ends_a_run_that_has_just_started(self):
        """^C at any moment of the start ends rlock and the command, whichever guard forks it."""
        long = {"LONG": "x" * 5000}  # no room in a guard that was forked before the grant
        for delay in range(0, 8000, 200):
            terminal = Terminal(["bash", "-c", "echo on; rlock run start -- sleep 1000; echo after"],
                                self.environment | (long if delay % 400 else {}))
            self.addCleanup(terminal.close)
            terminal.see("on\r\n")
            time.sleep(delay / 1e6)
            terminal.type("\x03")
            self.assertEqual(terminal.status(), -signal.SIGINT)

    def test_an_interrupt_stops_a_subshell(self):
        """^C ends a subshell with what comes after rlock in it."""
        self.interrupt(f"({TURN}; echo af''ter; {TURN})")

    def test_an_interrupt_ends_make(self):
        """^C ends `make -k` with its remaining goals."""
        with open("Makefile", "w", encoding="utf-8") as file:
            file.write("all: one two\none two:\n\t@" + TURN.replace("$", "$$") + "\n")
        self.interrupt("make -k")

    def hold_and_stop(self, *options, line="{}"):
        """(shell, what was said between ^Z and the shell's prompt); the command's pid is in the file pid."""
        shell = self.shell()
        command = "sh -c 'echo $$. >pid; echo o''n; read line; echo go''t $line'"
        shell.enter(line.format(f"rlock run {' '.join(options)} held -- {command}"))
        shell.see("on\r\n")
        shell.type("\x1a")
        said = shell.see(PROMPT)
        # The shell asks for more as soon as rlock has stopped. A command that came later would read what is typed next.
        until(lambda: stopped(pid_in("pid")) or gone(pid_in("pid")), "the stop of the command")
        return shell, said

    def test_a_stop_is_reported_once(self):
        """^Z: rlock says until when, once; fg brings both back and says nothing. Also beside an older job."""
        for line in "{}", "(sleep 1000 & exec {})":
            with self.subTest(line=line):
                shell, said = self.hold_and_stop(line=line)
                self.assertEqual(said.count("rlock:"), 1)
                notice = re.search(r'rlock: "held": suspended; rlock will stop the command in (\d+)s, before', said)
                self.assertTrue(notice and 0 < int(notice.group(1)) < 60, said)
                shell.enter("fg")
                shell.type("line\n")
                self.assertNotIn("rlock:", shell.see("got line"))
                shell.assert_usable()

    def test_a_stop_that_is_longer_than_the_lease_ends_the_command(self):
        """^Z longer than the lease ends the command, 76; also with -q, which keeps rlock from reporting the stop."""
        for options, lines in ((), 1), (("-q",), 0):
            with self.subTest(options=options):
                shell, said = self.hold_and_stop("-t", "5", "--no-renew", *options)
                self.assertEqual(said.count("rlock:"), lines)
                until(lambda: gone(pid_in("pid")), "the end of the command")
                shell.enter("fg; echo co''de=$?")
                self.assertIn("rlock: lost", shell.see("code=76"))
                shell.assert_usable()

    def test_a_stop_that_nobody_would_resume_stops_nothing(self):
        """In an orphaned group ^Z stops nobody: nothing is printed, and the command goes on."""
        script = "echo on; read line; echo go''t $line; sleep 0.2"
        terminal = self.on(RLOCK, "run", "orphan", "--", "sh", "-c", script)
        terminal.type("\x1aline\n")
        terminal.see("got line")
        self.assertEqual(terminal.status(), 0)
        self.assertNotIn("rlock:", terminal.shown)

    def test_a_stop_of_an_inner_shell_is_reported(self):
        """`suspend` of a shell below rlock, which leads a group of its own, stops rlock with it."""
        shell = self.shell()
        shell.enter("PS1=in'ner> ' rlock run inner -- bash --norc --noprofile --noediting -i")
        shell.see("inner> ")
        shell.enter("suspend -f")
        self.assertEqual(shell.see(PROMPT).count("rlock:"), 1)
        shell.enter("fg")
        shell.enter("exit 4")
        shell.see(PROMPT)
        self.assertEqual(shell.says("true"), "")

    def test_a_stop_that_the_caller_blocked_stops_nothing(self):
        """^Z stops neither rlock nor the command, which inherits the block."""
        block = ("import os, signal, sys; signal.pthread_sigmask(0, {signal.SIGTSTP}); "
                 "os.execvp(sys.argv[1], sys.argv[1:])")
        shell = self.shell()
        shell.enter(f"python3 -c '{block}' rlock run blocked -- sh -c 'echo o''n; read line; echo go''t $line'")
        shell.see("on\r\n")
        shell.type("\x1aline\n")
        self.assertNotIn("rlock:", shell.see("got line"))
        shell.assert_usable()

    def test_a_background_reader_stops_with_rlock(self):
        """A reader in the background stops with rlock, and reads when it is brought back."""
        shell = self.shell()
        shell.enter("rlock run reader -- sh -c 'read line; echo re''ad $line' &")
        until(lambda: stopped(shell.rlock()), "rlock stops with its command")
        until(lambda: re.search("Stopped|Suspended", shell.says("jobs")), "the shell's notice of it")
        shell.enter("fg")
        shell.type("the line\n")
        shell.see("read the line")
        shell.assert_usable()

    def test_a_background_writer_stops_and_resumes(self):
        """With `stty tostop` a writer in the background stops and resumes; rlock's own words stop nobody."""
        shell = self.shell()
        shell.says("stty tostop")
        shell.enter("rlock run writer -- sh -c 'echo wri''tten' &")
        until(lambda: stopped(shell.rlock()), "rlock stops with its command")
        shell.enter("fg")
        shell.see("written")
        shell.see("ready> ")
        shell.enter("rlock run -v writer -- true &")
        shell.see("released")
        shell.type("\n")
        shell.assert_usable()

    def test_a_script_keeps_reading_after_a_kill_of_rlock(self):
        """Rlock SIGKILLed in a script: the script's next `read` gets its line."""
        shell = self.shell()
        with open("script", "w", encoding="utf-8") as file:
            file.write("rlock run read -- sh -c 'echo $PPID,$$. >pids; echo o''n; exec cat'\n"
                       "read -r line; echo got $line\n")
        shell.enter("sh ./script")
        shell.see("on\r\n")
        runner, command = (int(pid) for pid in read("pids").strip(".\n").split(","))
        send(runner, signal.SIGKILL)
        until(lambda: gone(command), "the end of the command")
        shell.type("this\n")
        shell.see("got this")
        shell.assert_usable()

    def test_a_script_reads_on_after_a_killed_shell(self):
        """A shell below rlock is killed while a job of it has the terminal, in raw mode: the script's next `read` gets its line."""
        shell = self.shell()
        with open("script", "w", encoding="utf-8") as file:
            file.write("PS1='inner> ' rlock run read -- bash --norc --noprofile --noediting -i\nread -r line; echo got $line\n")
        shell.enter("sh ./script")
        shell.see("inner> ")
        shell.enter("sh -c 'stty raw -echo; echo o''n; exec sleep 1000'")
        shell.see("on\n")
        runner = named_below(shell.pid, "rlock")
        send(command_of(runner, "bash"), signal.SIGKILL)
        until(lambda: gone(runner), "the end of rlock")
        shell.type("this\n")
        shell.see("got this")
        shell.assert_usable()

    def test_two_interrupts_at_once_are_one(self):
        """^C twice leaves what outlives the command its --kill-after; a later ^C ends it."""
        def grace(at):
            log = f"log.{at}"
            terminal = self.on(RLOCK, "run", "-k", "10m", "--event-log", log, "twice", "--", "sh", "-c",
                               "(trap '' TERM; echo on; exec sleep 1001) & exec sleep 1000")
            begin = time.monotonic()
            terminal.type("\x03")
            until(lambda: "cancelled" in read(log), "the first")
            terminal.type("\x03")
            if time.monotonic() - begin < 0.5:
                time.sleep(0.1)
            killed = '"killed"' in read(log)
            time.sleep(0.5)
            terminal.type("\x03")
            self.assertEqual(terminal.status(), -signal.SIGINT)
            return not killed
        # A busy machine may keep rlock from the second one for longer than half a second.
        self.assertTrue(any(grace(at) for at in range(5)))

    def test_the_modes_that_a_command_sets_stay(self):
        """They stay, as `stty` under rlock is to have an effect."""
        shell = self.shell()
        shell.says("rlock run modes -- stty -echo")
        self.assertFalse(shell.modes() & termios.ECHO)

    def hang_up(self, *before):
        terminal = Terminal([*before, RLOCK, "run", "hang-up", "--", "sh", "-c",
                             "echo $$. >pid; echo up; exec sleep 1000"], self.environment)
        self.addCleanup(terminal.close)
        if not before:
            terminal.see("up")
        command = pid_in("pid")
        terminal.hang_up()
        return command

    def test_a_closed_terminal_ends_the_command(self):
        """Without nohup a closed terminal ends the command, and the lock is free."""
        command = self.hang_up()
        until(lambda: gone(command), "the end of the command")
        until(lambda: self.free("hang-up"), "the release")
        self.assert_nothing_left("hang-up")

    def test_nohup_keeps_command_and_lock(self):
        """With nohup command and lock survive it."""
        command = self.hang_up("nohup")
        # That nothing happens cannot be waited for: as long as the command in the other case takes to end.
        self.hang_up_of_another()
        self.assertFalse(gone(command))
        self.assertFalse(self.free("hang-up"))
        send(command, signal.SIGTERM)
        until(lambda: self.free("hang-up"), "the release")

    def hang_up_of_another(self):
        terminal = Terminal(["sleep", "1000"], self.environment)
        self.addCleanup(terminal.close)
        until(lambda: read(f"/proc/{terminal.pid}/comm") == "sleep\n", "another")
        terminal.hang_up()
        until(lambda: gone(terminal.pid), "the end of another")
