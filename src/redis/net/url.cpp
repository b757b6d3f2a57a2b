#include "redis/net/url.hpp"

#include <algorithm>
#include <utility>

#include "redis/net/url_parts.hpp"

namespace rlock::redis {
namespace {

constexpr int kRedisPort = 6379;
constexpr int kSentinelPort = 26379;

Result<Url> tcp_url(const UrlParts& parts, Security security) {
  TRY_STATUS(no_query(parts));
  TRY(auto who, credentials(parts));
  TRY(auto db, database(parts.scheme, parts.path.empty() ? parts.path : parts.path.substr(1)));
  TRY(auto where, only_host(parts, kRedisPort));
  SingleUrl url;
  url.security = security;
  url.server.host = std::move(where.host);
  url.server.port = where.port;
  url.server.user = std::move(who.user);
  url.server.password = std::move(who.password);
  url.server.db = db;
  return Url(std::move(url));
}

Result<Url> unix_url(const UrlParts& parts, Security) {
  if (!parts.hosts.empty() || parts.path.size() < 2) {
    return bad_url(parts.scheme,
                   "the path of the socket must be absolute, as in unix:///run/redis.sock");
  }
  TRY(auto who, credentials(parts));
  auto path = percent_decoded(parts.path);
  if (!path) return bad_url(parts.scheme, "write '%' in a path as %25");
  TRY(auto known, queries(parts));
  SingleUrl url;
  for (const UrlQuery& query : known) {
    if (query.key != "db") return bad_url(parts.scheme, "unknown query key (db is the only one)");
    TRY(auto db, database(parts.scheme, query.value));
    url.server.db = db;
  }
  url.server.transport = Transport::unix_socket;
  url.server.path = std::move(*path);
  url.server.user = std::move(who.user);
  url.server.password = std::move(who.password);
  return Url(std::move(url));
}

// `/MASTER` and `/MASTER/DB`.
Status read_master(const UrlParts& parts, SentinelUrl& url) {
  std::string_view path = parts.path.empty() ? parts.path : parts.path.substr(1);
  size_t slash = path.find('/');
  auto master = percent_decoded(path.substr(0, slash));
  if (!master || master->empty() || has_blanks(*master)) {
    return bad_url(parts.scheme, "the master's name is missing, as in " +
                                     std::string(parts.scheme) + "://HOST/MASTER");
  }
  url.master = std::move(*master);
  if (slash == std::string_view::npos) return Done{};
  TRY(auto db, database(parts.scheme, path.substr(slash + 1)));
  url.db = db;
  return Done{};
}

Result<Url> sentinel_url(const UrlParts& parts, Security security) {
  SentinelUrl url;
  url.security = security;
  TRY(auto who, credentials(parts));
  url.credentials = std::move(who);
  TRY(auto hosts, all_hosts(parts, kSentinelPort));
  url.sentinels = std::move(hosts);
  TRY_STATUS(read_master(parts, url));
  TRY(auto known, queries(parts));
  for (UrlQuery& query : known) {
    if (query.key == "sentinel_username") {
      url.sentinel_credentials.user = std::move(query.value);
    } else if (query.key == "sentinel_password") {
      url.sentinel_credentials.password = std::move(query.value);
    } else {
      return bad_url(parts.scheme,
                     "unknown query key (known: sentinel_username, sentinel_password)");
    }
  }
  return Url(std::move(url));
}

Result<Url> cluster_url(const UrlParts& parts, Security security) {
  TRY_STATUS(no_query(parts));
  if (parts.path.size() > 1)
    return bad_url(parts.scheme, "a cluster has no databases: end after the hosts");
  TRY(auto who, credentials(parts));
  TRY(auto hosts, all_hosts(parts, kRedisPort));
  return Url(ClusterUrl{security, std::move(who), std::move(hosts)});
}

Result<Url> local_url(std::string_view folder) {
  auto decoded = percent_decoded(folder);
  if (!decoded) return Error{ErrorKind::usage, "bad URL (local:): write '%' as %25"};
  if (decoded->starts_with("//")) {
    return Error{ErrorKind::usage, "bad URL (local:): write local:DIR, without '//'"};
  }
  // Relative to the caller's folder, two callers would have two servers and exclude nobody.
  if (!decoded->empty() && decoded->front() != '/') {
    return Error{ErrorKind::usage,
                 "bad URL (local:): the folder must be absolute, as in local:/var/lib/locks"};
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

const UrlScheme* find_scheme(std::string_view scheme) {
  auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
  for (const UrlScheme& kind : kUrlSchemes) {
    if (std::equal(kind.scheme.begin(), kind.scheme.end(), scheme.begin(), scheme.end(), same)) {
      return &kind;
    }
  }
  return nullptr;
}

Error unknown_scheme() {
  return {ErrorKind::usage,
          "bad URL: it must begin with redis://, rediss://, valkey://, valkeys://, unix://, "
          "redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster:// or local:; "
          "write a blank in a URL as %20"};
}

// Whether two URLs lead to the same place, whatever the database and the user.
std::string key_of(const HostPort& at) {
  return (at.host == "localhost" ? "127.0.0.1" : at.host) + ' ' + std::to_string(at.port) + ' ';
}

std::string key_of(const std::vector<HostPort>& all) {
  std::string text;
  for (const HostPort& one : all) text += key_of(one);
  return text;
}

struct UrlKey {
  std::string operator()(const SingleUrl& url) const {
    if (url.server.transport == Transport::unix_socket) return url.server.path;
    return key_of(HostPort{url.server.host, url.server.port});
  }
  std::string operator()(const SentinelUrl& url) const {
    return key_of(url.sentinels) + url.master;
  }
  std::string operator()(const ClusterUrl& url) const { return key_of(url.nodes); }
  std::string operator()(const LocalUrl& url) const { return "local:" + url.folder; }
};

Status check_distinct(const std::vector<Url>& urls) {
  std::vector<std::string> keys;
  keys.reserve(urls.size());
  for (const Url& url : urls) keys.push_back(std::visit(UrlKey{}, url));
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) == keys.end()) return Done{};
  return Error{ErrorKind::usage,
               "two of the URLs name the same server: a quorum needs independent ones"};
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kLocal = "local:";
  if (text.starts_with(kLocal)) return local_url(text.substr(kLocal.size()));
  size_t mark = text.find("://");
  const UrlScheme* kind =
      mark == std::string_view::npos ? nullptr : find_scheme(text.substr(0, mark));
  if (kind == nullptr) return unknown_scheme();
  TRY(auto parts, split_url(kind->scheme, text.substr(mark + 3)));
  return kind->parse(parts, kind->security);
}

Credentials own_credentials(const Url& url) {
  if (const auto* single = std::get_if<SingleUrl>(&url)) {
    return {single->server.user, single->server.password};
  }
  if (const auto* sentinel = std::get_if<SentinelUrl>(&url)) return sentinel->credentials;
  const auto* cluster = std::get_if<ClusterUrl>(&url);
  return cluster == nullptr ? Credentials{} : cluster->credentials;
}

Result<std::vector<Url>> parse_urls(const std::vector<std::string>& texts) {
  if (texts.empty()) {
    return Error{ErrorKind::config,
                 "no server given: use --url, RLOCK_URL or `url` in rlock.toml; `--url local:` "
                 "starts a private server on this machine"};
  }
  std::vector<Url> urls;
  for (const std::string& text : texts) {
    TRY(auto url, parse_url(text));
    urls.push_back(std::move(url));
  }
  if (urls.size() == 2) {
    return Error{ErrorKind::usage,
                 "two servers make no majority: give one URL, or three and more for a quorum"};
  }
  TRY_STATUS(check_distinct(urls));
  return urls;
}

}  // namespace rlock::redis
