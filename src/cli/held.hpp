#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/run.hpp"

// RLOCK_HELD: what a run tells the runs nested in it. [CLI.md, run]
namespace rlock::cli {

// Which lock, and where it is.
struct HeldPlace {
  std::string server;  // as lock::LockStore::server() tells it
  std::string prefix;
  std::string name;
  bool operator==(const HeldPlace&) const = default;
};

// A lock that a run around this one held when it started its command.
struct HeldRecord {
  HeldPlace place;
  run::Use use;
  // Of the nested runs between, outermost first: what an ending of theirs looks for in the
  // environment of a process.
  std::vector<std::string> entries{};
};

// Innermost first. What is no record of ours is left out: the text may come from anybody.
std::vector<HeldRecord> decode_held(std::string_view text);
std::string encode_held(const std::vector<HeldRecord>& records);

// What the innermost run around us holds there, if any does.
std::optional<run::Use> held_around(const std::vector<HeldRecord>& records, const HeldPlace& place);

// The records for a command that runs under `use` of the lock there.
std::vector<HeldRecord> held_inside(std::vector<HeldRecord> around, const HeldPlace& place,
                                    const run::Use& use);

}  // namespace rlock::cli
