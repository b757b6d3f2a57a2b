#pragma once

#include "cli/options/table_bits.hpp"

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
     {.help = "the lease, at least 1s; it is renewed while the command runs",
      .fallback = "30s",
      .manual =
          "rlock renews the lease after each third of it. A shorter one frees the lock sooner when "
          "this host dies; a longer one lets the command outlive a longer outage of the server. At "
          "most 60s over several servers."}},
    {Opt::ttl,
     kAcquire,
     {.help = "the lease, at least 1s: longer than the steps take from one rlock renew to the next",
      .fallback = "none; with --renew-while 30s",
      .manual =
          "Required without --renew-while. When a script dies between its steps, the lock stays "
          "held for the rest of the lease. At most 60s over several servers."}},
    {Opt::ttl,
     kRenew,
     {.help = "the lease from now on, at least 1s",
      .fallback = "the length it had",
      .manual =
          "A lease is never shortened: where more is left, it stays as it is. Required with a "
          "--format other than native; --token needs it to put a lease back."}},
    {Opt::min_hold,
     kAcquire,
     {.help =
          "keep the lock at least this long after it was acquired, even if it is released sooner",
      .fallback = "0",
      .manual = "rlock status shows the lock in its cool-down; force-unlock ends that."}},
    {Opt::format,
     kStatus | kForce,
     {.help = "whose lock this is: rlock's own; that of redsync, redis-py or node-redlock; that of "
              "Redisson. In the last two NAME is the key itself",
      .fallback = "as found",
      .manual =
          "Without it a lock of another client is recognised by its key, where NAME is not held "
          "natively: see FORMATS."}},
    {Opt::format,
     kWatch,
     {.help =
          "whose locks these are: rlock's own; those of redsync, redis-py or node-redlock; those "
          "of Redisson. In the last two each NAME is the key itself",
      .fallback = "native",
      .manual = "Locks of the other formats cannot be listed: NAME is then required."}},
    {Opt::owner,
     kRenew | kRelease,
     {.help = "the owner id that rlock acquire printed",
      .manual = "Required. Anyone who knows the id can release the lock."}},
    {Opt::owner,
     kStatus,
     {.help = "with -q: exit 0 only when this owner holds NAME",
      .manual = "Use it between two steps, to check that the lock of acquire is still held."}},
    {Opt::owner,
     kForce,
     {.help = "break the lock only where this owner holds it",
      .manual =
          "When another one holds the lock by now, nothing changes and rlock exits with 75. It "
          "excludes --token and --all."}},
    {Opt::token,
     kRenew,
     {.help = "with --ttl: put back a lease of this fencing token that ended or that the server "
              "lost",
      .manual =
          "Use it where the server may have lost its data. The lease is put back only where nobody "
          "can have held the lock since. acquire --json prints the token."}},
    {Opt::token,
     kForce,
     {.help = "break the lock only where its holder has this fencing token",
      .manual =
          "When the lock has been granted again by now, nothing changes and rlock exits with 75. "
          "It excludes --owner and --all."}},
    {Opt::hide_command,
     kAcquire,
     {.help = "do not store the command line of the process that asks, or of PID (its first 200 "
              "bytes)",
      .manual = "Others see it in status. Host, user and pid are stored all the same."}},
    {Opt::reason,
     kQueue,
     {.help = "with --remove: free text that the removed waiter reports",
      .manual = "Use it to say why the waiter was removed."}},
    {Opt::reason,
     kForce,
     {.help = "free text that the holder and rlock history report",
      .manual = "Use it to say why the lock was broken."}},
    {Opt::quiet, kStatus, {.help = "print nothing: the exit code says whether NAME is held"}},
    {Opt::quiet, kRun, {.help = "print only errors; a skipped run is not an error"}},
};

}  // namespace rlock::cli
