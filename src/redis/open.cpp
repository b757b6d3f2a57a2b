#include "redis/open.hpp"

#include <algorithm>
#include <utility>

#include "lock/redlock.hpp"
#include "redis/cluster_store.hpp"
#include "redis/members.hpp"
#include "redis/mutated.hpp"
#include "redis/plain_store.hpp"
#include "redis/redis_store.hpp"
#include "redis/redisson_store.hpp"
#include "redis/resolver.hpp"
#include "redis/sentinel_link.hpp"
#include "redis/url.hpp"

namespace rlock::redis {
namespace {

using lock::MakeStore;
using util::Error;
using util::ErrorKind;
using util::Result;
using SharedTls = std::shared_ptr<const Tls>;

Error no_member(const char* what) {
  return {ErrorKind::usage,
          "a quorum is made of single servers, redis://, rediss://, unix:// or local:, not of " +
              std::string(what)};
}

Error no_channel() {
  return {ErrorKind::usage,
          "--format redisson needs the URL of one server: waiters listen to a channel of it"};
}

// What the options say of each server, whatever the URL.
class Introduction {
 public:
  explicit Introduction(const OpenOptions& options) : options_(options) {}

  Server told(Server server) const {
    if (options_.user) server.user = *options_.user;
    if (options_.password) server.password = *options_.password;
    server.secret = options_.secret;
    if (server.secret) server.password = server.secret->current();
    return server;
  }

  Server reachable(Server server) const {
    server.connect_timeout = options_.connect_timeout;
    server.addresses = std::make_shared<AddressMemory>();
    return server;
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

  static Server of(const Credentials& who, SharedTls tls) {
    Server server;
    server.user = who.user;
    server.password = who.password;
    server.tls = std::move(tls);
    return server;
  }

  Result<SharedTls> tls(Security security) const {
    if (security == Security::plain) return SharedTls();
    return Tls::make(options_.tls);
  }

 private:
  const OpenOptions& options_;
};

// The one server of a URL.
struct ToServer {
  const OpenOptions& options;

  Result<Server> operator()(const SingleUrl& url) const {
    Introduction introduction(options);
    auto tls = introduction.tls(url.security);
    if (!tls) return std::move(tls).error();
    Server server = introduction.told(url.server);
    server.tls = *std::move(tls);
    return introduction.reachable(std::move(server));
  }
  // Its server knows no users: a password in the environment is meant for another one.
  Result<Server> operator()(const LocalUrl& url) const {
    auto server = local_server(url.folder, options.local_start);
    if (!server) return std::move(server).error();
    return Introduction(options).reachable(*std::move(server));
  }
  Result<Server> operator()(const SentinelUrl&) const { return no_member("Sentinel groups"); }
  Result<Server> operator()(const ClusterUrl&) const { return no_member("clusters"); }
};

// What a URL names, whatever its kind.
struct ToPlace {
  const OpenOptions& options;

  Result<Place> operator()(const auto& url) const {
    auto server = ToServer{options}(url);
    if (!server) return std::move(server).error();
    return Place(*std::move(server));
  }

  Result<Place> operator()(const SentinelUrl& url) const {
    Introduction introduction(options);
    auto tls = introduction.tls(url.security);
    if (!tls) return std::move(tls).error();
    Server master = introduction.told(Introduction::of(url.credentials, *tls));
    master.db = url.db;
    master.connect_timeout = options.connect_timeout;
    return Place(SentinelGroup{
        introduction.all(url.sentinels, Introduction::of(url.sentinel_credentials, *tls)),
        url.master, std::move(master)});
  }

  Result<Place> operator()(const ClusterUrl& url) const {
    Introduction introduction(options);
    auto tls = introduction.tls(url.security);
    if (!tls) return std::move(tls).error();
    Server node = introduction.told(Introduction::of(url.credentials, *std::move(tls)));
    return Place(ClusterSeeds{introduction.all(url.nodes, node)});
  }
};

MakeStore native(const Server& server, const std::string& prefix) {
  return [server, prefix] { return std::make_unique<RedisStore>(server, prefix, mutated({})); };
}

MakeStore plain(const Server& server) {
  return [server] { return std::make_unique<PlainStore>(std::make_unique<Connection>(server)); };
}

template <class Store>
MakeStore over(std::vector<MakeStore> makers) {
  auto random = std::make_shared<util::SystemRandom>();
  return [makers = std::move(makers), random] {
    return std::make_unique<Store>(makers, lock::QuorumSources{*random, util::wall_micros});
  };
}

// What a kind of URL leads to: a maker of stores.
struct ToStore {
  const OpenOptions& options;

  Result<MakeStore> operator()(const auto& url) const {
    auto server = ToServer{options}(url);
    if (!server) return std::move(server).error();
    return alone(*std::move(server));
  }

  Result<MakeStore> operator()(const SentinelUrl& url) const {
    auto place = ToPlace{options}(url);
    if (!place) return std::move(place).error();
    auto link = [group = std::get<SentinelGroup>(*std::move(place))] {
      return std::make_unique<SentinelLink>(Sentinels(group.sentinels, group.name), group.master);
    };
    if (options.format == Format::redisson) return no_channel();
    if (options.format == Format::plain) {
      return MakeStore([link] { return std::make_unique<PlainStore>(link()); });
    }
    return MakeStore([link, prefix = options.prefix] {
      return std::make_unique<RedisStore>(link(), prefix, mutated({}));
    });
  }

  Result<MakeStore> operator()(const ClusterUrl& url) const {
    auto place = ToPlace{options}(url);
    if (!place) return std::move(place).error();
    auto link = [cluster = std::get<ClusterSeeds>(*std::move(place)),
                 home = std::make_shared<Home>()] {
      return std::make_unique<ClusterLink>(cluster.seeds, home);
    };
    if (options.format == Format::redisson) return no_channel();
    if (options.format == Format::plain) {
      return MakeStore([link] { return std::make_unique<PlainStore>(link()); });
    }
    return MakeStore(
        [link, prefix = options.prefix] { return std::make_unique<ClusterStore>(link(), prefix); });
  }

 private:
  MakeStore alone(const Server& server) const {
    switch (options.format) {
      case Format::plain:
        return plain(server);
      case Format::redisson:
        return [server] { return std::make_unique<RedissonStore>(server); };
      case Format::native:
        break;
    }
    return native(server, options.prefix);
  }
};

struct UsesTls {
  bool operator()(const LocalUrl&) const { return false; }
  bool operator()(const auto& url) const { return url.security == Security::tls; }
};

}  // namespace

Result<std::vector<Place>> places(const OpenOptions& options) {
  auto urls = parse_urls(options.urls);
  if (!urls) return std::move(urls).error();
  std::vector<Place> places;
  for (const Url& url : *urls) {
    auto place = std::visit(ToPlace{options}, url);
    if (!place) return std::move(place).error();
    places.push_back(*std::move(place));
  }
  return places;
}

Result<MakeStore> open(const OpenOptions& options) {
  auto urls = parse_urls(options.urls);
  if (!urls) return std::move(urls).error();
  if (urls->size() == 1) return std::visit(ToStore{options}, urls->front());
  if (options.format == Format::redisson) return no_channel();
  const bool redlock = options.format == Format::plain;
  auto members = std::make_shared<Members>();
  std::vector<MakeStore> makers;
  for (const Url& url : *urls) {
    auto server = std::visit(ToServer{options}, url);
    if (!server) return std::move(server).error();
    server->members = members;
    makers.push_back(redlock ? plain(*server) : native(*server, options.prefix));
  }
  return redlock ? over<lock::RedlockStore>(std::move(makers))
                 : over<lock::QuorumStore>(std::move(makers));
}

bool is_unverified(const OpenOptions& options) {
  if (options.tls.verify == Verify::peer) return false;
  auto urls = parse_urls(options.urls);
  if (!urls) return false;
  return std::any_of(urls->begin(), urls->end(),
                     [](const Url& url) { return std::visit(UsesTls{}, url); });
}

}  // namespace rlock::redis
