#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "redis/connection.hpp"
#include "redis/url.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Who is master now, by a vote of the sentinels that the user named: all are asked at once, and
// more than half must name the same server. One that refuses or knows no such master does not vote;
// a silent one counts against, so that a sentinel that is cut off together with a deposed master is
// not believed. Driven like a lock::Request. [DESIGN, Sentinel]
class Sentinels {
 public:
  Sentinels(std::vector<Server> sentinels, std::string master);

  void start();
  void wants(std::vector<pollfd>& out) const;
  util::TimePoint due() const;
  // True once take() knows the master or why there is none.
  bool advance(util::TimePoint now);
  // ErrorKind::unavailable, Retry::later, without a majority; ErrorKind::denied when they refuse
  // us.
  util::Result<HostPort> take();
  void drop();

  // `h1:26379,h2:26379/MASTER`, as in the URL.
  const std::string& label() const { return label_; }

 private:
  struct Voter {
    explicit Voter(Server server) : connection(std::move(server)) {}
    Connection connection;
    bool asked = false;  // and has not answered yet
    std::optional<HostPort> vote;
    std::optional<util::Error> refusal;
  };

  void read(Voter& voter);
  void elect();
  bool all_heard() const;
  util::Error undecided() const;

  std::vector<Voter> voters_;
  std::string master_;
  std::string label_;
  util::Millis patience_;
  std::optional<util::TimePoint> give_up_;  // set by the first advance()
  std::optional<HostPort> elected_;
};

}  // namespace rlock::redis
