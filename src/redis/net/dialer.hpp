#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "redis/net/resolver.hpp"
#include "redis/net/server.hpp"
#include "redis/net/socket.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Gets a connected socket to a server: looks its name up, tries its addresses in order, all within
// one absolute deadline. Driven like a lock::Request. `server` must outlive it.
class Dialer {
 public:
  explicit Dialer(const Server& server) : server_(server) {}

  void start(TimePoint now, TimePoint deadline);
  // Gives up; a look-up in flight is kept for the next start: one thread at most. What it finds
  // meanwhile is good for as long as a connect may take.
  void stop();

  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // True once take() has a socket or the reason why there is none.
  bool advance(TimePoint now);
  Result<util::Fd> take();

  // The server at the far end has answered: its address is good for later.
  void answered();

 private:
  enum class DialPhase { idle, looking_up, connecting, backlog_full, ended };

  void find_addresses();
  bool check_lookup(TimePoint now);
  void try_next(TimePoint now);
  void check_attempt(TimePoint now);
  void fail(const std::string& why, Retry retry = Retry::later,
            ErrorKind kind = ErrorKind::unavailable);
  std::optional<Address> remembered() const;

  const Server& server_;
  DialPhase phase_ = DialPhase::idle;
  TimePoint deadline_;
  TimePoint attempt_deadline_;  // when this look-up or attempt is left for the next resort
  std::optional<Resolution> resolution_;
  std::vector<Address> addresses_;
  size_t next_ = 0;  // of addresses_
  util::Fd fd_;
  std::string first_failure_;
  std::optional<Error> error_;
};

}  // namespace rlock::redis
