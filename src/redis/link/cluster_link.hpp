#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redis/link/cluster_batch.hpp"
#include "redis/link/cluster_reply.hpp"
#include "redis/link/connection.hpp"
#include "redis/link/link.hpp"

namespace rlock::redis {

// The node that answered last. A slot map is not needed, since a lock lies in one slot.
class LastNode {
 public:
  std::optional<HostPort> get() const;
  void set(std::optional<HostPort> node);

 private:
  mutable std::mutex mutex_;  // the renewal thread has a link of its own
  std::optional<HostPort> node_;
};

// Sends a command to the node of a cluster that has its key: first to the node that answered last,
// or to the seeds in turn, then wherever the nodes redirect it.
class ClusterLink final : public Link {
 public:
  static constexpr int kMostRedirects = 5;  // of one command

  // `seeds` is not empty; all have the same credentials. `last_node` is shared by the links to a
  // cluster.
  ClusterLink(std::vector<Server> seeds, std::shared_ptr<LastNode> last_node);

  void start(const std::vector<std::string>& words) override;
  void follow(const std::vector<std::string>& words) override;
  void start_batch(Batch batch) override;
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  Result<ReplyPtr> take() override;
  std::vector<Result<ReplyPtr>> take_batch() override;
  bool may_have_arrived() const override { return arrived_ || arrives_here(); }
  void drop() override;
  std::string label() const override { return joined_labels(seeds_); }
  std::string node() const override { return connection().label(); }
  bool contains_secret(std::string_view text) const override {
    return contains_password(seeds_.front(), text);
  }

  bool uses_tls() const { return seeds_.front().tls != nullptr; }
  // The server at an address. An empty host means the node asked last.
  Server server_at(const HostPort& at) const;

 private:
  enum class Asking { no, yes };
  struct Node {
    HostPort at;
    Connection connection;
  };

  bool arrives_here() const { return asking_ == Asking::no && connection().may_have_arrived(); }
  Connection& connection() { return nodes_[current_].connection; }
  const Connection& connection() const { return nodes_[current_].connection; }
  size_t node_at(const HostPort& at);
  HostPort next_seed();
  void begin();
  void ask(const HostPort& at, Asking asking);
  void send_group();
  void handle_group();
  void handle_reply(Result<ReplyPtr> reply);
  void handle_unreachable(Error why);
  void follow_redirect(const Redirect& redirect);
  void forget_last_node();
  void end(Result<ReplyPtr> result);

  std::vector<Server> seeds_;
  std::shared_ptr<LastNode> last_node_;
  std::vector<Node> nodes_;  // connected to so far
  size_t current_ = 0;
  size_t seed_ = 0;  // the one to try next
  std::vector<std::string> words_;
  std::optional<ClusterBatch> batch_;  // none: `words_` is the command in flight
  KeyPlaces places_;
  bool in_flight_ = false;
  bool follows_ = false;        // the command belongs to the current connection
  Asking asking_ = Asking::no;  // yes: the next reply is that to ASKING
  int redirects_ = 0;
  Answered answered_ = Answered::no;  // yes: a node answered, but could not be used
  bool arrived_ = false;              // the command may have reached a node that was lost then
  size_t failures_ = 0;               // nodes that could not be reached for this command
  std::optional<Result<ReplyPtr>> result_;
};

}  // namespace rlock::redis
