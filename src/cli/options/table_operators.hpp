#pragma once

#include "cli/options/table_bits.hpp"

// The options of the commands that look at a lock or change one that is held. Where their texts
// differ by command, they are in table_per_command.hpp.
namespace rlock::cli {

inline constexpr OptionRow kOperatorOptions[] = {
    {.id = Opt::owner,
     .name = "owner",
     .metavar = "ID",
     .help = "only this owner",
     .commands = kRenew | kRelease | kStatus | kForce},
    {.id = Opt::token,
     .name = "token",
     .metavar = "N",
     .help = "only the holder with this fencing token",
     .commands = kRenew | kForce},
    {.id = Opt::all,
     .name = "all",
     .help = "break the lock of every holder",
     .manual = "To break a lock that has several holders (shared or with --slots), use this "
               "option, --owner or --token.",
     .commands = kForce | kStatus},
    {.id = Opt::now,
     .name = "now",
     .help = "free the lock at once: the old and the next command may overlap",
     .manual = "Use it only if you know that the holder's host is dead, or if an overlap does no "
               "harm. Without it the next holder starts when the old one has confirmed that its "
               "command has ended, or when the lease ends.",
     .commands = kForce},
    {.id = Opt::remove,
     .name = "remove",
     .metavar = "OWNER",
     .help = "remove this waiter from the queue",
     .manual = "Its rlock exits with 75 and reports who removed it. The listing shows the owner "
               "ids. If the owner holds the lock by now, rlock does not remove it and exits with "
               "75: use force-unlock.",
     .commands = kQueue},
    {.id = Opt::runs,
     .letter = 'n',
     .name = "runs",
     .metavar = "N",
     .fallback = "20",
     .help = "how many runs to show",
     .manual = "The server keeps at most 100 rows for each lock, for 30 days.",
     .commands = kHistory},
    {.id = Opt::yes,
     .name = "yes",
     .help = "do not ask for confirmation; required when not on a terminal",
     .manual = "Use it in scripts, preferably with --owner or --token, so that the script breaks "
               "only the hold that it has checked.",
     .commands = kForce | kForget},
    {.id = Opt::strict,
     .name = "strict",
     .help = "exit with 1 also for a warning",
     .manual = "Use it in monitoring, and in scripts that set up a new server.",
     .commands = kDoctor},
    {.id = Opt::reason,
     .name = "reason",
     .metavar = "TEXT",
     .help = "free text shown to others in status, queue and messages",
     .manual = "Use it to say why the lock is held, such as the name of a release or the number of "
               "a ticket. It must not contain a secret.",
     .commands = kRun | kAcquire | kQueue | kForce},
};

}  // namespace rlock::cli
