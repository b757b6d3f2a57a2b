// The only file that contains the code of libfmt, and so the only one that takes long to compile:
// Debian has no archive of it, and its shared library would be loaded at every start.
#define FMT_HEADER_ONLY
#include <fmt/core.h>

#include "util/text.hpp"

namespace rlock::util {

std::string filled(fmt::string_view pattern, fmt::format_args args) {
  return fmt::vformat(pattern, args);
}

}  // namespace rlock::util
