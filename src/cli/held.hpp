#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/run.hpp"

// RLOCK_HELD: what a run hands on to the runs nested in it.
namespace rlock::cli {

// Which lock, and where it is.
struct HeldPlace {
  std::string server;  // as lock::LockStore::server() spells it
  std::string prefix;
  std::string name;
  bool operator==(const HeldPlace&) const = default;
};

// The rlock that holds or has entered a lock.
struct HeldBy {
  pid_t pid = 0;
  util::TimePoint at{};      // when it had that number
  util::Millis renewing{0};  // the ttl that it renews; 0: it does not renew
};

// A lock that a run around this one held when it started its command.
struct HeldRecord {
  HeldPlace place;
  run::Use use;
  HeldBy by{};  // the innermost of the runs with this use
  // Of the nested runs between, outermost first: what an ending of theirs looks for in the
  // environment of a process.
  std::vector<std::string> entries{};
};

// Innermost first. What is no record of ours is left out: the text may come from anybody.
std::vector<HeldRecord> decode_held(std::string_view text);
std::string encode_held(const std::vector<HeldRecord>& records);

// Those who may hold the lock there, each owner once: first with the server spelled alike,
// innermost first. One server has many spellings, so that only it can tell.
std::vector<HeldRecord> held_around(const std::vector<HeldRecord>& records, const HeldPlace& place);

// The records for a command that runs under `own`, which has no entries yet.
std::vector<HeldRecord> held_inside(std::vector<HeldRecord> around, HeldRecord own);

}  // namespace rlock::cli
