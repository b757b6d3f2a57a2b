#include "redis/store/cluster_store.hpp"

#include <utility>

#include "redis/store/call.hpp"

namespace rlock::redis {
namespace {

using lock::NamesPage;

constexpr const char* kListing = "list locks";

// Of list_names: the cursor of SCAN, then the masters still to be read, the current one first, as
// in `17 10.0.0.1:6379 10.0.0.2:6379`.
struct Cursor {
  std::string scan;
  std::string masters;
};

Cursor cursor_of(const std::string& text) {
  size_t space = text.find(' ');
  return {text.substr(0, space), text.substr(space + 1)};
}

std::string cursor_text(const std::string& scan, const std::string& masters) {
  return masters.empty() ? "" : scan + " " + masters;
}

HostPort first_of(const std::string& masters) {
  return parse_host_port(masters.substr(0, masters.find(' '))).value_or(HostPort{});
}

std::string without_first(const std::string& masters) {
  size_t space = masters.find(' ');
  return space == std::string::npos ? "" : masters.substr(space + 1);
}

std::optional<std::string> decode_text(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_STRING) return std::nullopt;
  return std::string(text_of(reply));
}

Result<NamesPage> first_page(const std::string& nodes, const ClusterLink& cluster) {
  std::string masters;
  const NodeNaming naming = cluster.uses_tls() ? NodeNaming::by_name : NodeNaming::by_address;
  for (const HostPort& at : masters_in(nodes, naming)) {
    Server server = cluster.server_at(at);
    if (!masters.empty()) masters += ' ';
    masters += server.host + ":" + std::to_string(server.port);
  }
  if (!masters.empty()) return NamesPage{{}, cursor_text("0", masters)};
  return Error{ErrorKind::unavailable, cluster.node() + ": the node knows no master with slots",
               Retry::later};
}

}  // namespace

ClusterStore::ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix)
    : RedisStore(std::move(link), std::move(prefix)) {}

ClusterLink& ClusterStore::cluster() {
  return static_cast<ClusterLink&>(link());
}

lock::InFlight<NamesPage> ClusterStore::list_masters() {
  auto nodes = std::make_unique<Call<std::string>>(
      cluster(), std::vector<std::string>{"CLUSTER", "NODES"}, kListing,
      without_context<std::string, decode_text>, "", nullptr);
  return std::make_unique<ConvertedCall<std::string, NamesPage>>(
      std::move(nodes), [this](std::string& text) { return first_page(text, cluster()); });
}

lock::InFlight<NamesPage> ClusterStore::list_names(const std::string& cursor) {
  if (cursor.empty()) return list_masters();
  auto [scanned, masters] = cursor_of(cursor);
  HostPort at = first_of(masters);
  if (!list_connection_ || list_connection_->server().host != at.host ||
      list_connection_->server().port != at.port) {
    list_connection_.emplace(cluster().server_at(at));
  }
  auto decode = [](const redisReply& reply, const std::string& prefix) {
    return decode_names(reply, prefix);
  };
  auto page = std::make_unique<Call<NamesPage>>(*list_connection_, scan(scanned), kListing, decode,
                                                prefix(), nullptr);
  return std::make_unique<ConvertedCall<NamesPage, NamesPage>>(
      std::move(page), [masters = masters, after = cursor_past_server(cursor)](NamesPage& one) {
        one.cursor = one.cursor.empty() ? after : cursor_text(one.cursor, masters);
        return std::move(one);
      });
}

std::string ClusterStore::cursor_past_server(const std::string& cursor) const {
  return cursor.empty() ? "" : cursor_text("0", without_first(cursor_of(cursor).masters));
}

}  // namespace rlock::redis
