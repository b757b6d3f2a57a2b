#pragma once

#include <string_view>

#include "util/result.hpp"

namespace rlock::redis {

// An error reply as the exit code's kind: what services and proxies are known to refuse with what
// to do about it, all else in the server's own words, without the keys and arguments that some
// quote.
Error decode_error(std::string_view text);

}  // namespace rlock::redis
