#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/url.hpp"
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
util::Error bad_url(std::string_view scheme, std::string_view why);

// nullopt for a '%' without two hexadecimal digits, and for NUL, which no name can hold.
std::optional<std::string> percent_decoded(std::string_view text);

// Control characters and the blank.
bool has_blanks(std::string_view text);

// `rest`: what follows the `://`.
util::Result<UrlParts> cut_url(std::string_view scheme, std::string_view rest);

util::Result<Credentials> credentials(const UrlParts& parts);

// The only host, or the list of them, each with `usual_port` where it names none.
util::Result<HostPort> only_host(const UrlParts& parts, int usual_port);
util::Result<std::vector<HostPort>> all_hosts(const UrlParts& parts, int usual_port);

// Nothing is database 0.
util::Result<int> database(std::string_view scheme, std::string_view digits);

util::Result<std::vector<UrlQuery>> queries(const UrlParts& parts);
util::Status no_query(const UrlParts& parts);

}  // namespace rlock::redis
