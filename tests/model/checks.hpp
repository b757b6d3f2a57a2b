#pragma once

#include <stdexcept>

#include "model/world.hpp"

// The invariants, as a perfect observer checks them: each throws Broken where it does not hold.
namespace rlock::model {

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a script did to `before`; fills in what `after` is to remember of it. F: tokens, L: leases
// and what is left of them, Q: the order, H: heartbeats, O: what only the owner may do, S: slots,
// D: what is done once, P: what supersedes others, C: closures.
void check_script(const World& before, World& after, const Request& request, const Reply& reply);

// M: an owner that believes to hold the lock holds it.
void check_exclusion(const World& world);

}  // namespace rlock::model
