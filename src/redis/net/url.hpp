#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "redis/net/server.hpp"
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

// The URL grammar of rlock(1). An error text contains no part of the URL but its scheme: what looks
// like a host or a port may be a password whose '/' or '@' was not encoded.

enum class Security { plain, tls };

struct Credentials {
  std::string user;
  std::string password;
  bool operator==(const Credentials&) const = default;
};

// redis://, rediss://, unix://, redis+unix://
struct SingleUrl {
  Security security = Security::plain;
  Server server;
};

// redis+sentinel://, rediss+sentinel://
struct SentinelUrl {
  Security security = Security::plain;
  Credentials credentials;
  Credentials sentinel_credentials;
  std::vector<HostPort> sentinels;
  std::string master;
  int db = 0;
};

// redis+cluster://, rediss+cluster://
struct ClusterUrl {
  Security security = Security::plain;
  Credentials credentials;
  std::vector<HostPort> nodes;
};

// local:, local:DIR
struct LocalUrl {
  std::string folder;  // empty: the default one
};

using Url = std::variant<SingleUrl, SentinelUrl, ClusterUrl, LocalUrl>;

// ErrorKind::usage: what is wrong, and how to write it.
Result<Url> parse_url(std::string_view text);

// User and password for its servers, empty where it has none; not those for the sentinels.
Credentials own_credentials(const Url& url);

// Writes asterisks over what is, or may be, a password in `text`: URLs, which may be malformed.
// False: there is none.
bool mask_passwords(std::span<char> text);

// One URL, or at least three of different servers. ErrorKind::config for none at all,
// ErrorKind::usage for two, for repeated servers and for a malformed one.
Result<std::vector<Url>> parse_urls(const std::vector<std::string>& texts);

}  // namespace rlock::redis
