#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/net/dialer.hpp"
#include "redis/net/stream.hpp"

namespace rlock::redis {

// Finds out whether a port that does not answer a TLS handshake is a plain one: sends PING over a
// connection of its own, and nothing else. Driven like a lock::Request.
class PlainProbe {
 public:
  PlainProbe(Server server, TimePoint now, TimePoint deadline);
  PlainProbe(const PlainProbe&) = delete;
  PlainProbe& operator=(const PlainProbe&) = delete;

  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // Goes on as far as it can without blocking; true once the port has answered like Redis.
  bool answers(TimePoint now);

 private:
  void talk();

  Server server_;
  Dialer dialer_;
  std::unique_ptr<Stream> stream_;
  std::string_view unsent_;
  std::string received_;
  bool done_ = false;
};

}  // namespace rlock::redis
