#include "redis/open.hpp"

#include <utility>

#include "redis/cluster_store.hpp"
#include "redis/redis_store.hpp"
#include "redis/resolver.hpp"
#include "redis/sentinel_link.hpp"
#include "redis/url.hpp"

namespace rlock::redis {
namespace {

using lock::MakeStore;
using util::Error;
using util::ErrorKind;
using util::Result;

Error not_built(const char* what) {
  return {ErrorKind::usage, std::string(what) + " not built yet"};
}

// What a kind of URL leads to: a maker of stores.
struct ToStore {
  const OpenOptions& options;

  Result<MakeStore> operator()(const SingleUrl& url) const {
    if (url.security == Security::tls) return not_built("TLS (rediss://) is");
    return one(as_told(url.server));
  }

  Result<MakeStore> operator()(const SentinelUrl& url) const {
    if (url.security == Security::tls) return not_built("TLS (rediss+sentinel://) is");
    Server master = as_told(as_user(url.credentials));
    master.db = url.db;
    master.connect_timeout = options.connect_timeout;
    auto sentinels = all(url.sentinels, as_user(url.sentinel_credentials));
    return MakeStore([=, name = url.master, prefix = options.prefix] {
      auto link = std::make_unique<SentinelLink>(Sentinels(sentinels, name), master);
      return std::make_unique<RedisStore>(std::move(link), prefix);
    });
  }

  Result<MakeStore> operator()(const ClusterUrl& url) const {
    if (url.security == Security::tls) return not_built("TLS (rediss+cluster://) is");
    auto seeds = all(url.nodes, as_told(as_user(url.credentials)));
    return MakeStore([=, home = std::make_shared<Home>(), prefix = options.prefix] {
      return std::make_unique<ClusterStore>(std::make_unique<ClusterLink>(seeds, home), prefix);
    });
  }

  // Its server knows no users: a password in the environment is meant for another one.
  Result<MakeStore> operator()(const LocalUrl& url) const {
    auto server = local_server(url.folder, options.local_start);
    if (!server) return std::move(server).error();
    return one(std::move(*server));
  }

 private:
  static Server as_user(const Credentials& who) {
    Server server;
    server.user = who.user;
    server.password = who.password;
    return server;
  }

  Server as_told(Server server) const {
    if (options.user) server.user = *options.user;
    if (options.password) server.password = *options.password;
    return server;
  }

  Server reachable(Server server) const {
    server.connect_timeout = options.connect_timeout;
    server.addresses = std::make_shared<AddressMemory>();
    return server;
  }

  MakeStore one(Server server) const {
    return [server = reachable(std::move(server)), prefix = options.prefix] {
      return std::make_unique<RedisStore>(server, prefix);
    };
  }

  std::vector<Server> all(const std::vector<HostPort>& places, Server server) const {
    std::vector<Server> servers;
    for (const HostPort& place : places) {
      server.host = place.host;
      server.port = place.port;
      servers.push_back(reachable(server));
    }
    return servers;
  }
};

}  // namespace

Result<MakeStore> open(const OpenOptions& options) {
  auto urls = parse_urls(options.urls);
  if (!urls) return std::move(urls).error();
  if (urls->size() > 1) return not_built("a quorum of several servers is");
  return std::visit(ToStore{options}, urls->front());
}

}  // namespace rlock::redis
