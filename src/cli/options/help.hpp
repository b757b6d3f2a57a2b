#pragma once

#include <string>

#include "cli/options/options.hpp"

namespace rlock::cli {

// The texts of --help, made from the options table: at most 80 columns, with a newline at the end.
std::string short_help();
std::string general_help();
std::string command_help(CommandId command);

}  // namespace rlock::cli
