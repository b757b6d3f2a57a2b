#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "redis/net/socket.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// What earlier connections to a server have shown: the address where it answered last, for when its
// name cannot be resolved later, whether it accepted our login, and whether it hangs up on CLIENT,
// as some proxies do.
class AddressMemory {
 public:
  void keep(const Address& address);
  std::optional<Address> last() const;
  bool was_accepted() const { return was_accepted_; }
  void note_accepted() { was_accepted_ = true; }
  bool hangs_up_on_client() const { return hangs_up_on_client_; }
  void note_client_hang_up() { hangs_up_on_client_ = true; }

 private:
  std::atomic<bool> was_accepted_ = false;
  std::atomic<bool> hangs_up_on_client_ = false;
  mutable std::mutex mutex_;  // the renewal thread has a connection of its own
  std::optional<Address> last_;
};

// The addresses of a host that needs no look-up: a numeric one, and `localhost` as 127.0.0.1, then
// ::1. Empty for every other name.
std::vector<Address> known_addresses(const std::string& host, int port);

// A look-up in flight, on a thread of its own since getaddrinfo() has no deadline. Destroying it
// abandons the thread, which owns all that it uses and ends by itself.
class Resolution {
 public:
  // ErrorKind::system: the thread cannot be started.
  static Result<Resolution> start(const std::string& host, int port);

  // Readable once done().
  int fd() const;
  bool done() const;
  // Whether it was done more than `age` ago.
  bool is_stale(TimePoint now, Millis age) const;

  struct LookupResult {
    std::vector<Address> addresses;
    std::string failure;  // why there are none
  };
  // Once, after done().
  LookupResult take();

 private:
  struct Shared;
  explicit Resolution(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void* look_up(void* argument);

  std::shared_ptr<Shared> shared_;
};

}  // namespace rlock::redis
