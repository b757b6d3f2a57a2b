#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "redis/link/cluster_reply.hpp"
#include "redis/link/link.hpp"

namespace rlock::redis {

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

}  // namespace rlock::redis
