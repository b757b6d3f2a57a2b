#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"

// Runs that wait for each other: each holds a lock for which the next run waits. Considers only
// exclusive locks of one server.
namespace rlock::cli {

// The run of `hold`, which waits for `waits_for` inside of it.
struct BlockedHolder {
  Hold hold;
  std::string who;  // `root@web2 (pid 812)`, printable
  std::string waits_for;
  std::string waiter;  // its owner there

  bool operator==(const BlockedHolder&) const = default;
};

// What is known of a lock, with its waiters; none where it cannot be read.
using ReadLock = std::function<std::optional<lock::Snapshot>(const lock::LockName&)>;

// How the holder of `wanted` waits, perhaps for others who wait, for one of `held`: from the holder
// of `wanted` on. Empty: it does not, or nobody could say so.
std::vector<BlockedHolder> find_deadlock(const ReadLock& read, const Hold& wanted,
                                         const std::vector<Hold>& held);

// Whether the holder of the lock waits, inside of another lock, for one of its waiters: as
// LockView::deadlock.
std::string deadlock_of(const ReadLock& read, const LockView& lock);

// `"b" is held by root@web2 (pid 812), which waits for "a"`
std::string deadlock_phrase(const std::vector<BlockedHolder>& chain);

}  // namespace rlock::cli
