#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/run.hpp"

// RLOCK_HELD: what a run hands on to the runs nested in it.
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
  TimePoint at{};      // when it had that number
  Millis renewing{0};  // the ttl that it renews; 0: it does not renew
};

// A lock that a run around this one held when it started its command.
struct HeldRecord {
  LockAddress address;
  run::HeldLock held_lock;
  HolderProcess process{};  // the innermost of the runs with this use
  // Of the nested runs between, outermost first: what an ending of theirs looks for in the
  // environment of a process.
  std::vector<std::string> entries{};
};

// Innermost first. What is no record of ours is left out: the text may come from anybody.
std::vector<HeldRecord> decode_held(std::string_view text);
std::string encode_held(const std::vector<HeldRecord>& records);

// Those who may hold the lock there, each owner once: first with the server spelled alike,
// innermost first. One server has many spellings, so that only it can tell.
std::vector<HeldRecord> find_outer_locks(const std::vector<HeldRecord>& records,
                                         const LockAddress& address);

// The records for a command that runs under `own`, which has no entries yet.
std::vector<HeldRecord> records_for_command(std::vector<HeldRecord> outer_locks, HeldRecord own);

}  // namespace rlock::cli
