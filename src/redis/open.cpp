#include "redis/open.hpp"

#include <utility>

#include "redis/mutated.hpp"
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

}  // namespace

Result<lock::MakeStore> open(const OpenOptions& options) {
  auto urls = parse_urls(options.urls);
  if (!urls) return std::move(urls).error();
  if (urls->size() > 1) return not_built("a quorum of several servers is");
  auto server = std::visit(ToServer{options}, urls->front());
  if (!server) return std::move(server).error();
  server->connect_timeout = options.connect_timeout;
  server->addresses = std::make_shared<AddressMemory>();
  return lock::MakeStore([server = std::move(*server), prefix = options.prefix] {
    return std::make_unique<RedisStore>(server, prefix, mutated({}));
  });
}

}  // namespace rlock::redis
