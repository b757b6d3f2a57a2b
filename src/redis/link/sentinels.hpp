#pragma once

#include <poll.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "redis/link/connection.hpp"
#include "redis/net/url.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Whether so many of `named` sentinels, `abstaining` of which know no such master, elect one.
constexpr bool is_majority(std::ptrdiff_t votes, size_t total, std::ptrdiff_t abstaining) {
  return 2 * votes > static_cast<std::ptrdiff_t>(total) - abstaining;
}

// Who is master now, by a vote of the sentinels that the user named: all are asked at once, and
// more than half must name the same server. Only one that answers that it knows no such master does
// not vote. Whoever cannot be heard, be it silence, a reset, a firewall's refusal, a dead name
// server or a password that it refuses, counts against: it may know of another master, and a
// sentinel that is cut off together with a deposed one is not believed. Driven like a
// lock::Request.
class Sentinels {
 public:
  Sentinels(std::vector<Server> sentinels, std::string master);

  void start();
  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // True once take() knows the master or why there is none.
  bool advance(TimePoint now);
  // ErrorKind::unavailable, Retry::later, without a majority; ErrorKind::denied when they refuse
  // us.
  Result<HostPort> take();
  void drop();

  // `h1:26379,h2:26379/MASTER`, as in the URL.
  const std::string& label() const { return label_; }

 private:
  struct Voter {
    explicit Voter(Server server) : connection(std::move(server)) {}
    Connection connection;
    bool asked = false;  // and has not answered yet
    std::optional<HostPort> vote;
    bool abstains = false;       // knows no such master
    std::optional<Error> error;  // why there is no vote
  };

  void read(Voter& voter);
  void elect();
  bool all_answered() const;
  Error no_majority() const;

  std::vector<Voter> voters_;
  std::string master_;
  std::string label_;
  Millis vote_timeout_;
  std::optional<TimePoint> vote_deadline_;  // set by the first advance()
  std::optional<HostPort> elected_;
};

}  // namespace rlock::redis
