// Contains all code of libfmt, so that only this file takes long to compile. Debian has no static
// archive of libfmt, and the program would load its shared library at every start.
#define FMT_HEADER_ONLY
#include <fmt/core.h>

#include "util/text.hpp"

namespace rlock::util {

std::string filled(fmt::string_view pattern, fmt::format_args args) {
  return fmt::vformat(pattern, args);
}

}  // namespace rlock::util
