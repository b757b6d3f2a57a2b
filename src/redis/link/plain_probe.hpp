#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/net/dialer.hpp"
#include "redis/net/stream.hpp"

namespace rlock::redis {

// Whether a port that stays silent to a TLS greeting is a plain one: over a connection of its own
// it asks PING, and tells nothing else. Driven like a lock::Request.
class PlainProbe {
 public:
  PlainProbe(Server server, TimePoint now, TimePoint deadline);
  PlainProbe(const PlainProbe&) = delete;
  PlainProbe& operator=(const PlainProbe&) = delete;

  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // Goes as far as it can without blocking; true once it has answered as Redis does.
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
