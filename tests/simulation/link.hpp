#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "redis/link/link.hpp"
#include "redis/net/url.hpp"
#include "simulation/process.hpp"
#include "simulation/server.hpp"

namespace rlock::sim {

// What a connection is part of, and what is broken in it on purpose.
struct LinkOptions {
  bool member = false;              // of a quorum
  bool counts_everybody = false;    // also a member that may have lost its locks
  bool sentinels = false;           // can be asked whether a failover is under way
  std::string_view final_script{};  // of which a member says whether it knows it
};

// A connection of a simulated process to a simulated server, under the real stores. It keeps the
// rules of redis::Connection: it connects when a command needs it; a member's set-up is answered
// before the first command; a failure closes it.
class Link final : public redis::Link {
 public:
  Link(Process& process, Server& server, Network& network, const LinkOptions& options,
       const std::shared_ptr<redis::MemberRegistry>& members);
  ~Link() override { close(); }

  void start_batch(redis::Batch batch) override;
  void follow(const std::vector<std::string>& words) override;
  void start_last_words(const std::vector<std::string>& words, std::string_view text) override;
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  bool settle() override;
  std::vector<Result<redis::ReplyPtr>> take_batch() override;
  bool fails_over() const override { return options_.sentinels; }
  lock::InFlight<Done> check_failover(Millis patience) override;
  bool may_have_arrived() const override { return sent_; }
  void drop() override;
  std::string label() const override { return server_.label(); }
  std::string node() const override { return server_.label(); }
  const redis::Server& node_server() const override { return description_; }
  bool was_accepted() const override;
  bool contains_secret(std::string_view) const override { return false; }

  // ---- what arrives from the network ----
  void on_accepted(const std::string& info, const std::set<std::string>& known);
  void on_reply(const std::string& bytes);
  void on_closed();

 private:
  enum class Phase { idle, asked, dialing, talking, ended };

  bool is_open() const { return wire_ != nullptr && wire_->accepted; }
  void dial(TimePoint now);
  void send();
  void post(const Command& words);
  void close();
  void fail(const std::string& why);
  void end(Result<redis::ReplyPtr> result);

  Process& process_;
  Server& server_;
  Network& network_;
  LinkOptions options_;
  redis::Server description_;  // for the check of a member
  WirePtr wire_;
  Phase phase_ = Phase::idle;
  Command words_, pipelined_;
  bool sent_ = false;
  bool knows_final_ = false;
  TimePoint deadline_;  // of the set-up
  TimePoint set_up_at_;
  std::optional<Result<redis::ReplyPtr>> result_;
};

// The connection is closed by its process, or with it.
void close_wire(World& world, Network& network, Server& server, const WirePtr& wire);

}  // namespace rlock::sim
