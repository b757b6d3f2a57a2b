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

// Connects a socket to a server: looks up its name and tries its addresses in order, within one
// absolute deadline. Driven like a lock::Request. `server` must outlive it.
class Dialer {
 public:
  explicit Dialer(const Server& server) : server_(server) {}

  void start(TimePoint now, TimePoint deadline);
  // Gives up. A look-up in flight is kept for the next start, so that there is one thread at most;
  // its result is used then unless it is older than a connect timeout.
  void stop();

  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // True once take() has a socket or an Error.
  bool advance(TimePoint now);
  Result<util::Fd> take();

  // The server has answered: its address is remembered.
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
  TimePoint attempt_deadline_;  // of this look-up or address
  std::optional<Resolution> resolution_;
  std::vector<Address> addresses_;
  size_t next_ = 0;  // index in addresses_
  util::Fd fd_;
  std::string first_failure_;
  std::optional<Error> error_;
};

}  // namespace rlock::redis
