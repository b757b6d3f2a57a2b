#pragma once

#include "cli/options/options.hpp"

// The options of run, most of which acquire has too.
namespace rlock::cli {

inline constexpr OptionRow kRunOptions[] = {
    {.id = Opt::nonblock,
     .letter = 'n',
     .name = "nonblock",
     .help = "do not wait: if the lock is busy, exit with 75",
     .manual = "Use it for a job that many hosts start at the same time and that only one of them "
               "should do: one host runs the job, and the others skip it. With --quiet a skip "
               "prints nothing. A host whose clock is behind may do the job again: --once-per "
               "and --once-within prevent that. This option cannot be combined with a --wait "
               "longer than 0.",
     .commands = kRun | kAcquire,
     .common = true},
    {.id = Opt::wait,
     .letter = 'w',
     .name = "wait",
     .metavar = "DUR",
     .fallback = "forever",
     .help = "wait at most this long, then exit with 75; 0 is the same as -n",
     .manual = "Use it if a late start is worse than none. It limits how long rlock waits for the "
               "lock; --max-run limits how long the command runs. If the server fails while rlock "
               "waits, rlock tries to reconnect until this time is over; without this option it "
               "tries for 60 s and then exits with 69.",
     .commands = kRun | kAcquire | kClose,
     .common = true},
    {.id = Opt::conflict_exit_code,
     .letter = 'E',
     .name = "conflict-exit-code",
     .metavar = "N",
     .fallback = "75",
     .help = "if the lock is busy, exit with N (0-255)",
     .manual = "Use 0 if the caller should treat a skip as a success, or a code that the command "
               "itself never returns. It applies to --nonblock, --wait and --max-queue.",
     .commands = kRun | kAcquire},
    {.id = Opt::shell_text,
     .letter = 'c',
     .metavar = "TEXT",
     .help = "run TEXT with $SHELL (or /bin/sh, if it is not set) instead of a COMMAND",
     .manual = "Use it for pipes and redirections under the lock. TEXT is one word: quote it. This "
               "option cannot be combined with a COMMAND after --.",
     .commands = kRun,
     .common = true},
    {.id = Opt::ttl,
     .letter = 't',
     .name = "ttl",
     .metavar = "DUR",
     .fallback = "30s",
     .help = "length of the lease, at least 1s",
     .commands = kRun | kAcquire | kRenew,
     .common = true},
    {.id = Opt::no_renew,
     .name = "no-renew",
     .help = "do not renew the lease: end the command before the lease ends (after 22s of 30s) and "
             "exit with 76",
     .manual = "Use it if a command that hangs must not hold the lock for longer than one lease. "
               "Choose a --ttl that is long enough for the command, --kill-after and a margin. To "
               "limit the command but renew its lease, use --max-run instead.",
     .commands = kRun},
    {.id = Opt::max_run,
     .name = "max-run",
     .metavar = "DUR",
     .fallback = "none",
     .help = "end a command that runs longer than this, and exit with 124",
     .manual =
         "Use it so that a command that hangs does not hold the lock forever. The time begins when "
         "the command starts; 0 means no limit. rlock sends TERM to the command and everything "
         "that it started, and KILL after the time of --kill-after. It holds the lock until they "
         "have ended, so rlock itself may run for longer: see WHAT CANNOT BE ENDED.",
     .commands = kRun,
     .common = true},
    {.id = Opt::kill_after,
     .letter = 'k',
     .name = "kill-after",
     .metavar = "DUR",
     .fallback = "5s, or a sixth of the ttl if that is less",
     .help = "time from TERM to KILL when rlock ends the command",
     .manual = "Use it to give the command time to clean up after --max-run, a lost lease or "
               "force-unlock. After a lost lease the time may be shorter, because rlock sends KILL "
               "before the lease can end at the server: a longer time needs a longer --ttl.",
     .commands = kRun},
    {.id = Opt::on_lost,
     .name = "on-lost",
     .metavar = "terminate|ignore",
     .fallback = "terminate",
     .help = "if the lease is lost: terminate the command, or ignore the loss (let the command "
             "run, and print a warning)",
     .manual =
         "With ignore, another run may hold the lock while this command still runs. Use it only if "
         "that is harmless, or if the resource checks RLOCK_TOKEN: see FENCING TOKENS.",
     .commands = kRun},
    {.id = Opt::min_hold,
     .name = "min-hold",
     .metavar = "DUR",
     .fallback = "0",
     .help =
         "keep the lock for at least this long after acquiring it, even if the command ends sooner",
     .manual = "Use it with --nonblock for a job that many hosts start by their clocks: a host "
               "whose clock is behind, or that starts after a quick job is done, then finds the "
               "lock busy. It also applies if the command fails or its host dies, but not if the "
               "command cannot be executed. rlock status shows that the lock is in its cool-down; "
               "force-unlock ends the cool-down.",
     .commands = kRun | kAcquire},
    {.id = Opt::slots,
     .name = "slots",
     .metavar = "N",
     .fallback = "1",
     .help = "allow up to N holders; if holders disagree, the smallest N applies",
     .manual =
         "Use it to limit how many instances of a job run at once. Give the same N everywhere, at "
         "most 1024. The command finds in RLOCK_SLOT which one it is: a "
         "number from 1 to N that no other live holder has. This option cannot be combined with "
         "--shared, several servers or "
         "another --format.",
     .commands = kRun | kAcquire,
     .common = true},
    {.id = Opt::shared,
     .letter = 's',
     .name = "shared",
     .help = "take a shared lock: any number of shared holders, never beside an exclusive one",
     .manual = "Use it for readers that may run at the same time; a writer takes the lock without "
               "this option. Waiters get the lock in order, so later readers do not overtake a "
               "waiting writer. The restrictions of --slots apply.",
     .commands = kRun | kAcquire,
     .common = true},
    {.id = Opt::max_queue,
     .name = "max-queue",
     .metavar = "N",
     .fallback = "none",
     .help = "exit with 75 at once if N runs are already waiting",
     .manual = "Use it so that runs do not pile up behind a slow one: with 1, one run waits and "
               "all later ones exit.",
     .commands = kRun | kAcquire},
    {.id = Opt::once,
     .name = "once",
     .metavar = "KEY",
     .help =
         "run the command unless a run of NAME with this KEY has succeeded; otherwise exit with "
         "0",
     .manual =
         "Use it where several processes start the same work, such as a migration at the start of "
         "each replica: one does it, the others wait for it and then go on. KEY says which work it "
         "is, such as a commit: 1 to 200 bytes. An empty KEY is an error, because it is what a "
         "variable that is not set expands to. The server keeps a KEY for 30 days after somebody "
         "last asked for it, and 1,000 of them for each lock. See DONE ONCE.",
     .commands = kRun | kForget,
     .common = true},
    {.id = Opt::once_per,
     .name = "once-per",
     .metavar = "minute|hour|day|week|month",
     .help = "run the command once in each period of the calendar; otherwise exit with 0",
     .manual =
         "Use it in the crontab of several hosts. What counts is the period in which a host begins "
         "to ask: of the day, the week (from Monday) and the month by the local date of the host, "
         "of the minute and the hour by UTC. cron starts jobs by the same clock, so that hosts "
         "whose clocks differ by some seconds still mean the same period; all hosts need the same "
         "time zone. See DONE ONCE.",
     .commands = kRun,
     .common = true},
    {.id = Opt::once_within,
     .name = "once-within",
     .metavar = "DUR",
     .help = "run the command unless a run of NAME has succeeded that began to ask less than DUR "
             "before this one, or was granted after it; otherwise exit with 0",
     .manual =
         "Use it for timers without a calendar, with jitter, or that start late: take half of the "
         "period of the timer. The clocks of the hosts do not matter. At most 366d. See DONE ONCE.",
     .commands = kRun},
    {.id = Opt::max_failures,
     .name = "max-failures",
     .metavar = "N",
     .fallback = "none",
     .help =
         "with --once, --once-per or --once-within: after N failed runs exit with 75 instead of "
         "trying again",
     .manual =
         "Without it each waiter tries in its turn what the one before it failed to do. The "
         "failures of runs with this option are counted since the last success, of this KEY or in "
         "this period; a command that could not be started is not counted, nor one that returned 0 "
         "after rlock was asked to stop.",
     .commands = kRun},
    {.id = Opt::done_exit_code,
     .name = "done-exit-code",
     .metavar = "N",
     .fallback = "0",
     .help = "if it was done before (--once and the like), exit with N (0-255)",
     .manual = "Use it if the caller has to know who did the work: choose a code that the command "
               "itself never returns.",
     .commands = kRun},
    {.id = Opt::supersede,
     .name = "supersede",
     .metavar = "N",
     .value_optional = true,
     .help = "of the waiters with this option only the newest stays in the queue, the one with the "
             "greatest N; the others exit with 75",
     .manual =
         "Use it for deploys: after a long one the newest commit is deployed, and those in between "
         "are left out. N is a number that grows, such as the number of the pipeline, so that an "
         "old one that is tried again does not win, even if nobody waits: the server remembers the "
         "greatest N that was granted the lock for 30 days, or until rlock forget NAME. An N that "
         "equals the greatest one runs again, so that a deploy can be repeated. Without N the "
         "latest to arrive is the newest. "
         "The one that stays takes the place in the queue of the one that it replaces. A run that "
         "holds the lock is never touched. With --nonblock nobody is replaced. This option works "
         "with one server only.",
     .commands = kRun | kAcquire},
    {.id = Opt::superseded_exit_code,
     .name = "superseded-exit-code",
     .metavar = "N",
     .fallback = "75",
     .help = "if a newer waiter has replaced this one (--supersede), exit with N (0-255)",
     .manual = "Do not try again after this code: the newer one does the work.",
     .commands = kRun | kAcquire},
    {.id = Opt::while_closed,
     .name = "while-closed",
     .help = "get the lock also while it is closed (rlock close)",
     .manual =
         "Use it for what must run during a freeze, such as a fix. While the lock is closed such a "
         "run waits only for who holds the lock, and for those with this option that came before "
         "it. This option works with one server only. See CLOSING.",
     .commands = kRun | kAcquire},
    {.id = Opt::urgent,
     .name = "urgent",
     .metavar = "DUR",
     .value_optional = true,
     .help = "wait in the queue as if it had come DUR earlier (1h without DUR, at most 24h)",
     .manual =
         "Use it for what should not stand behind the usual work, such as an urgent fix. An "
         "ordinary "
         "waiter is overtaken only by urgent ones that came at most DUR after it, so that nobody "
         "waits forever. A run that holds the lock is never touched. With --supersede it needs "
         "that option's N.",
     .commands = kRun | kAcquire},
    {.id = Opt::no_reentrant,
     .name = "no-reentrant",
     .help = "inside a run that holds NAME, wait for the lock like any other run",
     .manual =
         "Use it for runs that one outer run starts in parallel and that must exclude each other. "
         "The outer run keeps the lock until its command has ended: if that command waits for the "
         "nested run, add --wait or --nonblock, or each waits for the other forever.",
     .commands = kRun},
    {.id = Opt::wait_descendants,
     .name = "wait-descendants",
     .help = "hold the lock until everything that the command started has ended",
     .manual = "Use it for a command that returns before its work is done. Without this option "
               "rlock releases the lock when the command itself has ended, and the processes that "
               "the command left behind run on without the lock.",
     .commands = kRun,
     .common = true},
    {.id = Opt::contain,
     .name = "contain",
     .help =
         "run the command in a pid namespace of its own: when the run ends, however it ends, the "
         "kernel ends everything in it at once",
     .manual =
         "Then nothing outlives the run: no process of root, no storm of forks, nothing that a "
         "debugger holds, no daemon, and nothing if rlock and its guard are killed at the same "
         "instant. What the command leaves behind is killed before the lock is released. "
         "Processes in the namespace have numbers of their own, also in what they print, and "
         "see no others in /proc. This needs root, or user namespaces that the kernel lets "
         "users make; in one of these, sudo and other set-user-ID programs do not work. "
         "rlock doctor says whether it is available. Otherwise rlock exits with 71 before it "
         "asks for the lock.",
     .commands = kRun},
    {.id = Opt::format,
     .name = "format",
     .metavar = "native|plain|redisson",
     .fallback = "native",
     .help =
         "how the lock is stored: as rlock does (native); as redsync, redis-py and node-redlock do "
         "(plain); or as Redisson does (redisson). With plain and redisson, NAME is the key itself",
     .manual = "Use plain or redisson to share a lock with a program that uses one of these "
               "libraries. Such locks have no queue and no fencing token, and several options do "
               "not work with them: see FORMATS.",
     .commands = kRun | kAcquire | kRenew | kRelease | kStatus | kWatch | kForce},
    {.id = Opt::fail_open,
     .name = "fail-open",
     .help = "if no server answers, print a warning and run the command without the lock",
     .manual = "Use it only if running the job twice does less harm than not running it. The "
               "command then finds RLOCK_UNLOCKED in its environment instead of RLOCK_TOKEN. A "
               "server that rejects the login or is not ready has answered, so the command does "
               "not run: see EXIT STATUS, 69.",
     .commands = kRun},
    {.id = Opt::hide_command,
     .name = "hide-command",
     .help = "do not store the command line; otherwise status shows its first 200 bytes to others",
     .manual = "Use it if the arguments contain something that others must not see. rlock still "
               "stores host, user and pid.",
     .commands = kRun | kAcquire},
    {.id = Opt::renew_while,
     .name = "renew-while",
     .metavar = "PID",
     .help = "renew the lease in the background while the process PID lives, then release the lock",
     .manual =
         "Use it so that a script that dies does not keep the lock, and for steps of unknown "
         "duration. --ttl is then the lease that the background process renews, 30s by default.",
     .commands = kAcquire,
     .common = true},
    {.id = Opt::event_log,
     .name = "event-log",
     .metavar = "FILE",
     .help = "append one line to FILE for each event, a JSON object",
     .manual = "Use it for logs and monitoring, since run has no --json. Several runs may share "
               "one file. If it cannot be opened or written, rlock prints a warning, and the "
               "command runs. See EVENT LOG.",
     .commands = kRun},
    {.id = Opt::report,
     .name = "report",
     .help = "print one line if the command fails, also with --quiet",
     .manual =
         "Use it with -q in a crontab, for a job that is silent unless it fails: then cron mails "
         "only "
         "failures, and names the host, how the command ended and how long it ran. A command that "
         "rlock ended, or whose lock was lost, has a line without this option, too.",
     .commands = kRun},
    {.id = Opt::history_rows,
     .name = "history",
     .metavar = "N",
     .fallback = "100",
     .help = "how many rows of NAME's history the server keeps from this run on (0-1000)",
     .manual =
         "Use a small number if there are very many names, or if a lock is used every second, "
         "and 0 if the history must not list the runs. The last run decides. The counters of "
         "metrics, and the last success and failure in status and check, do not depend on "
         "it.",
     .commands = kRun},
};

}  // namespace rlock::cli
