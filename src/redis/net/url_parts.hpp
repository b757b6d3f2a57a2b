#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/net/url.hpp"
#include "util/result.hpp"

// What the kinds of URL have in common; only url.cpp uses it.
namespace rlock::redis {

// A URL cut at its marks, nothing decoded yet.
struct UrlParts {
  std::string_view scheme;
  std::optional<std::string_view> user_info;
  std::string_view hosts;
  std::string_view path;  // with its leading '/'
  std::optional<std::string_view> query;
};

// One word of the query: KEY=VALUE.
struct UrlQuery {
  std::string_view key;
  std::string value;
};

// ErrorKind::usage: `bad URL (SCHEME://): WHY`.
Error bad_url(std::string_view scheme, std::string_view why);

// nullopt for a '%' without two hexadecimal digits, and for NUL, which no name can hold.
std::optional<std::string> percent_decoded(std::string_view text);

// Control characters and the blank.
bool has_blanks(std::string_view text);

// `rest`: what follows the `://`.
Result<UrlParts> split_url(std::string_view scheme, std::string_view rest);

Result<Credentials> credentials(const UrlParts& parts);

// The only host, or the list of them, each with `default_port` where it names none.
Result<HostPort> only_host(const UrlParts& parts, int default_port);
Result<std::vector<HostPort>> all_hosts(const UrlParts& parts, int default_port);

// Nothing is database 0.
Result<int> database(std::string_view scheme, std::string_view digits);

Result<std::vector<UrlQuery>> queries(const UrlParts& parts);
Status no_query(const UrlParts& parts);

}  // namespace rlock::redis
