#include "redis/cluster_store.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include "redis/decode.hpp"

namespace rlock::redis {
namespace {

using lock::NamesPage;
using util::Error;
using util::ErrorKind;
using util::Result;
using util::TimePoint;

// Of a list_names: SCAN's own cursor, then the masters still to be read, the current one first:
// `17 10.0.0.1:6379 10.0.0.2:6379`.
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
  std::string first = masters.substr(0, masters.find(' '));
  size_t colon = first.rfind(':');
  return {first.substr(0, colon), std::stoi(first.substr(colon + 1))};
}

std::string without_first(const std::string& masters) {
  size_t space = masters.find(' ');
  return space == std::string::npos ? "" : masters.substr(space + 1);
}

// One command of the listing.
class ListCall final : public lock::Reply<NamesPage> {
 public:
  using ToPage = std::function<Result<NamesPage>(const redisReply&)>;

  ListCall(Link& link, const std::vector<std::string>& words, ToPage to_page)
      : link_(link), to_page_(std::move(to_page)) {
    link_.start(words);
  }
  ~ListCall() override {
    if (!done_) link_.drop();
  }
  ListCall(const ListCall&) = delete;
  ListCall& operator=(const ListCall&) = delete;

  void wants(std::vector<pollfd>& out) const override { link_.wants(out); }
  TimePoint due() const override { return link_.due(); }
  bool advance(TimePoint now) override {
    done_ = done_ || link_.advance(now);
    return done_;
  }

  Result<NamesPage> take() override {
    auto page = read();
    if (page) return page;
    Error error = std::move(page).error();
    error.text = "cannot list locks: " + error.text;
    return error;
  }

 private:
  Result<NamesPage> read() {
    auto reply = link_.take();
    if (!reply) return std::move(reply).error();
    if ((*reply)->type != REDIS_REPLY_ERROR) return to_page_(**reply);
    Error error = decode_error(std::string_view((*reply)->str, (*reply)->len));
    error.text = link_.node() + ": " + error.text;
    return error;
  }

  Link& link_;
  ToPage to_page_;
  bool done_ = false;
};

Result<NamesPage> first_page(const redisReply& reply, const ClusterLink& cluster) {
  std::string masters;
  std::string_view text(reply.str == nullptr ? "" : reply.str, reply.len);
  for (const HostPort& at : masters_in(text)) {
    Server server = cluster.server_at(at);
    if (!masters.empty()) masters += ' ';
    masters += server.host + ":" + std::to_string(server.port);
  }
  if (!masters.empty()) return NamesPage{{}, cursor_text("0", masters)};
  return Error{ErrorKind::unavailable, cluster.node() + ": it knows no master with slots",
               util::Retry::later};
}

}  // namespace

ClusterStore::ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix)
    : RedisStore(std::move(link), std::move(prefix)) {}

ClusterLink& ClusterStore::cluster() {
  return static_cast<ClusterLink&>(link());
}

lock::InFlight<NamesPage> ClusterStore::list_names(const std::string& cursor) {
  if (cursor.empty()) {
    return std::make_unique<ListCall>(
        cluster(), std::vector<std::string>{"CLUSTER", "NODES"},
        [this](const redisReply& reply) { return first_page(reply, cluster()); });
  }
  auto [scanned, masters] = cursor_of(cursor);
  HostPort at = first_of(masters);
  if (!listed_ || listed_->server().host != at.host || listed_->server().port != at.port) {
    listed_.emplace(cluster().server_at(at));
  }
  auto to_page = [masters = masters, prefix = prefix()](const redisReply& reply) {
    auto page = decode_names(reply, prefix).value_or(NamesPage{});
    bool more = !page.cursor.empty();
    page.cursor =
        more ? cursor_text(page.cursor, masters) : cursor_text("0", without_first(masters));
    return Result<NamesPage>(std::move(page));
  };
  return std::make_unique<ListCall>(*listed_, scan(scanned), std::move(to_page));
}

}  // namespace rlock::redis
