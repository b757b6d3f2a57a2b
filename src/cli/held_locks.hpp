#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/session.hpp"
#include "run/plan.hpp"

// RLOCK_HELD: the locks that a run holds, for nested runs.
namespace rlock::cli {

// A lock and its server.
struct LockAddress {
  std::string server;  // as lock::LockStore::server() spells it
  std::string prefix;
  std::string name;
  bool operator==(const LockAddress&) const = default;
};

// The rlock process that holds or has entered a lock.
struct HolderProcess {
  pid_t pid = 0;
  TimePoint at{};      // the time at which it had that pid
  Millis renewing{0};  // the ttl of its renewals; 0: it does not renew
};

// A lock that an outer run held when it started its command.
struct HeldRecord {
  LockAddress address;
  lock::HeldLock held_lock;
  HolderProcess process{};  // of the innermost run under this lock
};

// Returns the records, innermost first. Ignores text that is not such a record, because anyone may
// have written it.
std::vector<HeldRecord> decode_held(std::string_view text);
std::string encode_held(const std::vector<HeldRecord>& records);

// The exclusive locks in `records` that can be part of a deadlock with a wait for the server of
// `session`: those with the same spelling of the server.
std::vector<Hold> outer_holds(const std::vector<HeldRecord>& records, const Session& session);

// The records that may belong to the lock at `address`, one for each owner: first those with the
// same spelling of the server, innermost first. A server has many spellings, so only the server
// itself knows whether it is the same.
std::vector<HeldRecord> find_outer_locks(const std::vector<HeldRecord>& records,
                                         const LockAddress& address);

// The outer runs that may hold the lock at `address`, in the order of
// find_outer_locks().
std::vector<run::OuterRun> outer_runs(const std::vector<HeldRecord>& records,
                                      const LockAddress& address);

// The records to pass to a command that runs under `own`.
std::vector<HeldRecord> records_for_command(std::vector<HeldRecord> outer_locks, HeldRecord own);

}  // namespace rlock::cli
