#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "redis/link/connection.hpp"
#include "redis/link/link.hpp"
#include "redis/net/url.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

struct NoAnswer {};  // the sentinel has not answered so far
struct NamedMaster {
  HostPort address;
  // Only in a check for a failover:
  uint64_t config_epoch = 0;  // of the failover that made it the master, if known
  bool failing_over = false;  // the sentinel is about to promote another server
};
struct UnknownMaster {};  // the sentinel knows no master of this name

// What one sentinel answered: the master, or why it named none.
using SentinelVote = std::variant<NoAnswer, NamedMaster, UnknownMaster, Error>;

// The master that more than half of the `existing` sentinels name. A sentinel that does not answer,
// or rejects our password, counts as a vote against: it may know another master, and a sentinel
// that is cut off together with a former master must not decide.
std::optional<HostPort> elect(const std::vector<SentinelVote>& votes, size_t existing);

struct KnownSentinel {
  HostPort address{};  // the address that it announces; empty: the sentinel itself that answered
  Millis silent{0};    // since it last answered another sentinel
};
using KnownSentinels = std::map<std::string, KnownSentinel>;  // by their ids
// What a sentinel reports about itself and the others that watch the same master. Sentinels are
// identified by ids, because their addresses differ behind NAT, and with TLS.
struct SentinelView {
  std::string id{};  // empty: not reported
  KnownSentinels others{};
};
// Parses the reply to SENTINEL SENTINELS; empty if it was refused.
KnownSentinels read_others(const redisReply& reply);

// All sentinels that any of the views knows, itself included.
KnownSentinels known_sentinels(const std::vector<SentinelView>& views);
// How many sentinels exist: the known ones, but at least those that the user named and that know
// the master.
size_t count_existing(const std::vector<SentinelView>& views, size_t named);

// The error for a server behind redis+sentinel:// that is not a Sentinel.
Error no_sentinel(const Endpoint& server);
// Its refusal of a login. The password in the URL is for the master, and a server that was taken
// for a Sentinel requires it, too.
Error login_refused(Error error, const Endpoint& server);

// Finds the current master: asks all sentinels that the user named at the same time, and elects. If
// they are not a majority of those that exist, it also asks the others. Driven like a
// lock::Request.
class Sentinels {
 public:
  Sentinels(std::vector<Server> sentinels, std::string master);

  void start() { ask(SentinelQuestion::master, Millis(0)); }
  // Asks whether the master is about to be replaced, too. Waits at most for `patience` for the
  // sentinels that are not needed for the majority.
  void start_failover_check(Millis patience) { ask(SentinelQuestion::failover, patience); }
  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // True once take() has the master or an Error.
  bool advance(TimePoint now);
  // ErrorKind::unavailable, Retry::later: no majority; ErrorKind::denied: a sentinel refused the
  // login.
  Result<HostPort> take();
  // Call this instead after start_failover_check(): returns an Error (Retry::later) if writes may
  // be lost that `master` had acknowledged when the sentinels were asked.
  Status take_failover(const HostPort& master) const;
  void drop();

  // `h1:26379,h2:26379/MASTER`, as in the URL.
  const std::string& label() const { return label_; }

 private:
  // master: which server is the master? failover: is it about to be replaced, too?
  enum class SentinelQuestion { master, failover };

  // How a sentinel has answered so far.
  struct Conduct {
    std::optional<Nanos> took{};  // its last answer
    bool failing_over = false;    // in its last answer
    bool let_pass = false;        // a check for a failover has ended without it
  };

  bool is_asked(size_t i) const {
    return i < in_question_ && std::holds_alternative<NoAnswer>(votes_[i]);
  }
  void ask(SentinelQuestion question, Millis patience);
  void ask_one(size_t i);
  void ask_announced();
  TimePoint awaited_until(size_t i) const;
  std::vector<SentinelVote> votes() const;
  std::optional<HostPort> elected() const;
  std::string missing_text() const;
  void read_answer(size_t i, TimePoint now);
  SentinelVote vote_in(Connection& sentinel, const std::vector<Result<ReplyPtr>>& replies) const;
  SentinelVote vote_without_master(Connection& sentinel, const redisReply& reply) const;
  bool all_answered() const;
  Error no_majority() const;

  // First the sentinels that the URL names, then those announced so far.
  std::vector<Connection> sentinels_;
  std::vector<SentinelVote> votes_;  // of sentinels_, in their order
  std::vector<SentinelView> views_;  // likewise
  std::vector<Conduct> conduct_;     // likewise
  size_t named_;
  size_t in_question_;  // how many of sentinels_ are asked
  Batch questions_;
  std::string master_;
  std::string label_;
  SentinelQuestion question_ = SentinelQuestion::master;
  Millis vote_timeout_;
  std::optional<TimePoint> vote_deadline_;  // set by the first advance()
  TimePoint asked_{};                       // the same moment
  Millis patience_{0};                      // only with SentinelQuestion::failover
  std::optional<Nanos> majority_took_;      // likewise, once there is one
};

// Sends commands to the master of a Sentinel group. It asks the sentinels before each command,
// because a former master considers itself master for many seconds, and what it acknowledges then
// is lost. It asks them again before it believes a late reply: a master that was stopped while it
// had the command carries it out when it continues, although another server has replaced it in the
// meantime.
class SentinelLink final : public Link {
 public:
  // `master`: all but the address, which the sentinels know.
  SentinelLink(Sentinels sentinels, Server master);

  void follow(const std::vector<std::string>& words) override;
  void start_batch(Batch batch) override;
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  std::vector<Result<ReplyPtr>> take_batch() override;
  bool fails_over() const override { return true; }
  lock::InFlight<Done> check_failover(Millis patience) override;
  bool may_have_arrived() const override { return elected_ && connection_->may_have_arrived(); }
  void drop() override;
  std::string label() const override { return sentinels_.label() + database_; }
  std::string node() const override { return connection_ ? connection_->node() : label(); }
  const Server& node_server() const override {
    return connection_ ? connection_->server() : master_;
  }
  bool contains_secret(std::string_view text) const override {
    return contains_password(master_, text);
  }

 private:
  class FailoverCheck;

  // confirming: asks the sentinels again, about the reply that has come.
  enum class SentinelPhase { idle, asking, talking, confirming, ended };

  void handle_elected(HostPort master);
  void handle_replies(TimePoint now);
  void handle_confirmed(const Result<HostPort>& master);
  bool is_voting() const {
    return phase_ == SentinelPhase::asking || phase_ == SentinelPhase::confirming;
  }
  bool is_master(const HostPort& address) const;
  void end(Error why);

  Sentinels sentinels_;
  Server master_;
  std::string database_;  // `/2`
  SentinelPhase phase_ = SentinelPhase::idle;
  Batch batch_;                           // in flight; often one command
  std::optional<Connection> connection_;  // to the last elected master
  bool elected_ = false;                  // whether for this command
  std::optional<TimePoint> asked_;        // when the sentinels were asked for this command
  std::vector<Result<ReplyPtr>> replies_;
};

}  // namespace rlock::redis
