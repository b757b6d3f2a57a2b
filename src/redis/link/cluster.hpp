#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/link/connection.hpp"
#include "redis/link/link.hpp"
#include "redis/net/url.hpp"
#include "util/mutex.hpp"

namespace rlock::redis {

// Parses what the nodes of a cluster report about each other.

struct Redirect {
  enum class Kind { moved, ask };  // ask: only for this command, after ASKING
  Kind kind;
  HostPort to;  // an empty host means the node that sent the redirect
};

// Parses `MOVED 3999 10.0.0.1:6381` and `ASK …`; nullopt for any other error.
std::optional<Redirect> redirect_in(std::string_view error);

// How to address a node: with TLS by name, because its certificate may contain nothing else.
enum class NodeNaming { by_address, by_name };

// The masters that serve slots, from a CLUSTER NODES reply. An empty host means the node that sent
// the reply.
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming);

inline constexpr uint16_t kSlots = 16384;

// The slot of a key, from the text between its braces.
uint16_t slot_of(std::string_view hash_tag);

// What a node reports about its own slots.
struct OwnSlots {
  std::vector<bool> served = std::vector<bool>(kSlots);  // does not include moving slots
  std::vector<std::string> moving{};                     // `93 to another node`
};

// Parses the CLUSTER NODES reply of that node itself, because other nodes do not know which of its
// slots are moving.
OwnSlots own_slots(std::string_view nodes);

// The nodes that had the keys of earlier commands: hints that redirects correct. rlock needs no
// slot map, because a lock lies in one slot. Shared by the links to a cluster, on several threads.
class KeyPlaces {
 public:
  // For a new key, returns the node that answered last.
  std::optional<HostPort> find(const std::string& key) const;
  void keep(const std::string& key, const HostPort& node);
  void forget(const HostPort& node);

 private:
  mutable util::Mutex mutex_;
  std::map<std::string, HostPort> nodes_;
  std::optional<HostPort> last_;
};

// A batch of commands whose keys may be on different nodes. It sends them in groups, one for each
// node, and sends redirected commands again.
class ClusterBatch {
 public:
  static constexpr int kMostRedirects = 5;  // of one command

  ClusterBatch(Batch commands, KeyPlaces& places);

  bool is_done() const { return open_ == 0; }
  // Chooses the next group. Returns the node that has its keys; nullopt if that is not known.
  std::optional<HostPort> choose_group();
  Batch group() const;
  // Takes the replies to the group from the node `from`.
  void take_group(std::vector<Result<ReplyPtr>> replies, const Server& from);
  // The node is unreachable: any other node may know where the keys are.
  void forget_node(const HostPort& node);
  void fail_group(const Error& why);
  std::vector<Result<ReplyPtr>> take() { return std::move(replies_); }

 private:
  struct Command {
    std::vector<std::string> words;
    std::string key;
    bool open = true;
    std::optional<HostPort> ask{};  // the node to ask after ASKING, and only this one
    int redirects = 0;
  };

  void read_reply(size_t index, Result<ReplyPtr> reply, const Server& from);
  void close(size_t index, Result<ReplyPtr> reply);

  KeyPlaces& places_;
  std::vector<Command> commands_;
  std::vector<size_t> group_;
  std::vector<Result<ReplyPtr>> replies_;
  size_t open_;
};

// Sends commands to the nodes of a cluster that have their keys: first to the nodes that had these
// keys last, or to the seeds in turn, then wherever the nodes redirect them.
class ClusterLink final : public Link {
 public:
  // `seeds` must not be empty; all have the same credentials.
  ClusterLink(std::vector<Server> seeds, std::shared_ptr<KeyPlaces> places);

  void start_batch(Batch batch) override;
  void follow(const std::vector<std::string>& words) override;
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  std::vector<Result<ReplyPtr>> take_batch() override { return std::exchange(replies_, {}); }
  bool may_have_arrived() const override { return arrived_ || connection().may_have_arrived(); }
  void drop() override;
  std::string label() const override { return joined_labels(seeds_); }
  std::string node() const override { return connection().label(); }
  const Server& node_server() const override { return connection().server(); }
  bool contains_secret(std::string_view text) const override {
    return contains_password(seeds_.front(), text);
  }

  bool uses_tls() const override { return seeds_.front().tls != nullptr; }
  // The server at an address. An empty host means the node that was asked last.
  Server server_at(const HostPort& at) const;

 private:
  Connection& connection() { return nodes_[current_]; }
  const Connection& connection() const { return nodes_[current_]; }
  size_t node_at(const HostPort& at);
  void begin();
  void send_group();
  void handle_replies(std::vector<Result<ReplyPtr>> replies);
  void handle_unreachable(Error why);

  std::vector<Server> seeds_;
  std::shared_ptr<KeyPlaces> places_;
  std::vector<Connection> nodes_;  // connected to so far
  size_t current_ = 0;
  size_t seed_ = 0;                    // the seed to try next
  std::optional<ClusterBatch> batch_;  // none: the command belongs to the current connection
  bool in_flight_ = false;
  Answered answered_ = Answered::no;  // yes: a node answered, but could not be used
  bool arrived_ = false;  // a command may have reached a node whose connection was lost then
  size_t failures_ = 0;   // nodes that could not be reached for this batch
  Cause failure_ = Cause::other;  // why, if all failed for the same cause
  std::vector<Result<ReplyPtr>> replies_;
};

}  // namespace rlock::redis
