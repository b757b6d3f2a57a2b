#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/session.hpp"
#include "run/run.hpp"

// RLOCK_HELD: the locks that a run holds, for the runs nested in its command.
namespace rlock::cli {

// Which lock, and where it is.
struct LockAddress {
  std::string server;  // as lock::LockStore::server() spells it
  std::string prefix;
  std::string name;
  bool operator==(const LockAddress&) const = default;
};

// The rlock that holds or has entered a lock.
struct HolderProcess {
  pid_t pid = 0;
  TimePoint at{};      // when it had that pid
  Millis renewing{0};  // the ttl that it renews; 0: it does not renew
};

// A lock that a run around this one held when it started its command.
struct HeldRecord {
  LockAddress address;
  run::HeldLock held_lock;
  HolderProcess process{};  // the innermost of the runs under this lock
};

// Innermost first. What is not one of our records is left out: the text may come from anybody.
std::vector<HeldRecord> decode_held(std::string_view text);
std::string encode_held(const std::vector<HeldRecord>& records);

// Of `records`, the exclusive locks that a wait for the server of `session` may be in a deadlock
// over: where the server has the same spelling.
std::vector<Hold> outer_holds(const std::vector<HeldRecord>& records, const Session& session);

// The records that may be of the lock at `address`, one for each owner: first those with the same
// spelling of the server, innermost first. A server has many spellings, so only the server itself
// knows whether it is the same.
std::vector<HeldRecord> find_outer_locks(const std::vector<HeldRecord>& records,
                                         const LockAddress& address);

// The outer runs that may hold the lock at `address`, in the order of
// find_outer_locks().
std::vector<run::OuterRun> outer_runs(const std::vector<HeldRecord>& records,
                                      const LockAddress& address);

// The records for a command that runs under `own`.
std::vector<HeldRecord> records_for_command(std::vector<HeldRecord> outer_locks, HeldRecord own);

}  // namespace rlock::cli
