#include "redis/open.hpp"

#include <algorithm>
#include <utility>

#include "lock/quorum/redlock.hpp"
#include "redis/link/sentinel.hpp"
#include "redis/net/socket.hpp"
#include "redis/store/external_store.hpp"
#include "redis/store/redis_store.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using lock::MakeServer;
using SharedTls = std::shared_ptr<const Tls>;

Error not_in_quorum(const char* what) {
  return {ErrorKind::usage,
          util::format("a quorum consists of single servers (redis://, rediss://, unix:// or "
                       "local:), not of {}",
                       what)};
}

Error needs_one_server() {
  return {
      ErrorKind::usage,
      "--format redisson works with a single server only, because waiters subscribe to a channel "
      "on that server"};
}

Server with_credentials(const OpenOptions& options, Server server) {
  if (options.user) server.user = *options.user;
  if (options.password) server.password = *options.password;
  server.secret = options.secret;
  if (server.secret) server.password = server.secret->current();
  return server;
}

Server with_timeouts(const OpenOptions& options, Server server) {
  server.connect_timeout = options.connect_timeout;
  server.addresses = std::make_shared<AddressMemory>();
  return server;
}

// Servers at these addresses that are alike in all else.
std::vector<Server> servers_at(const OpenOptions& options, const std::vector<HostPort>& addresses,
                               Server server) {
  std::vector<Server> servers;
  for (const HostPort& address : addresses) {
    server.host = address.host;
    server.port = address.port;
    servers.push_back(with_timeouts(options, server));
  }
  return servers;
}

Server from_credentials(const Credentials& credentials, SharedTls tls) {
  Server server;
  server.user = credentials.user;
  server.password = credentials.password;
  server.tls = std::move(tls);
  return server;
}

Result<SharedTls> make_tls(const OpenOptions& options, Security security) {
  if (security == Security::plain) return SharedTls();
  return Tls::make(options.tls);
}

// The one server of a URL.
struct ToServer {
  const OpenOptions& options;

  Result<Server> operator()(const SingleUrl& url) const {
    Server server = with_credentials(options, url.server);
    TRY(server.tls, make_tls(options, url.security));
    return with_timeouts(options, std::move(server));
  }
  // A local server has no users: a password in the environment is meant for another one.
  Result<Server> operator()(const LocalUrl& url) const {
    TRY(auto server, local_server(url.folder, options.local_start));
    return with_timeouts(options, std::move(server));
  }
  Result<Server> operator()(const SentinelUrl&) const { return not_in_quorum("Sentinel groups"); }
  Result<Server> operator()(const ClusterUrl&) const { return not_in_quorum("clusters"); }
};

// What a URL of any kind names.
struct ToTarget {
  const OpenOptions& options;

  Result<ServerTarget> operator()(const auto& url) const {
    TRY(auto server, ToServer{options}(url));
    return ServerTarget(std::move(server));
  }

  Result<ServerTarget> operator()(const SentinelUrl& url) const {
    TRY(auto tls, make_tls(options, url.security));
    Server master = with_credentials(options, from_credentials(url.credentials, tls));
    master.db = url.db;
    master.connect_timeout = options.connect_timeout;
    return ServerTarget(SentinelGroup{
        servers_at(options, url.sentinels, from_credentials(url.sentinel_credentials, tls)),
        url.master, std::move(master)});
  }

  Result<ServerTarget> operator()(const ClusterUrl& url) const {
    TRY(auto tls, make_tls(options, url.security));
    Server node = with_credentials(options, from_credentials(url.credentials, std::move(tls)));
    return ServerTarget(ClusterSeeds{servers_at(options, url.nodes, std::move(node))});
  }
};

MakeServer native(const Server& server, const std::string& prefix) {
  return [server, prefix] { return std::make_unique<RedisStore>(server, prefix); };
}

MakeServer plain(const Server& server) {
  return [server] { return std::make_unique<PlainStore>(std::make_unique<Connection>(server)); };
}

template <class Store>
MakeServer quorum_of(std::vector<MakeServer> makers) {
  auto random = std::make_shared<util::SystemRandom>();
  return [makers = std::move(makers), random] {
    return std::make_unique<Store>(makers, lock::QuorumSources{*random, wall_micros});
  };
}

// The maker of stores for what a URL names.
struct ToStore {
  const OpenOptions& options;

  Result<MakeServer> operator()(const Server& server) const {
    if (options.format == Format::plain) return plain(server);
    if (options.format == Format::native) return native(server, options.prefix);
    return MakeServer([server] { return std::make_unique<RedissonStore>(server); });
  }

  Result<MakeServer> operator()(const SentinelGroup& group) const {
    return over_links<RedisStore>([group] {
      return std::make_unique<SentinelLink>(Sentinels(group.sentinels, group.name), group.master);
    });
  }

  Result<MakeServer> operator()(const ClusterSeeds& cluster) const {
    return over_links<ClusterStore>([cluster, places = std::make_shared<KeyPlaces>()] {
      return std::make_unique<ClusterLink>(cluster.seeds, places);
    });
  }

 private:
  template <class NativeStore, class MakeLink>
  Result<MakeServer> over_links(MakeLink make_link) const {
    if (options.format == Format::redisson) return needs_one_server();
    if (options.format == Format::plain) {
      return MakeServer([make_link] { return std::make_unique<PlainStore>(make_link()); });
    }
    return MakeServer([make_link, prefix = options.prefix] {
      return std::make_unique<NativeStore>(make_link(), prefix);
    });
  }
};

struct UsesTls {
  bool operator()(const LocalUrl&) const { return false; }
  bool operator()(const auto& url) const { return url.security == Security::tls; }
};

}  // namespace

Result<std::vector<ServerTarget>> targets(const OpenOptions& options) {
  std::vector<ServerTarget> targets;
  for (const Url& url : options.urls) {
    TRY(auto target, std::visit(ToTarget{options}, url));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<MakeServer> open(const OpenOptions& options) {
  const std::vector<Url>& urls = options.urls;
  if (urls.size() == 1) {
    TRY(auto target, std::visit(ToTarget{options}, urls.front()));
    return std::visit(ToStore{options}, target);
  }
  if (options.format == Format::redisson) return needs_one_server();
  const bool redlock = options.format == Format::plain;
  auto members = std::make_shared<MemberRegistry>();
  std::vector<MakeServer> makers;
  for (const Url& url : urls) {
    TRY(auto server, std::visit(ToServer{options}, url));
    server.members = members;
    makers.push_back(redlock ? plain(server) : native(server, options.prefix));
  }
  return redlock ? quorum_of<lock::RedlockStore>(std::move(makers))
                 : quorum_of<lock::QuorumStore>(std::move(makers));
}

bool is_unverified(const OpenOptions& options) {
  if (options.tls.verify == Verify::peer) return false;
  return std::any_of(options.urls.begin(), options.urls.end(),
                     [](const Url& url) { return std::visit(UsesTls{}, url); });
}

}  // namespace rlock::redis
