#include "redis/open.hpp"

#include <utility>

#include "lock/quorum.hpp"
#include "redis/redis_store.hpp"
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
    if (url.security == Security::tls) return not_built("TLS (rediss://) is");
    Server server = url.server;
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

lock::MakeStore maker(Server server, const std::string& prefix) {
  return
      [server = std::move(server), prefix] { return std::make_unique<RedisStore>(server, prefix); };
}

lock::MakeStore quorum_maker(std::vector<lock::MakeStore> makers) {
  auto random = std::make_shared<util::SystemRandom>();
  return [makers = std::move(makers), random] {
    return std::make_unique<lock::QuorumStore>(makers,
                                               lock::QuorumSources{*random, util::wall_micros});
  };
}

}  // namespace

Result<lock::MakeStore> open(const OpenOptions& options) {
  auto urls = parse_urls(options.urls);
  if (!urls) return std::move(urls).error();
  std::vector<lock::MakeStore> makers;
  for (const Url& url : *urls) {
    auto server = std::visit(ToServer{options}, url);
    if (!server) return std::move(server).error();
    server->connect_timeout = options.connect_timeout;
    server->addresses = std::make_shared<AddressMemory>();
    server->part = urls->size() > 1 ? Part::of_quorum : Part::alone;
    makers.push_back(maker(*std::move(server), options.prefix));
  }
  return makers.size() == 1 ? std::move(makers.front()) : quorum_maker(std::move(makers));
}

}  // namespace rlock::redis
