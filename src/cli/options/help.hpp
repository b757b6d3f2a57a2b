#pragma once

#include <string>

#include "cli/options/choices.hpp"

namespace rlock::cli {

// The texts of --help, made from the options table: at most 80 columns, with a newline at the end.
// The commands; with HelpLength::full, also the connection options.
std::string general_help(HelpLength length);
// brief: the examples and the common options.
std::string command_help(CommandId command, HelpLength length);

}  // namespace rlock::cli
