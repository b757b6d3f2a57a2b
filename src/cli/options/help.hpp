#pragma once

#include <string>

#include "cli/options/options.hpp"

namespace rlock::cli {

// Each within 80 columns, ending in a newline, made from the tables in options.hpp.
std::string short_help();
std::string general_help();
std::string command_help(CommandId command);

}  // namespace rlock::cli
