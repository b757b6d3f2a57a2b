#pragma once

#include "cli/options/options.hpp"

// Where commands share an option whose meaning differs between them.
namespace rlock::cli {

struct PerCommandText {
  Opt id;
  unsigned commands;
  OptionText text;
};

inline constexpr PerCommandText kPerCommandTexts[] = {
    {Opt::ttl,
     kRun,
     {.help = "length of the lease, at least 1s; rlock renews the lease while the command runs",
      .fallback = "30s",
      .manual = "rlock renews it after each third of this time. With a shorter lease the lock is "
                "free sooner if this host dies; with a longer one the command survives a longer "
                "outage of the server. With several servers the maximum is 60s."}},
    {Opt::ttl,
     kAcquire,
     {.help = "length of the lease, at least 1s: longer than the steps take from one rlock renew "
              "to the next",
      .fallback = "none; with --renew-while 30s",
      .manual =
          "This option is required without --renew-while. If a script dies between its steps, the "
          "lock stays held for the rest of the lease. With several servers the maximum is 60s."}},
    {Opt::ttl,
     kRenew,
     {.help = "length of the lease from now on, at least 1s",
      .fallback = "its previous length",
      .manual = "rlock never shortens a lease: if more than this is left, the lease stays as it "
                "is. This option is required with a --format other than native, and with --token "
                "to restore a lease."}},
    {Opt::min_hold,
     kAcquire,
     {.help =
          "keep the lock for at least this long after acquiring it, even if it is released sooner",
      .fallback = "0",
      .manual = "rlock status shows that the lock is in its cool-down; force-unlock ends the "
                "cool-down."}},
    {Opt::format,
     kForce,
     {.help = "how the lock is stored: as rlock does (native); as redsync, redis-py and "
              "node-redlock do (plain); or as Redisson does (redisson). With plain and redisson, "
              "NAME is the key itself",
      .fallback = "detected",
      .manual = "Without this option, if NAME is not held in the native format, rlock recognises "
                "the lock of another client by its key: see FORMATS."}},
    {Opt::format,
     kStatus | kWatch,
     {.help = "how the locks are stored: as rlock does (native); as redsync, redis-py and "
              "node-redlock do (plain); or as Redisson does (redisson). With plain and redisson, "
              "each NAME is the key itself",
      .fallback = "native",
      .manual = "rlock cannot list the locks of other clients: with plain and redisson, give at "
                "least one NAME."}},
    {Opt::owner,
     kRenew | kRelease,
     {.help = "the owner id that rlock acquire printed",
      .manual = "This option is required. Anyone who knows the id can release the lock."}},
    {Opt::all,
     kStatus,
     {.help = "list free locks, too, instead of counting them",
      .manual = "Use it to see which locks were used within 30 days. It takes no NAME; a pattern "
                "lists free locks in any case."}},
    {Opt::owner,
     kStatus,
     {.help = "with -q: exit with 0 only if this owner holds NAME",
      .manual =
          "Use it between two steps, to check that the lock that acquire took is still held."}},
    {Opt::owner,
     kForce,
     {.help = "break the lock only if this owner holds it",
      .manual = "If another owner holds the lock by now, rlock changes nothing and exits with 75. "
                "This option cannot be combined with --token or --all."}},
    {Opt::token,
     kRenew,
     {.help = "with --ttl: restore the lease with this fencing token if it has ended or the server "
              "lost it",
      .manual = "Use it if the server may have lost its data. rlock restores the lease only if "
                "nobody can have held the lock since. acquire --json prints the token."}},
    {Opt::token,
     kForce,
     {.help = "break the lock only if its holder has this fencing token",
      .manual = "If the lock has been granted again by now, rlock changes nothing and exits with "
                "75. This option cannot be combined with --owner or --all."}},
    {Opt::once,
     kForget,
     {.help = "forget only that a run with this KEY was done",
      .manual = "Without this option rlock forgets everything that was done under NAME."}},
    {Opt::yes,
     kForget,
     {.help = "do not ask for confirmation; required when not on a terminal",
      .manual = "Use it in scripts."}},
    {Opt::hide_command,
     kAcquire,
     {.help = "do not store the command line of PID, or of the process that runs acquire; "
              "otherwise status shows its first 200 bytes to others",
      .manual = "rlock still stores host, user and pid."}},
    {Opt::reason,
     kQueue,
     {.help = "with --remove or --first: free text that says why",
      .manual = "The waiter that is removed reports it; the listing and the history show it of one "
                "that was moved."}},
    {Opt::reason,
     kForce,
     {.help = "free text that the holder and rlock history report",
      .manual = "Use it to say why the lock was broken."}},
    {Opt::wait,
     kClose,
     {.help =
          "when it is closed, wait at most this long until nobody holds the lock, then exit with "
          "75",
      .fallback = "do not wait",
      .manual = "Use it to begin work that nobody may run beside. The lock stays closed also if "
                "somebody holds it after this time."}},
    {Opt::reason,
     kClose,
     {.help = "free text shown to others, at most 200 bytes",
      .manual = "Who waits for the lock, and who is refused, sees it."}},
    {Opt::reason,
     kOpen,
     {.help = "free text that rlock history reports, at most 200 bytes",
      .manual = "Use it to say why the lock was opened before its time."}},
    {Opt::quiet, kStatus, {.help = "print nothing: the exit code shows whether NAME is held"}},
    {Opt::quiet, kRun, {.help = "print only errors; a skipped run is not an error"}},
};

}  // namespace rlock::cli
