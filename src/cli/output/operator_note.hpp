#pragma once

#include <string>

#include "cli/options/parse.hpp"

namespace rlock::cli {

// Who intervenes, from where, when and why (--reason): what the one concerned is told.
std::string operator_note(const Choices& choices);

}  // namespace rlock::cli
