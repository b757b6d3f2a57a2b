#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"

// Finds runs that wait for each other: each holds a lock for which the next run waits. Considers
// only exclusive locks of one server.
namespace rlock::cli {

// The run that holds `hold`, in which it waits for `waits_for`.
struct BlockedHolder {
  Hold hold;
  std::string who;  // `root@web2 (pid 812)`, printable
  std::string waits_for;
  std::string waiter;  // its owner in that queue

  bool operator==(const BlockedHolder&) const = default;
};

// Reads a lock with its waiters; nullopt if it cannot be read.
using ReadLock = std::function<std::optional<lock::Snapshot>(const lock::LockName&)>;

// The chain by which the holder of `wanted` waits for one of `held`, directly or through other
// waiting runs, starting with the holder of `wanted`. Empty if it does not, or if a lock could not
// be read.
std::vector<BlockedHolder> find_deadlock(const ReadLock& read, const Hold& wanted,
                                         const std::vector<Hold>& held);

// The text for LockView::deadlock: whether the holder of the lock waits, inside another lock, for
// one of its waiters.
std::string deadlock_of(const ReadLock& read, const LockView& lock);

// `"b" is held by root@web2 (pid 812), which waits for "a"`
std::string deadlock_phrase(const std::vector<BlockedHolder>& chain);

}  // namespace rlock::cli
