#include "redis/net/host_port.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "util/number.hpp"
#include "util/percent.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

Error malformed(const char* why) {
  return {ErrorKind::usage, why};
}

// The host, still encoded, and after a ':' the port.
struct RawHost {
  std::string_view host;
  std::optional<std::string_view> port;
};

Result<RawHost> split_host(std::string_view text) {
  RawHost raw;
  std::string_view rest;
  if (text.starts_with('[')) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return malformed("'[' without ']'");
    raw.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (raw.host.find(':') == std::string_view::npos) {
      return malformed("brackets are only for IPv6 addresses");
    }
  } else {
    raw.host = text.substr(0, text.find(':'));
    rest = text.substr(raw.host.size());
    if (raw.host.find_first_of("[]") != std::string_view::npos) {
      return malformed("put brackets around the whole IPv6 address, as in [::1]:6379");
    }
  }
  if (rest.empty()) return raw;
  if (rest.front() != ':') return malformed("only ':' and a port may follow ']'");
  raw.port = rest.substr(1);
  if (raw.port->find(':') == std::string_view::npos) return raw;
  return malformed("put an IPv6 address in brackets, as in [::1]:6379");
}

bool is_blank(unsigned char c) {
  return c <= ' ' || c == 0x7f;
}

}  // namespace

std::optional<int> parse_port(std::string_view digits) {
  auto port = util::parse_number<uint16_t>(digits);
  return port && *port > 0 ? std::optional<int>(*port) : std::nullopt;
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto port = parse_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  return HostPort{std::string(text.substr(0, colon)), *port};
}

Result<HostPort> parse_url_host(std::string_view text, int default_port) {
  TRY(auto raw, split_host(text));
  auto host = util::percent_decoded(raw.host);
  if (!host || std::any_of(host->begin(), host->end(), is_blank)) {
    return malformed("the host name is malformed");
  }
  if (host->empty()) return malformed("the host is missing; there is no default");
  if (host->front() == '.') return malformed("a host name must not begin with a dot");
  auto port = raw.port ? parse_port(*raw.port) : default_port;
  if (!port) return malformed("the port must be a number from 1 to 65535");
  return HostPort{util::lower_case(*host), *port};
}

}  // namespace rlock::redis
