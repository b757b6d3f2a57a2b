#include "redis/open.hpp"

#include <algorithm>
#include <utility>

#include "redis/mutated.hpp"
#include "redis/plain_store.hpp"
#include "redis/redis_store.hpp"
#include "redis/redisson_store.hpp"
#include "redis/resolver.hpp"
#include "redis/url.hpp"

namespace rlock::redis {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

Error not_built(const char* what) {
  return {ErrorKind::usage, std::string(what) + " not built yet"};
}

struct ToServer {
  const OpenOptions& options;

  Result<Server> operator()(const SingleUrl& url) const {
    Server server = url.server;
    if (url.security == Security::tls) {
      auto tls = Tls::make(options.tls);
      if (!tls) return std::move(tls).error();
      server.tls = *std::move(tls);
    }
    if (options.user) server.user = *options.user;
    if (options.password) server.password = *options.password;
    return server;
  }
  Result<Server> operator()(const SentinelUrl&) const { return not_built("Sentinel URLs are"); }
  Result<Server> operator()(const ClusterUrl&) const { return not_built("Cluster URLs are"); }
  // Its server knows no users: a password in the environment is meant for another one.
  Result<Server> operator()(const LocalUrl& url) const {
    return local_server(url.folder, options.local_start);
  }
};

struct UsesTls {
  bool operator()(const LocalUrl&) const { return false; }
  bool operator()(const auto& url) const { return url.security == Security::tls; }
};

lock::MakeStore maker(const Server& server, const OpenOptions& options) {
  switch (options.format) {
    case Format::plain:
      return [server] { return std::make_unique<PlainStore>(server); };
    case Format::redisson:
      return [server] { return std::make_unique<RedissonStore>(server); };
    case Format::native:
      break;
  }
  return [server, prefix = options.prefix] {
    return std::make_unique<RedisStore>(server, prefix, mutated({}));
  };
}

}  // namespace

Result<std::vector<Server>> servers(const OpenOptions& options) {
  auto urls = parse_urls(options.urls);
  if (!urls) return std::move(urls).error();
  std::vector<Server> servers;
  for (const Url& url : *urls) {
    auto server = std::visit(ToServer{options}, url);
    if (!server) return std::move(server).error();
    server->connect_timeout = options.connect_timeout;
    server->addresses = std::make_shared<AddressMemory>();
    servers.push_back(*std::move(server));
  }
  return servers;
}

Result<lock::MakeStore> open(const OpenOptions& options) {
  auto all = servers(options);
  if (!all) return std::move(all).error();
  if (all->size() > 1) return not_built("a quorum of several servers is");
  return maker(all->front(), options);
}

bool is_unverified(const OpenOptions& options) {
  if (options.tls.verify == Verify::peer) return false;
  auto urls = parse_urls(options.urls);
  if (!urls) return false;
  return std::any_of(urls->begin(), urls->end(),
                     [](const Url& url) { return std::visit(UsesTls{}, url); });
}

}  // namespace rlock::redis
