#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace rlock::redis {

struct HostPort {
  std::string host;  // IPv6 without brackets
  int port = 0;
  bool operator==(const HostPort&) const = default;
};

// 1 to 65535.
std::optional<int> parse_port(std::string_view digits);

// As servers write it, split at the last colon: `10.0.0.1:6381`, `::1:6381`, `:6381`.
std::optional<HostPort> parse_host_port(std::string_view text);

// As a URL has it, percent-encoded: `db1`, `db1:6379`, `[::1]`, `[::1]:6379`. The host in lower
// case. An Error says what is wrong and holds no part of `text`.
Result<HostPort> parse_url_host(std::string_view text, int default_port);

}  // namespace rlock::redis
