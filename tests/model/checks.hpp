#pragma once

#include <string>

#include "model/world.hpp"

// The invariants, as a perfect observer checks them. Each returns the one that is broken, or "".
namespace rlock::model {

// What a script did to `before`; fills in what `after` is to remember of it.
std::string check_script(const World& before, World& after, const Request& request,
                         const Reply& reply);

// The same for what is done once (D), and for what supersedes others (P).
std::string check_work(const World& before, World& after, const Request& request,
                       const Reply& reply);

// M: an owner that believes to hold the lock holds it.
std::string check_exclusion(const World& world);

}  // namespace rlock::model
