#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "redis/socket.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// The address that a server answered at last: for when its name cannot be resolved later on.
class AddressMemory {
 public:
  void keep(const Address& address);
  std::optional<Address> last() const;

 private:
  mutable std::mutex mutex_;  // the renewal thread has a connection of its own
  std::optional<Address> last_;
};

// What needs no look-up: numeric addresses, and `localhost` as 127.0.0.1, then ::1. Empty for a
// name.
std::vector<Address> known_addresses(const std::string& host, int port);

// A look-up in flight on a thread of its own, since getaddrinfo() knows no deadline. Destroying it
// abandons the thread, which then ends by itself and owns all that it touches.
class Resolution {
 public:
  // ErrorKind::system when no thread can be had.
  static util::Result<Resolution> start(const std::string& host, int port);

  // Readable when the result is there.
  int fd() const;
  bool done() const;
  // Done, and longer than `age` ago.
  bool is_stale(util::TimePoint now, util::Millis age) const;

  struct Outcome {
    std::vector<Address> addresses;
    std::string failure;  // why there are none
  };
  // Once, after done().
  Outcome take();

 private:
  struct Shared;
  explicit Resolution(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void* look_up(void* argument);

  std::shared_ptr<Shared> shared_;
};

}  // namespace rlock::redis
