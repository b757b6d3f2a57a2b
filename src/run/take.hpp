#pragma once

#include <variant>

#include "run/run.hpp"

namespace rlock::run {

// A lock that is held, and nothing runs under it yet.
struct Taken {
  lock::Token token;
  TimePoint granted_at;  // from where the lease counts
};

// Waits for plan.claim as plan.limits say. Either the lock, with at least half of its lease left,
// or what the wait came to; then everything was given back as far as a server answered. With the
// lock, plan.claim has the owner under which it was granted.
std::variant<Taken, Outcome> take_lock(Plan& plan, lock::LockStore& store, Observer& observer,
                                       Signals& signals);

}  // namespace rlock::run
