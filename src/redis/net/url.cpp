#include "redis/net/url.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "redis/net/secret.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

Error malformed(const char* why) {
  return {ErrorKind::usage, why};
}

bool has_blanks(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

// Parses a percent-encoded host: `db1`, `db1:6379`, `[::1]`, `[::1]:6379`. The host becomes lower
// case. An Error says what is wrong and contains no part of `text`.
Result<HostPort> parse_url_host(std::string_view text, int default_port) {
  const bool bracketed = text.starts_with('[');
  const size_t end = text.find(bracketed ? ']' : ':');
  if (bracketed && end == text.npos) return malformed("'[' without ']'");
  const std::string_view raw = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  const std::string_view rest = text.substr(bracketed ? end + 1 : raw.size());
  if (bracketed && raw.find(':') == raw.npos) {
    return malformed("brackets are only for IPv6 addresses");
  }
  if (!bracketed && raw.find_first_of("[]") != raw.npos) {
    return malformed("put brackets around the whole IPv6 address, as in [::1]:6379");
  }
  if (!rest.empty() && rest.front() != ':') return malformed("only ':' and a port may follow ']'");
  if (rest.find(':', 1) != rest.npos) {
    return malformed("put an IPv6 address in brackets, as in [::1]:6379");
  }
  auto host = util::percent_decoded(raw);
  if (!host || has_blanks(*host)) return malformed("the host name is malformed");
  if (host->empty()) return malformed("the host is missing; there is no default");
  if (host->front() == '.') return malformed("a host name must not begin with a dot");
  auto port = rest.empty() ? default_port : parse_port(rest.substr(1));
  if (!port) return malformed("the port must be a number from 1 to 65535");
  return HostPort{util::lower_case(*host), *port};
}

constexpr int kRedisPort = 6379;
constexpr int kSentinelPort = 26379;
constexpr unsigned kLargestDb = 1'000'000;

// The parts of a URL, still encoded.
struct UrlParts {
  std::string_view scheme;
  std::optional<std::string_view> user_info;
  std::string_view hosts;
  std::string_view path;  // with its leading '/'
  std::optional<std::string_view> query;
};

// KEY=VALUE in the query.
struct UrlQuery {
  std::string_view key;
  std::string value;
};

Error bad_url(std::string_view scheme, std::string_view why) {
  return {ErrorKind::usage, util::format("bad URL ({}://): {}", scheme, why)};
}

// Decodes `text`; nullopt if it is invalid or contains NUL, which no name can.
std::optional<std::string> percent_text(std::string_view text) {
  auto out = util::percent_decoded(text);
  return out && out->find('\0') == out->npos ? out : std::nullopt;
}

Result<UrlParts> split_url(std::string_view scheme, std::string_view rest) {
  if (has_blanks(rest)) {
    return bad_url(scheme, "spaces and control characters must be percent-encoded");
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

// A server with the user and the password of the URL.
Result<Server> login(const UrlParts& parts, Security security) {
  Server server;
  server.security = security;
  if (!parts.user_info) return server;
  size_t colon = parts.user_info->find(':');
  if (colon == std::string_view::npos) {
    return bad_url(
        parts.scheme,
        util::format("a single word before '@' is a user to some clients and a password to others; "
                     "write {0}://:PASSWORD@... or {0}://USER:PASSWORD@...",
                     parts.scheme));
  }
  std::string_view secret = parts.user_info->substr(colon + 1);
  if (secret.find(':') != std::string_view::npos) {
    return bad_url(parts.scheme, "write ':' in a user name or password as %3A");
  }
  auto user = percent_text(parts.user_info->substr(0, colon));
  auto password = percent_text(secret);
  if (!user || !password) {
    return bad_url(parts.scheme, "write '%' in a user name or password as %25");
  }
  server.user = std::move(*user);
  server.password = std::move(*password);
  return server;
}

// Servers at the hosts of the URL, in all other respects like `server`.
Result<std::vector<Server>> at_hosts(const UrlParts& parts, int default_port, Server server) {
  std::vector<Server> servers;
  for (std::string_view text : util::split(parts.hosts, ',')) {
    auto at = parse_url_host(text, default_port);
    if (!at) return bad_url(parts.scheme, at.error().text);
    auto same = [&](const Server& one) { return one.host == at->host && one.port == at->port; };
    if (std::any_of(servers.begin(), servers.end(), same)) {
      return bad_url(parts.scheme, "the same host and port is given twice");
    }
    server.host = at->host;
    server.port = at->port;
    servers.push_back(server);
  }
  return servers;
}

Result<int> database(std::string_view scheme, std::string_view digits) {
  if (digits.empty()) return 0;
  auto db = util::parse_number<unsigned>(digits);
  if (db && *db <= kLargestDb) return static_cast<int>(*db);
  return bad_url(scheme,
                 "the database must be a number, as in redis://HOST/2 (write '/', '?' and '@' in a "
                 "password as %2F, %3F and %40)");
}

Result<std::vector<UrlQuery>> queries(const UrlParts& parts) {
  std::vector<UrlQuery> out;
  if (!parts.query) return out;
  for (std::string_view item : util::split(*parts.query, '&')) {
    size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return bad_url(parts.scheme, "write the query as KEY=VALUE");
    auto value = percent_text(item.substr(equals + 1));
    if (!value) return bad_url(parts.scheme, "write '%' in a query as %25");
    std::string_view key = item.substr(0, equals);
    bool repeated = std::any_of(out.begin(), out.end(), [&](auto& q) { return q.key == key; });
    if (repeated) return bad_url(parts.scheme, "the same query key is given twice");
    out.push_back({key, std::move(*value)});
  }
  return out;
}

Status no_query(const UrlParts& parts) {
  if (!parts.query) return Done{};
  return bad_url(parts.scheme,
                 "unknown query key: this scheme has none (write '?' in a password as %3F)");
}

Result<Url> tcp_url(const UrlParts& parts, Security security) {
  TRY_STATUS(no_query(parts));
  TRY(auto server, login(parts, security));
  TRY(server.db, database(parts.scheme, parts.path.empty() ? parts.path : parts.path.substr(1)));
  if (parts.hosts.find(',') != std::string_view::npos) {
    return bad_url(parts.scheme,
                   "one host only; lists are for redis+sentinel:// and redis+cluster://");
  }
  TRY(auto servers, at_hosts(parts, kRedisPort, std::move(server)));
  return Url(std::move(servers.front()));
}

Result<Url> unix_url(const UrlParts& parts, Security security) {
  if (!parts.hosts.empty() || parts.path.size() < 2) {
    return bad_url(parts.scheme,
                   "the path of the socket must be absolute, as in unix:///run/redis.sock");
  }
  TRY(auto server, login(parts, security));
  auto path = percent_text(parts.path);
  if (!path) return bad_url(parts.scheme, "write '%' in a path as %25");
  TRY(auto known, queries(parts));
  for (const UrlQuery& query : known) {
    if (query.key != "db") return bad_url(parts.scheme, "unknown query key (db is the only one)");
    TRY(server.db, database(parts.scheme, query.value));
  }
  server.path = std::move(*path);
  return Url(std::move(server));
}

// `/MASTER` and `/MASTER/DB`.
Status read_master(const UrlParts& parts, SentinelGroup& group) {
  std::string_view path = parts.path.empty() ? parts.path : parts.path.substr(1);
  size_t slash = path.find('/');
  auto master = percent_text(path.substr(0, slash));
  if (!master || master->empty() || has_blanks(*master)) {
    return bad_url(
        parts.scheme,
        util::format("the master's name is missing: write {}://HOST/MASTER", parts.scheme));
  }
  group.name = std::move(*master);
  if (slash == std::string_view::npos) return Done{};
  TRY(group.master.db, database(parts.scheme, path.substr(slash + 1)));
  return Done{};
}

Result<Url> sentinel_url(const UrlParts& parts, Security security) {
  SentinelGroup group;
  TRY(group.master, login(parts, security));
  Server sentinel;
  sentinel.security = security;
  TRY(group.sentinels, at_hosts(parts, kSentinelPort, std::move(sentinel)));
  TRY_STATUS(read_master(parts, group));
  TRY(auto known, queries(parts));
  for (const UrlQuery& query : known) {
    if (query.key != "sentinel_username" && query.key != "sentinel_password") {
      return bad_url(parts.scheme,
                     "unknown query key (known: sentinel_username, sentinel_password)");
    }
    for (Server& one : group.sentinels) {
      (query.key == "sentinel_username" ? one.user : one.password) = query.value;
    }
  }
  return Url(std::move(group));
}

Result<Url> cluster_url(const UrlParts& parts, Security security) {
  TRY_STATUS(no_query(parts));
  if (parts.path.size() > 1 && parts.path != "/0")
    return bad_url(parts.scheme, "a cluster has no databases: the URL must end after the hosts");
  TRY(auto node, login(parts, security));
  TRY(auto seeds, at_hosts(parts, kRedisPort, std::move(node)));
  return Url(ClusterSeeds{std::move(seeds)});
}

Result<Url> local_url(std::string_view folder) {
  auto decoded = percent_text(folder);
  if (!decoded) return malformed("bad URL (local:): write '%' as %25");
  if (decoded->starts_with("//")) {
    return malformed("bad URL (local:): write local:DIR, without '//'");
  }
  // With a relative path, callers in different folders would start different servers.
  if (!decoded->empty() && decoded->front() != '/') {
    return malformed("bad URL (local:): the folder must be absolute, as in local:/var/lib/locks");
  }
  return Url(LocalUrl{std::move(*decoded)});
}

struct UrlScheme {
  std::string_view scheme;
  Result<Url> (*parse)(const UrlParts&, Security);
  Security security;
};

constexpr UrlScheme kUrlSchemes[] = {{"redis", tcp_url, Security::plain},
                                     {"rediss", tcp_url, Security::tls},
                                     {"valkey", tcp_url, Security::plain},
                                     {"valkeys", tcp_url, Security::tls},
                                     {"unix", unix_url, Security::plain},
                                     {"redis+unix", unix_url, Security::plain},
                                     {"redis+sentinel", sentinel_url, Security::plain},
                                     {"rediss+sentinel", sentinel_url, Security::tls},
                                     {"redis+cluster", cluster_url, Security::plain},
                                     {"rediss+cluster", cluster_url, Security::tls}};

// The URL that a text without a known scheme most likely means. None if it may contain a password,
// or if its scheme resembles that of Sentinel or Cluster.
std::optional<std::string> meant_url(std::string_view text) {
  const size_t mark = text.find("://");
  const std::string_view rest = mark == text.npos ? text : text.substr(mark + 3);
  if (rest.find('@') != rest.npos || text.substr(0, mark).find('+') != text.npos) {
    return std::nullopt;
  }
  const std::string url = (rest.starts_with('/') ? "unix://" : "redis://") + std::string(rest);
  return util::printable(url) == url && parse_url(url) ? std::optional(url) : std::nullopt;
}

Error unknown_scheme(std::string_view text) {
  if (auto url = meant_url(text)) {
    return {ErrorKind::usage,
            util::format("bad URL \"{}\": did you mean {}?", util::printable(text), *url)};
  }
  return malformed(
      "bad URL: it must begin with redis://, rediss://, valkey://, valkeys://, unix://, "
      "redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster:// or local:; "
      "write a space in a URL as %20");
}

// Equal for URLs of the same server, whatever their databases and users.
struct UrlKey {
  std::string operator()(const Server& server) const {
    if (server.is_unix()) return server.path;
    const std::string host = server.host == "localhost" ? "127.0.0.1" : server.host;
    return host + ' ' + std::to_string(server.port) + ' ';
  }
  std::string operator()(const std::vector<Server>& all) const {
    std::string text;
    for (const Server& one : all) text += (*this)(one);
    return text;
  }
  std::string operator()(const SentinelGroup& group) const {
    return (*this)(group.sentinels) + group.name;
  }
  std::string operator()(const ClusterSeeds& cluster) const { return (*this)(cluster.seeds); }
  std::string operator()(const LocalUrl& url) const { return "local:" + url.folder; }
};

Status check_distinct(const std::vector<Url>& urls) {
  std::vector<std::string> keys;
  keys.reserve(urls.size());
  for (const Url& url : urls) keys.push_back(std::visit(UrlKey{}, url));
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) == keys.end()) return Done{};
  return malformed("two of the URLs name the same server; a quorum needs independent servers");
}

}  // namespace

std::string Endpoint::label() const {
  std::string text = path;
  if (!is_unix()) {
    bool v6 = host.find(':') != std::string::npos;
    text = (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  if (db == 0) return text;
  // After a path a bare `/2` would look like a part of it.
  return text + (is_unix() ? "?db=" : "/") + std::to_string(db);
}

bool contains_password(const Login& login, std::string_view text) {
  const auto has = [&](const std::string& password) {
    return !password.empty() && text.find(password) != text.npos;
  };
  return has(login.password) || (login.secret != nullptr && has(login.secret->current()));
}

std::string url_of_kind(Endpoint server, std::string_view kind) {
  server.db = 0;
  const bool is_tls = server.security == Security::tls;
  return util::format("{}{}://{}", is_tls ? "rediss" : "redis", kind, server.label());
}

std::string joined_labels(const std::vector<Server>& servers) {
  std::vector<std::string> labels;
  for (const Server& server : servers) labels.push_back(server.label());
  return util::joined(labels, ",");
}

Server server_at(const HostPort& address, Server like) {
  like.host = address.host;
  like.port = address.port;
  like.addresses = nullptr;
  return like;
}

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

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kLocal = "local:";
  if (text.starts_with(kLocal)) return local_url(text.substr(kLocal.size()));
  const size_t mark = text.find("://");
  const std::string scheme = util::lower_case(text.substr(0, std::min(mark, text.size())));
  for (const UrlScheme& known : kUrlSchemes) {
    if (mark == text.npos || known.scheme != scheme) continue;
    TRY(auto parts, split_url(known.scheme, text.substr(mark + 3)));
    return known.parse(parts, known.security);
  }
  return unknown_scheme(text);
}

std::vector<std::string_view> url_schemes() {
  std::vector<std::string_view> schemes;
  for (const UrlScheme& known : kUrlSchemes) schemes.push_back(known.scheme);
  return schemes;
}

const Server* server_in(const Url& url) {
  if (const auto* group = std::get_if<SentinelGroup>(&url)) return &group->master;
  if (const auto* cluster = std::get_if<ClusterSeeds>(&url)) return &cluster->seeds.front();
  return std::get_if<Server>(&url);
}

namespace {

bool same_server(const Server& one, const Server& other) {
  auto parts = [](const Server& server) {
    return std::tie(server.host, server.port, server.path, server.security, server.user);
  };
  return parts(one) == parts(other);
}

bool same_list(const std::vector<Server>& one, const std::vector<Server>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), same_server);
}

struct SameServers {
  bool operator()(const Server& one, const Server& other) const { return same_server(one, other); }
  bool operator()(const SentinelGroup& one, const SentinelGroup& other) const {
    return one.name == other.name && same_server(one.master, other.master) &&
           same_list(one.sentinels, other.sentinels);
  }
  bool operator()(const ClusterSeeds& one, const ClusterSeeds& other) const {
    return same_list(one.seeds, other.seeds);
  }
  bool operator()(const LocalUrl& one, const LocalUrl& other) const {
    return one.folder == other.folder;
  }
  template <class One, class Other>
  bool operator()(const One&, const Other&) const {
    return false;
  }
};

}  // namespace

bool same_servers(const Url& one, const Url& other) {
  return std::visit(SameServers{}, one, other);
}

bool has_credentials(const Url& url) {
  const Server* server = server_in(url);
  return server != nullptr && !(server->user.empty() && server->password.empty());
}

bool mask_passwords(std::span<char> text) {
  const std::string_view all(text.data(), text.size());
  bool found = false;
  auto mask = [&](size_t from, size_t to) {
    std::fill(text.data() + from, text.data() + to, '*');
    found = found || from < to;
  };
  for (size_t at = all.find("://"); at != all.npos; at = all.find("://", at)) {
    at += 3;
    const std::string_view url = all.substr(at, all.find_first_of(" \t\n", at) - at);
    if (const size_t host = url.rfind('@'); host != url.npos) {
      const size_t colon = url.find(':');
      mask(at + (colon < host ? colon + 1 : 0), at + host);
    }
    constexpr std::string_view kKey = "password=";
    if (size_t key = url.find(kKey); key != url.npos) {
      key += kKey.size();
      mask(at + key, at + std::min(url.find('&', key), url.size()));
    }
    at += url.size();
  }
  return found;
}

Result<std::vector<Url>> parse_urls(const std::vector<std::string>& texts) {
  if (texts.empty()) {
    return Error{ErrorKind::config,
                 "no server given: use --url URL, RLOCK_URL or rlock.toml; --url local: starts a "
                 "private server on this machine"};
  }
  std::vector<Url> urls;
  for (const std::string& text : texts) {
    TRY(auto url, parse_url(text));
    urls.push_back(std::move(url));
  }
  if (urls.size() == 2) {
    return malformed(
        "two servers cannot form a majority: give one URL, or at least three for a quorum");
  }
  TRY_STATUS(check_distinct(urls));
  return urls;
}

}  // namespace rlock::redis
