#pragma once

#include <string>

namespace rlock::cli {

enum class Confirmation { yes, no, no_terminal };

// Asks on the controlling terminal and reads a line there; anything but y or yes is no.
// no_terminal, without asking, where stdin or stderr is none: a script must not hang on a question.
Confirmation confirm(const std::string& question);

}  // namespace rlock::cli
