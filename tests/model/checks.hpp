#pragma once

#include <string>

#include "model/world.hpp"

// The promises, as a perfect observer checks them. Each tells which one is broken, or "".
namespace rlock::model {

// What a script did to `before`; fills in what `after` is to remember of it.
std::string check_script(const World& before, World& after, const Request& request,
                         const Reply& reply);

// M: whoever believes to hold the lock, believes rightly.
std::string check_exclusion(const World& world);

}  // namespace rlock::model
