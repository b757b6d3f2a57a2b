#pragma once

#include "cli/options/options.hpp"

// The options of the commands that look at a lock or change one that is held. Where their texts
// differ by command, they are in table_per_command.hpp.
namespace rlock::cli {

inline constexpr OptionRow kOperatorOptions[] = {
    {.id = Opt::owner,
     .name = "owner",
     .metavar = "ID",
     .help = "only this owner",
     .commands = kRenew | kRelease | kStatus | kForce,
     .common = true},
    {.id = Opt::token,
     .name = "token",
     .metavar = "N",
     .help = "only the holder with this fencing token",
     .commands = kRenew | kForce,
     .common = true},
    {.id = Opt::all,
     .name = "all",
     .help = "break the lock of every holder",
     .manual = "To break a lock that has several holders (shared or with --slots), use this "
               "option, --owner or --token.",
     .commands = kForce | kStatus,
     .common = true},
    {.id = Opt::now,
     .name = "now",
     .help = "free the lock at once: the old and the next command may overlap",
     .manual = "Use it only if you know that the holder's host is dead, or if an overlap does no "
               "harm. Without it the next holder starts when the old one has confirmed that its "
               "command has ended, or when the lease ends.",
     .commands = kForce,
     .common = true},
    {.id = Opt::remove,
     .name = "remove",
     .metavar = "OWNER",
     .help =
         "remove this waiter from the queue: its owner id, the beginning of it, or its position",
     .manual =
         "Its rlock exits with 75 and reports who removed it. The listing shows positions and "
         "owner ids; a number of up to six digits is a position. If several owner ids begin "
         "with OWNER, rlock removes none and exits with 64. Queues move: in a script, use "
         "the owner id. If the owner holds the lock by now, rlock does not remove it and "
         "exits with 75: use force-unlock.",
     .commands = kQueue,
     .common = true},
    {.id = Opt::first,
     .name = "first",
     .metavar = "OWNER",
     .help = "move this waiter to the head of the queue: its owner id, the beginning of it, or its "
             "position",
     .manual =
         "Use it for the one that cannot wait; a later run can ask for such a place itself with "
         "--urgent. The listing and the history of its run show who moved it. What holds is never "
         "touched, and while the lock is closed it still waits for the end of the closure. OWNER "
         "as for --remove. This option works with one server only.",
     .commands = kQueue,
     .common = true},
    {.id = Opt::runs,
     .letter = 'n',
     .name = "runs",
     .metavar = "N",
     .fallback = "20",
     .help = "how many runs to show",
     .manual = "The server keeps 100 rows for each lock, or as many as the last run's --history "
               "says, for "
               "30 days.",
     .commands = kHistory,
     .common = true},
    {.id = Opt::yes,
     .name = "yes",
     .help = "do not ask for confirmation; required when not on a terminal",
     .manual = "Use it in scripts, preferably with --owner or --token, so that the script breaks "
               "only the hold that it has checked.",
     .commands = kForce | kForget,
     .common = true},
    {.id = Opt::strict,
     .name = "strict",
     .help = "exit with 1 also for a warning",
     .manual = "Use it in monitoring, and in scripts that set up a new server.",
     .commands = kDoctor,
     .common = true},
    {.id = Opt::output,
     .name = "output",
     .metavar = "FILE",
     .help = "write to FILE, which is replaced at once",
     .manual = "Use it for a collector that reads FILE. rlock writes beside FILE and renames, so "
               "that nobody reads half of it. rlock refuses FILE if it exists and is not a regular "
               "file. If the server does not answer, FILE says rlock_up 0.",
     .commands = kMetrics,
     .common = true},
    {.id = Opt::within,
     .name = "within",
     .metavar = "DUR",
     .help = "exit with 2 unless a run succeeded within this time",
     .manual =
         "Use somewhat more than the time between two runs and the length of a run: 26h for a "
         "job that runs each night.",
     .commands = kCheck,
     .common = true},
    {.id = Opt::max_held,
     .name = "max-held",
     .metavar = "DUR",
     .help = "exit with 1 if somebody has held the lock for longer",
     .manual = "Use it to notice a command that hangs. To end it, use run --max-run.",
     .commands = kCheck,
     .common = true},
    {.id = Opt::max_wait,
     .name = "max-wait",
     .metavar = "DUR",
     .help = "exit with 1 if somebody has waited for longer",
     .manual = "Use it to notice that runs come faster than they end.",
     .commands = kCheck,
     .common = true},
    {.id = Opt::max_waiters,
     .name = "max-waiters",
     .metavar = "N",
     .help = "exit with 1 if more than N wait",
     .manual = "Use it to notice a queue that grows. To limit the queue, use run --max-queue.",
     .commands = kCheck,
     .common = true},
    {.id = Opt::critical,
     .name = "critical",
     .help = "exit with 2 where it would exit with 1",
     .manual = "Use it for a job whose failure somebody must look at at once.",
     .commands = kCheck,
     .common = true},
    {.id = Opt::closed_for,
     .name = "for",
     .metavar = "DUR",
     .help = "open the lock again after this time, at most 30d",
     .manual = "This option or --until is required.",
     .commands = kClose,
     .common = true},
    {.id = Opt::until,
     .name = "until",
     .metavar = "TIME",
     .help = "open the lock again at this time: 18:00, 2026-11-24T06:00 or, in UTC, "
             "2026-11-24T06:00:00Z",
     .manual = "A time of day is the next one. Without Z the time is local. At most 30 days.",
     .commands = kClose,
     .common = true},
    {.id = Opt::reason,
     .name = "reason",
     .metavar = "TEXT",
     .help = "free text shown to others in status, queue and messages",
     .manual = "Use it to say why the lock is held, such as the name of a release or the number of "
               "a ticket. It must not contain a secret.",
     .commands = kRun | kAcquire | kQueue | kForce | kClose | kOpen,
     .common = true},
};

}  // namespace rlock::cli
