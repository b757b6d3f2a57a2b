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
  server.unused = options.unused_login;
  server.secret = options.secret;
  if (server.secret) server.password = server.secret->current();
  return server;
}

// One try to reach a server takes no longer, because a peer that is gone may have accepted the
// connection. The callers try again until --connect-timeout expires.
constexpr Millis kLongestTry{10'000};

Server reachable(const OpenOptions& options, Server server, SharedTls tls) {
  server.tls = std::move(tls);
  server.connect_timeout = std::min(options.connect_timeout, kLongestTry);
  server.is_longest_try = options.connect_timeout > kLongestTry;
  server.addresses = std::make_shared<AddressMemory>();
  server.admission = std::make_shared<Admission>();
  return server;
}

// Makes a target from what a URL names and the settings of the options.
struct ToTarget {
  const OpenOptions& options;
  const SharedTls& tls;

  Result<ServerTarget> operator()(const Server& server) const {
    return ServerTarget(reachable(options, with_credentials(options, server), tls));
  }

  Result<ServerTarget> operator()(SentinelGroup group) const {
    for (Server& one : group.sentinels) one = reachable(options, one, tls);
    group.master = reachable(options, with_credentials(options, group.master), tls);
    group.master.addresses = nullptr;  // each master has its own
    return ServerTarget(std::move(group));
  }

  Result<ServerTarget> operator()(ClusterSeeds cluster) const {
    for (Server& one : cluster.seeds) {
      one = reachable(options, with_credentials(options, one), tls);
      one.admission = cluster.seeds.front().admission;
    }
    return ServerTarget(std::move(cluster));
  }

  // A local server has no users, so a password in the environment is meant for another server.
  Result<ServerTarget> operator()(const LocalUrl& url) const {
    TRY(auto server, local_server(url.folder, options.local_start));
    Server local = reachable(options, std::move(server), nullptr);
    local.connect_timeout = options.connect_timeout;  // to start it again may take all of that
    local.is_longest_try = false;
    return ServerTarget(std::move(local));
  }
};

bool uses_tls(const Url& url) {
  const Server* server = server_in(url);
  return server != nullptr && server->security == Security::tls;
}

Result<ServerTarget> target_of(const OpenOptions& options, const Url& url) {
  SharedTls tls;
  if (uses_tls(url)) {
    TRY(tls, Tls::make(options.tls));
  }
  return std::visit(ToTarget{options, tls}, url);
}

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

// Makes the maker of stores for what a URL names.
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

}  // namespace

Result<std::vector<ServerTarget>> targets(const OpenOptions& options) {
  std::vector<ServerTarget> targets;
  for (const Url& url : options.urls) {
    TRY(auto target, target_of(options, url));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<MakeServer> open(const OpenOptions& options) {
  const std::vector<Url>& urls = options.urls;
  if (urls.size() == 1) {
    TRY(auto target, target_of(options, urls.front()));
    return std::visit(ToStore{options}, target);
  }
  if (options.format == Format::redisson) return needs_one_server();
  const bool redlock = options.format == Format::plain;
  auto members = std::make_shared<MemberRegistry>();
  std::vector<MakeServer> makers;
  for (const Url& url : urls) {
    if (std::holds_alternative<SentinelGroup>(url)) return not_in_quorum("Sentinel groups");
    if (std::holds_alternative<ClusterSeeds>(url)) return not_in_quorum("clusters");
    TRY(auto target, target_of(options, url));
    Server& server = std::get<Server>(target);
    server.members = members;
    makers.push_back(redlock ? plain(server) : native(server, options.prefix));
  }
  return redlock ? quorum_of<lock::RedlockStore>(std::move(makers))
                 : quorum_of<lock::QuorumStore>(std::move(makers));
}

bool is_unverified(const OpenOptions& options) {
  if (options.tls.verify == Verify::peer) return false;
  return std::any_of(options.urls.begin(), options.urls.end(), uses_tls);
}

}  // namespace rlock::redis
