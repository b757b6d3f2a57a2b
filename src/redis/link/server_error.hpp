#pragma once

#include <string_view>

#include "util/result.hpp"

namespace rlock::redis {

// An error reply as an Error. The known refusals of services and proxies get advice; all others
// keep the server's text, without the keys and arguments that some servers quote.
Error decode_error(std::string_view text);

// How the Error for a redirection begins, where no cluster was expected.
inline constexpr std::string_view kClusterNode = "the server is a node of a cluster";

}  // namespace rlock::redis
