#pragma once

#include <string>

#include "model/world.hpp"

namespace rlock::model {

// Equal for worlds that have the same future: times count from now, what is past is past; numbers
// issued are ranks; what nobody can ask for again is left out; alike clients are interchangeable.
std::string canonical(const World& world);

}  // namespace rlock::model
