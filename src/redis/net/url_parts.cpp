#include "redis/net/url_parts.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace rlock::redis {
namespace {

constexpr int kLargestDb = 1'000'000;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<int> number(std::string_view digits, int least, int most) {
  int value = 0;
  const char* end = digits.data() + digits.size();
  auto [stopped, error] = std::from_chars(digits.data(), end, value);
  bool whole = error == std::errc{} && stopped == end && digits.front() != '-';
  if (!whole || value < least || value > most) return std::nullopt;
  return value;
}

// `db1`, `db1:6379`, `[::1]`, `[::1]:6379`: the host still encoded, the port as text after a ':'.
struct RawHost {
  std::string_view host;
  std::optional<std::string_view> port;
};

Result<RawHost> split_host(std::string_view scheme, std::string_view text) {
  RawHost raw;
  std::string_view rest;
  if (text.starts_with('[')) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return bad_url(scheme, "'[' without ']'");
    raw.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (raw.host.find(':') == std::string_view::npos) {
      return bad_url(scheme, "brackets are for IPv6 addresses");
    }
  } else {
    raw.host = text.substr(0, text.find(':'));
    rest = text.substr(raw.host.size());
    if (raw.host.find_first_of("[]") != std::string_view::npos) {
      return bad_url(scheme, "brackets belong around the whole IPv6 address, as in [::1]:6379");
    }
  }
  if (rest.empty()) return raw;
  if (rest.front() != ':') return bad_url(scheme, "only ':' and a port may follow ']'");
  raw.port = rest.substr(1);
  if (raw.port->find(':') == std::string_view::npos) return raw;
  return bad_url(scheme, "an IPv6 address is written in brackets, as in [::1]:6379");
}

Result<HostPort> parse_host_port(std::string_view scheme, std::string_view text, int default_port) {
  auto raw = split_host(scheme, text);
  if (!raw) return std::move(raw).error();
  auto host = percent_decoded(raw->host);
  if (!host || has_blanks(*host)) return bad_url(scheme, "the host name is malformed");
  if (host->empty()) return bad_url(scheme, "the host is missing; there is no default");
  if (host->front() == '.') return bad_url(scheme, "a host name does not begin with a dot");
  if (!raw->port) return HostPort{lower(*host), default_port};
  auto port = number(*raw->port, 1, 65535);
  if (!port) return bad_url(scheme, "the port must be a number from 1 to 65535");
  return HostPort{lower(*host), *port};
}

}  // namespace

Error bad_url(std::string_view scheme, std::string_view why) {
  return {ErrorKind::usage, "bad URL (" + std::string(scheme) + "://): " + std::string(why)};
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') return std::nullopt;
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* digits = text.data() + i + 1;
    auto [stopped, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc{} || stopped != digits + 2 || byte == 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

bool has_blanks(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

Result<UrlParts> split_url(std::string_view scheme, std::string_view rest) {
  if (has_blanks(rest)) {
    return bad_url(scheme, "blanks and control characters must be percent-encoded");
  }
  if (rest.find('#') != std::string_view::npos) return bad_url(scheme, "write '#' as %23");
  UrlParts parts;
  parts.scheme = scheme;
  size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  rest.remove_prefix(authority_end);
  size_t question = rest.find('?');
  if (question != std::string_view::npos) parts.query = rest.substr(question + 1);
  parts.path = rest.substr(0, question);
  size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    parts.user_info = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    if (parts.user_info->find('@') != std::string_view::npos) {
      return bad_url(scheme, "write '@' in a user name or password as %40");
    }
  }
  parts.hosts = authority;
  return parts;
}

Result<Credentials> credentials(const UrlParts& parts) {
  if (!parts.user_info) return Credentials{};
  size_t colon = parts.user_info->find(':');
  if (colon == std::string_view::npos) {
    std::string scheme(parts.scheme);
    return bad_url(scheme,
                   "a lone word before '@' is the user to some clients and the password to "
                   "others; write " +
                       scheme + "://:PASSWORD@... or " + scheme + "://USER:PASSWORD@...");
  }
  std::string_view secret = parts.user_info->substr(colon + 1);
  if (secret.find(':') != std::string_view::npos) {
    return bad_url(parts.scheme, "write ':' in a user name or password as %3A");
  }
  auto user = percent_decoded(parts.user_info->substr(0, colon));
  auto password = percent_decoded(secret);
  if (!user || !password) {
    return bad_url(parts.scheme, "write '%' in a user name or password as %25");
  }
  return Credentials{std::move(*user), std::move(*password)};
}

Result<HostPort> only_host(const UrlParts& parts, int default_port) {
  if (parts.hosts.find(',') == std::string_view::npos) {
    return parse_host_port(parts.scheme, parts.hosts, default_port);
  }
  return bad_url(parts.scheme,
                 "one host only; lists are for redis+sentinel:// and redis+cluster://");
}

Result<std::vector<HostPort>> all_hosts(const UrlParts& parts, int default_port) {
  std::vector<HostPort> hosts;
  std::string_view rest = parts.hosts;
  while (true) {
    size_t comma = rest.find(',');
    TRY(auto host, parse_host_port(parts.scheme, rest.substr(0, comma), default_port));
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) {
      return bad_url(parts.scheme, "the same host and port twice");
    }
    hosts.push_back(std::move(host));
    if (comma == std::string_view::npos) return hosts;
    rest.remove_prefix(comma + 1);
  }
}

Result<int> database(std::string_view scheme, std::string_view digits) {
  if (digits.empty()) return 0;
  if (auto db = number(digits, 0, kLargestDb)) return *db;
  return bad_url(scheme,
                 "the database must be a number, as in redis://HOST/2 (and '/', '?' or '@' in a "
                 "password be written as %2F, %3F, %40)");
}

Result<std::vector<UrlQuery>> queries(const UrlParts& parts) {
  std::vector<UrlQuery> out;
  if (!parts.query) return out;
  std::string_view rest = *parts.query;
  while (true) {
    size_t end = rest.find('&');
    std::string_view item = rest.substr(0, end);
    size_t equals = item.find('=');
    if (equals == std::string_view::npos) return bad_url(parts.scheme, "a query is KEY=VALUE");
    auto value = percent_decoded(item.substr(equals + 1));
    if (!value) return bad_url(parts.scheme, "write '%' in a query as %25");
    std::string_view key = item.substr(0, equals);
    bool twice = std::any_of(out.begin(), out.end(), [&](auto& q) { return q.key == key; });
    if (twice) return bad_url(parts.scheme, "the same query key twice");
    out.push_back({key, std::move(*value)});
    if (end == std::string_view::npos) return out;
    rest.remove_prefix(end + 1);
  }
}

Status no_query(const UrlParts& parts) {
  if (!parts.query) return Done{};
  return bad_url(parts.scheme,
                 "unknown query key: this scheme knows none (and '?' in a password is %3F)");
}

}  // namespace rlock::redis
