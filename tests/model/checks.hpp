#pragma once

#include <string>

#include "model/world.hpp"

// The invariants, as a perfect observer checks them. Each returns the one that is broken, or "".
namespace rlock::model {

// What a script did to `before`; fills in what `after` is to remember of it. F: tokens, L: leases
// and what is left of them, Q: the order, H: heartbeats, O: what only the owner may do, S: slots,
// D: what is done once, P: what supersedes others.
std::string check_script(const World& before, World& after, const Request& request,
                         const Reply& reply);

// M: an owner that believes to hold the lock holds it.
std::string check_exclusion(const World& world);

}  // namespace rlock::model
