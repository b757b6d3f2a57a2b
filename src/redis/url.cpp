#include "redis/url.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace rlock::redis {
namespace {

using util::Done;
using util::Error;
using util::ErrorKind;
using util::Result;
using util::Status;

constexpr int kRedisPort = 6379;
constexpr int kSentinelPort = 26379;
constexpr int kLargestDb = 1'000'000;

// A URL cut at its marks, nothing decoded yet.
struct Parts {
  std::string_view scheme;
  std::optional<std::string_view> user_info;
  std::string_view hosts;
  std::string_view path;  // with its leading '/'
  std::optional<std::string_view> query;
};

Error bad(std::string_view scheme, std::string_view why) {
  return {ErrorKind::usage, "bad URL (" + std::string(scheme) + "://): " + std::string(why)};
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// nullopt for a '%' without two hexadecimal digits, and for NUL, which no name can hold.
std::optional<std::string> decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* digits = text.data() + i + 1;
    auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc{} || end != digits + 2 || byte == 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

std::optional<int> number(std::string_view text, int least, int most) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = error == std::errc{} && end == text.data() + text.size() && text.front() != '-';
  if (!whole || value < least || value > most) return std::nullopt;
  return value;
}

Result<Parts> cut(std::string_view scheme, std::string_view rest) {
  if (std::any_of(rest.begin(), rest.end(), is_control)) {
    return bad(scheme, "blanks and control characters must be percent-encoded");
  }
  if (rest.find('#') != std::string_view::npos) return bad(scheme, "write '#' as %23");
  Parts parts;
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
      return bad(scheme, "write '@' in a user name or password as %40");
    }
  }
  parts.hosts = authority;
  return parts;
}

Result<Credentials> credentials(const Parts& parts) {
  if (!parts.user_info) return Credentials{};
  size_t colon = parts.user_info->find(':');
  if (colon == std::string_view::npos) {
    std::string scheme(parts.scheme);
    return bad(scheme,
               "a lone word before '@' is the user to some clients and the password to "
               "others; write " +
                   scheme + "://:PASSWORD@… or " + scheme + "://USER:PASSWORD@…");
  }
  std::string_view secret = parts.user_info->substr(colon + 1);
  if (secret.find(':') != std::string_view::npos) {
    return bad(parts.scheme, "write ':' in a user name or password as %3A");
  }
  auto user = decode(parts.user_info->substr(0, colon));
  auto password = decode(secret);
  if (!user || !password) return bad(parts.scheme, "write '%' in a password as %25");
  return Credentials{std::move(*user), std::move(*password)};
}

// `db1`, `db1:6379`, `[::1]`, `[::1]:6379`: the host still encoded, the port as text after a ':'.
struct RawHost {
  std::string_view host;
  std::optional<std::string_view> port;
};

Result<RawHost> cut_host(std::string_view scheme, std::string_view text) {
  RawHost raw;
  std::string_view rest;
  if (text.starts_with('[')) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return bad(scheme, "'[' without ']'");
    raw.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (raw.host.find(':') == std::string_view::npos) {
      return bad(scheme, "brackets are for IPv6 addresses");
    }
  } else {
    raw.host = text.substr(0, text.find(':'));
    rest = text.substr(raw.host.size());
    if (raw.host.find_first_of("[]") != std::string_view::npos) {
      return bad(scheme, "brackets belong around the whole IPv6 address, as in [::1]:6379");
    }
  }
  if (rest.empty()) return raw;
  if (rest.front() != ':') return bad(scheme, "only ':' and a port may follow ']'");
  raw.port = rest.substr(1);
  if (raw.port->find(':') == std::string_view::npos) return raw;
  return bad(scheme, "an IPv6 address is written in brackets, as in [::1]:6379");
}

Result<HostPort> host_port(std::string_view scheme, std::string_view text, int usual_port) {
  auto raw = cut_host(scheme, text);
  if (!raw) return std::move(raw).error();
  auto host = decode(raw->host);
  if (!host || std::any_of(host->begin(), host->end(), is_control)) {
    return bad(scheme, "the host name is malformed");
  }
  if (host->empty()) return bad(scheme, "the host is missing; there is no default");
  if (!raw->port) return HostPort{lower(*host), usual_port};
  auto port = raw->port->empty() ? std::nullopt : number(*raw->port, 1, 65535);
  if (!port) return bad(scheme, "the port must be a number from 1 to 65535");
  return HostPort{lower(*host), *port};
}

Result<std::vector<HostPort>> host_list(const Parts& parts, int usual_port) {
  std::vector<HostPort> hosts;
  std::string_view rest = parts.hosts;
  while (true) {
    size_t comma = rest.find(',');
    auto host = host_port(parts.scheme, rest.substr(0, comma), usual_port);
    if (!host) return std::move(host).error();
    if (std::find(hosts.begin(), hosts.end(), *host) != hosts.end()) {
      return bad(parts.scheme, "the same host and port twice");
    }
    hosts.push_back(std::move(*host));
    if (comma == std::string_view::npos) return hosts;
    rest.remove_prefix(comma + 1);
  }
}

Result<int> database(std::string_view scheme, std::string_view digits) {
  if (digits.empty()) return 0;
  if (auto db = number(digits, 0, kLargestDb)) return *db;
  return bad(scheme,
             "the database must be a number, as in redis://HOST/2 (and '/', '?' or '@' in a "
             "password be written as %2F, %3F, %40)");
}

struct Query {
  std::string_view key;
  std::string value;
};

Result<std::vector<Query>> queries(const Parts& parts) {
  std::vector<Query> out;
  if (!parts.query) return out;
  std::string_view rest = *parts.query;
  while (true) {
    size_t end = rest.find('&');
    std::string_view item = rest.substr(0, end);
    size_t equals = item.find('=');
    if (equals == std::string_view::npos) return bad(parts.scheme, "a query is KEY=VALUE");
    auto value = decode(item.substr(equals + 1));
    if (!value) return bad(parts.scheme, "write '%' in a query as %25");
    std::string_view key = item.substr(0, equals);
    bool twice = std::any_of(out.begin(), out.end(), [&](auto& q) { return q.key == key; });
    if (twice) return bad(parts.scheme, "the same query key twice");
    out.push_back({key, std::move(*value)});
    if (end == std::string_view::npos) return out;
    rest.remove_prefix(end + 1);
  }
}

Status no_query(const Parts& parts) {
  if (!parts.query) return Done{};
  return bad(parts.scheme, "unknown query key (this scheme knows none; '?' in a password is %3F)");
}

Result<Url> tcp_url(const Parts& parts, Security security) {
  if (auto none = no_query(parts); !none) return std::move(none).error();
  auto who = credentials(parts);
  if (!who) return std::move(who).error();
  // Told apart before the host is read: the path of a plain URL is a number.
  auto db = database(parts.scheme, parts.path.empty() ? parts.path : parts.path.substr(1));
  if (!db) return std::move(db).error();
  auto where = host_port(parts.scheme, parts.hosts, kRedisPort);
  if (!where) return std::move(where).error();
  SingleUrl url;
  url.security = security;
  url.server.host = std::move(where->host);
  url.server.port = where->port;
  url.server.user = std::move(who->user);
  url.server.password = std::move(who->password);
  url.server.db = *db;
  return Url(std::move(url));
}

Result<Url> unix_url(const Parts& parts) {
  if (!parts.hosts.empty() || parts.path.size() < 2) {
    return bad(parts.scheme,
               "the path of the socket must be absolute, as in unix:///run/redis.sock");
  }
  auto who = credentials(parts);
  if (!who) return std::move(who).error();
  auto path = decode(parts.path);
  if (!path) return bad(parts.scheme, "write '%' in a path as %25");
  auto known = queries(parts);
  if (!known) return std::move(known).error();
  SingleUrl url;
  for (const Query& query : *known) {
    if (query.key != "db") return bad(parts.scheme, "unknown query key (db is the only one)");
    auto db = database(parts.scheme, query.value);
    if (!db) return std::move(db).error();
    url.server.db = *db;
  }
  url.server.transport = Transport::unix_socket;
  url.server.path = std::move(*path);
  url.server.user = std::move(who->user);
  url.server.password = std::move(who->password);
  return Url(std::move(url));
}

// `/MASTER` and `/MASTER/DB`.
Status read_master(const Parts& parts, SentinelUrl& url) {
  std::string_view path = parts.path.empty() ? parts.path : parts.path.substr(1);
  size_t slash = path.find('/');
  auto master = decode(path.substr(0, slash));
  if (!master || master->empty() || std::any_of(master->begin(), master->end(), is_control)) {
    return bad(parts.scheme, "the master's name is missing, as in " + std::string(parts.scheme) +
                                 "://HOST/MASTER");
  }
  url.master = std::move(*master);
  if (slash == std::string_view::npos) return Done{};
  auto db = database(parts.scheme, path.substr(slash + 1));
  if (!db) return std::move(db).error();
  url.db = *db;
  return Done{};
}

Result<Url> sentinel_url(const Parts& parts, Security security) {
  SentinelUrl url;
  url.security = security;
  auto who = credentials(parts);
  if (!who) return std::move(who).error();
  url.credentials = std::move(*who);
  auto hosts = host_list(parts, kSentinelPort);
  if (!hosts) return std::move(hosts).error();
  url.sentinels = std::move(*hosts);
  if (auto read = read_master(parts, url); !read) return std::move(read).error();
  auto known = queries(parts);
  if (!known) return std::move(known).error();
  for (Query& query : *known) {
    if (query.key == "sentinel_username") {
      url.sentinel_credentials.user = std::move(query.value);
    } else if (query.key == "sentinel_password") {
      url.sentinel_credentials.password = std::move(query.value);
    } else {
      return bad(parts.scheme, "unknown query key (known: sentinel_username, sentinel_password)");
    }
  }
  return Url(std::move(url));
}

Result<Url> cluster_url(const Parts& parts, Security security) {
  if (auto none = no_query(parts); !none) return std::move(none).error();
  if (parts.path.size() > 1)
    return bad(parts.scheme, "a cluster has no databases: end after the hosts");
  auto who = credentials(parts);
  if (!who) return std::move(who).error();
  auto hosts = host_list(parts, kRedisPort);
  if (!hosts) return std::move(hosts).error();
  return Url(ClusterUrl{security, std::move(*who), std::move(*hosts)});
}

Result<Url> local_url(std::string_view folder) {
  auto decoded = decode(folder);
  if (!decoded) return Error{ErrorKind::usage, "bad URL (local:): write '%' as %25"};
  if (decoded->starts_with("//")) {
    return Error{ErrorKind::usage, "bad URL (local:): write local:DIR, without '//'"};
  }
  return Url(LocalUrl{std::move(*decoded)});
}

Error unknown_scheme() {
  return {ErrorKind::usage,
          "bad URL: it must begin with redis://, rediss://, unix://, redis+sentinel://, "
          "rediss+sentinel://, redis+cluster://, rediss+cluster:// or local:"};
}

// Whether two URLs lead to the same place, whatever the database and the user.
std::string place(const HostPort& at) {
  return (at.host == "localhost" ? "127.0.0.1" : at.host) + ' ' + std::to_string(at.port) + ' ';
}

std::string place(const std::vector<HostPort>& all) {
  std::string text;
  for (const HostPort& one : all) text += place(one);
  return text;
}

struct Place {
  std::string operator()(const SingleUrl& url) const {
    if (url.server.transport == Transport::unix_socket) return url.server.path;
    return place(HostPort{url.server.host, url.server.port});
  }
  std::string operator()(const SentinelUrl& url) const { return place(url.sentinels) + url.master; }
  std::string operator()(const ClusterUrl& url) const { return place(url.nodes); }
  std::string operator()(const LocalUrl& url) const { return "local:" + url.folder; }
};

Status all_different(const std::vector<Url>& urls) {
  std::vector<std::string> places;
  for (const Url& url : urls) places.push_back(std::visit(Place{}, url));
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) == places.end()) return Done{};
  return Error{ErrorKind::usage,
               "two of the URLs name the same server: a quorum needs independent ones"};
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  if (text.starts_with("local:")) return local_url(text.substr(6));
  size_t mark = text.find("://");
  if (mark == std::string_view::npos) return unknown_scheme();
  std::string scheme = lower(text.substr(0, mark));
  auto parts = cut(scheme, text.substr(mark + 3));
  Security security = scheme.starts_with("rediss") ? Security::tls : Security::plain;
  std::string_view kind = scheme;
  kind.remove_prefix(std::min(kind.size(), security == Security::tls ? size_t{6} : size_t{5}));
  bool ours =
      scheme == "unix" || scheme == "redis+unix" ||
      (scheme.starts_with("redis") && (kind.empty() || kind == "+sentinel" || kind == "+cluster"));
  if (!ours) return unknown_scheme();
  if (!parts) return std::move(parts).error();
  if (scheme.ends_with("unix")) return unix_url(*parts);
  if (kind == "+sentinel") return sentinel_url(*parts, security);
  if (kind == "+cluster") return cluster_url(*parts, security);
  return tcp_url(*parts, security);
}

Result<std::vector<Url>> parse_urls(const std::vector<std::string>& texts) {
  if (texts.empty()) {
    return Error{ErrorKind::config,
                 "no server given: use --url, RLOCK_URL or `url` in rlock.toml; `--url local:` "
                 "starts a private server on this machine"};
  }
  if (texts.size() == 2) {
    return Error{ErrorKind::usage,
                 "two servers make no majority: give one URL, or three and more for a quorum"};
  }
  std::vector<Url> urls;
  for (const std::string& text : texts) {
    auto url = parse_url(text);
    if (!url) return std::move(url).error();
    urls.push_back(std::move(*url));
  }
  if (auto different = all_different(urls); !different) return std::move(different).error();
  return urls;
}

}  // namespace rlock::redis
