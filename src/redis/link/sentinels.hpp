#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "redis/link/connection.hpp"
#include "redis/net/host_port.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

struct NoAnswer {};       // of a sentinel, so far
struct UnknownMaster {};  // the sentinel knows no master of this name

// What one sentinel answered: the address of the master, or why it named none.
using SentinelVote = std::variant<NoAnswer, HostPort, UnknownMaster, Error>;

// The master that more than half of the sentinels name. Only a sentinel that answers that it does
// not know the master's name is left out of the count. One that does not answer, or rejects our
// password, counts as a vote against: it may know another master, and one that is cut off together
// with a former master must not decide.
std::optional<HostPort> elect(const std::vector<SentinelVote>& votes);

// Finds the current master: asks all sentinels that the user named at once, and elects. Driven like
// a lock::Request.
class Sentinels {
 public:
  Sentinels(std::vector<Server> sentinels, std::string master);

  void start();
  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // True once take() has the master or an Error.
  bool advance(TimePoint now);
  // ErrorKind::unavailable, Retry::later: no majority; ErrorKind::denied: a sentinel refused our
  // login.
  Result<HostPort> take();
  void drop();

  // `h1:26379,h2:26379/MASTER`, as in the URL.
  const std::string& label() const { return label_; }

 private:
  bool is_asked(size_t i) const { return std::holds_alternative<NoAnswer>(votes_[i]); }
  SentinelVote read_vote(Connection& sentinel) const;
  bool all_answered() const;
  Error no_majority() const;

  std::vector<Connection> sentinels_;
  std::vector<SentinelVote> votes_;  // of sentinels_, in their order
  std::string master_;
  std::string label_;
  Millis vote_timeout_;
  std::optional<TimePoint> vote_deadline_;  // set by the first advance()
  std::optional<HostPort> elected_;
};

}  // namespace rlock::redis
