#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/link/connection.hpp"
#include "redis/link/link.hpp"
#include "redis/net/url.hpp"

namespace rlock::redis {

// What the nodes of a cluster report about each other.

struct Redirect {
  enum class Kind { moved, ask };  // ask: for this command alone, after ASKING
  Kind kind;
  HostPort to;  // an empty host means the node that sent the redirect
};

// From `MOVED 3999 10.0.0.1:6381` and `ASK …`; nullopt for any other error.
std::optional<Redirect> redirect_in(std::string_view error);

// Which of its addresses a node is reached at: with TLS by name, since its certificate may have no
// other.
enum class NodeNaming { by_address, by_name };

// The masters that serve slots, from a CLUSTER NODES reply. An empty host means the node that sent
// it.
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming);

// Which node had the keys of earlier batches: a hint, which redirects correct.
using KeyPlaces = std::map<std::string, HostPort>;

// A batch of commands whose keys may be on different nodes: they are sent in groups, one for each
// node, and those that are redirected are sent again.
class ClusterBatch {
 public:
  ClusterBatch(Batch commands, KeyPlaces& places);

  bool is_done() const { return open_ == 0; }
  size_t size() const { return commands_.size(); }
  // Chooses the next group. The node that has its keys; none where that is not known.
  std::optional<HostPort> choose_group();
  Batch group() const;
  // The replies to the group from the node `from`. `redirects`: whether it may be sent elsewhere.
  void take_group(std::vector<Result<ReplyPtr>> replies, const HostPort& from, bool redirects);
  // The node is gone: any other one may know where the keys are.
  void forget_node(const HostPort& node);
  void fail_group(const Error& why);
  std::vector<Result<ReplyPtr>> take() { return std::move(replies_); }

 private:
  struct Command {
    std::vector<std::string> words;
    std::string key;
    bool open = true;
    bool ask = false;  // after ASKING, and at `at` alone
    HostPort at{};
  };

  std::optional<HostPort> place_of(const Command& command) const;
  bool redirect(Command& command, const redisReply& reply, const HostPort& from);
  void close(size_t index, Result<ReplyPtr> reply);

  KeyPlaces& places_;
  std::vector<Command> commands_;
  std::vector<size_t> group_;
  std::vector<Result<ReplyPtr>> replies_;
  size_t open_;
};

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
