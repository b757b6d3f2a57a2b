#pragma once

#include "cli/options/table_bits.hpp"

// The options of run, most of which acquire has too.
namespace rlock::cli {

inline constexpr OptionRow kRunOptions[] = {
    {.id = Opt::nonblock,
     .letter = 'n',
     .name = "nonblock",
     .help = "do not wait: when the lock is busy, exit 75",
     .manual =
         "Use it for a job that many hosts start at the same time and that only one of them is to "
         "do: that one runs it, the others skip it. With --quiet a skip prints nothing. Add "
         "--min-hold so that a host whose clock is behind does not do the job again. Cannot be "
         "combined with a --wait longer than 0.",
     .commands = kRun | kAcquire},
    {.id = Opt::wait,
     .letter = 'w',
     .name = "wait",
     .metavar = "DUR",
     .fallback = "for ever",
     .help = "wait at most this long, then exit 75; 0 is the same as -n",
     .manual =
         "Use it where a late start is worse than none. It limits the wait for the lock, not the "
         "command, which --max-run does. While rlock waits it reconnects to a server that is "
         "lost, until this time is over; without this option, for 60 s, then it exits with 69.",
     .commands = kRun | kAcquire},
    {.id = Opt::conflict_exit_code,
     .letter = 'E',
     .name = "conflict-exit-code",
     .metavar = "N",
     .fallback = "75",
     .help = "exit with N (0-255) instead when the lock is busy",
     .manual =
         "Use 0 where a skip is a success for the caller, or a code that the command itself never "
         "returns. It applies to --nonblock, --wait and --max-queue.",
     .commands = kRun | kAcquire},
    {.id = Opt::shell_text,
     .letter = 'c',
     .metavar = "TEXT",
     .help = "run TEXT with $SHELL, else /bin/sh, instead of a COMMAND",
     .manual =
         "Use it for pipes and redirections that are to happen under the lock. TEXT is one word: "
         "quote it. It cannot be combined with a COMMAND after --.",
     .commands = kRun},
    {.id = Opt::ttl,
     .letter = 't',
     .name = "ttl",
     .metavar = "DUR",
     .fallback = "30s",
     .help = "the lease, at least 1s",
     .commands = kRun | kAcquire | kRenew},
    {.id = Opt::no_renew,
     .name = "no-renew",
     .help = "do not renew: the command is ended before the first lease ends (of 30s it has 22s), "
             "exit 76",
     .manual =
         "Use it where a command that hangs must not hold the lock for longer than one lease. "
         "Choose a --ttl that leaves room for the command, --kill-after and a margin. To limit the "
         "command and renew its lease all the same, use --max-run.",
     .commands = kRun},
    {.id = Opt::max_run,
     .name = "max-run",
     .metavar = "DUR",
     .fallback = "none",
     .help = "end a command that runs longer than this, exit 124",
     .manual =
         "Use it so that a command that hangs does not hold the lock for ever. The time begins "
         "when the command starts; 0 is no limit. The command and everything it started get TERM, "
         "and after --kill-after KILL. The lock is held until they have ended, so rlock itself may "
         "run for longer: see WHAT CANNOT BE ENDED.",
     .commands = kRun},
    {.id = Opt::kill_after,
     .letter = 'k',
     .name = "kill-after",
     .metavar = "DUR",
     .fallback = "5s or a sixth of the ttl, whichever is less",
     .help = "time from TERM to KILL when rlock ends the command",
     .manual =
         "Use it to give the command time to clean up after --max-run, a lost lease or "
         "force-unlock. After a lost lease the time may be shorter: KILL comes before the lease "
         "can end at the server, so a longer time needs a longer --ttl.",
     .commands = kRun},
    {.id = Opt::on_lost,
     .name = "on-lost",
     .metavar = "terminate|ignore",
     .fallback = "terminate",
     .help = "if the lease is lost: terminate the command, or ignore (let it run, with a warning)",
     .manual =
         "With ignore another run may hold the lock while this command still runs. Use it only "
         "where that is harmless, or where the resource checks RLOCK_TOKEN: see FENCING TOKENS.",
     .commands = kRun},
    {.id = Opt::min_hold,
     .name = "min-hold",
     .metavar = "DUR",
     .fallback = "0",
     .help =
         "keep the lock at least this long after it was acquired, even if the command ends sooner",
     .manual =
         "Use it with --nonblock for a job that many hosts start by their clocks: a host whose "
         "clock is behind, or that comes after a quick job is done, then finds the lock busy. It "
         "applies also when the command fails or its host dies, but not when the command cannot "
         "be executed. rlock status shows the lock in its cool-down; force-unlock ends that.",
     .commands = kRun | kAcquire},
    {.id = Opt::slots,
     .name = "slots",
     .metavar = "N",
     .fallback = "1",
     .help = "allow up to N holders; if holders disagree, the smallest N applies",
     .manual =
         "Use it to limit how many instances of a job run at once. Give the same N everywhere. It "
         "cannot be combined with --shared, nor used over several servers or with another "
         "--format.",
     .commands = kRun | kAcquire},
    {.id = Opt::shared,
     .letter = 's',
     .name = "shared",
     .help = "take a shared lock: any number of shared holders, never beside an exclusive one",
     .manual =
         "Use it for readers that may run at the same time, while a writer takes the lock without "
         "this option. Waiters are served in order, so that readers that come later do not pass a "
         "waiting writer. The restrictions of --slots apply.",
     .commands = kRun | kAcquire},
    {.id = Opt::max_queue,
     .name = "max-queue",
     .metavar = "N",
     .fallback = "none",
     .help = "exit 75 at once if N are waiting already",
     .manual =
         "Use it so that runs do not pile up behind a slow one: with 1, one run waits and those "
         "that come after it exit.",
     .commands = kRun | kAcquire},
    {.id = Opt::no_reentrant,
     .name = "no-reentrant",
     .help = "inside a run that already holds NAME: wait like any other run",
     .manual =
         "Use it for runs that one outer run starts in parallel and that must exclude each other. "
         "The outer run keeps the lock until its command has ended: when that command waits for "
         "the nested run, add --wait or --nonblock, or the two wait for each other.",
     .commands = kRun},
    {.id = Opt::wait_descendants,
     .name = "wait-descendants",
     .help = "hold the lock until everything that the command started has ended",
     .manual =
         "Use it for a command that returns before its work is done. Without it the lock is "
         "released when the command itself has ended, and what it left behind runs on without the "
         "lock.",
     .commands = kRun},
    {.id = Opt::format,
     .name = "format",
     .metavar = "native|plain|redisson",
     .fallback = "native",
     .help = "whose lock this is: rlock's own; that of redsync, redis-py or node-redlock; that of "
             "Redisson. In the last two NAME is the key itself",
     .manual =
         "Use it to share a lock with a program that uses one of these libraries. Such locks have "
         "no queue and no fencing token, and several options do not work with them: see FORMATS.",
     .commands = kRun | kAcquire | kRenew | kRelease | kStatus | kWatch | kForce},
    {.id = Opt::fail_open,
     .name = "fail-open",
     .help = "when no server answers: warn, and run the command without the lock",
     .manual =
         "Use it only where running the job twice does less harm than not running it. RLOCK_TOKEN "
         "is not set then; RLOCK_UNLOCKED is. A server that refuses the login or is not ready has "
         "answered, and the command does not run: see EXIT STATUS, 69.",
     .commands = kRun},
    {.id = Opt::hide_command,
     .name = "hide-command",
     .help = "do not store the command line, which others see in status (its first 200 bytes)",
     .manual =
         "Use it where the arguments contain something that others must not see. Host, user and "
         "pid are stored all the same.",
     .commands = kRun | kAcquire},
    {.id = Opt::renew_while,
     .name = "renew-while",
     .metavar = "PID",
     .help = "renew in the background while the process PID lives, then release",
     .manual =
         "Use it so that a script that dies does not keep the lock, and for steps whose duration "
         "is not known. --ttl is then the lease that the background process renews, 30s by "
         "default.",
     .commands = kAcquire},
    {.id = Opt::event_log,
     .name = "event-log",
     .metavar = "FILE",
     .help = "append one JSON object a line to FILE for each event",
     .manual =
         "Use it to feed logs and monitoring, since run has no --json. Several runs may share a "
         "file. See EVENT LOG.",
     .commands = kRun},
};

}  // namespace rlock::cli
