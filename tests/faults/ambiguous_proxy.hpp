#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/loopback.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace rlock::test {

// What a client asks for, as far as a fault can be aimed at it. A claim is the first acquire after
// a wake, as a waiter sends it.
enum class RequestKind { acquire, claim, renew, release, cancel, force_unlock, other, any };

enum class Fault {
  lose_request,   // it never arrives, and the connection is reset
  lose_reply,     // it is carried out, its reply lost, and the connection reset
  stop_reading,   // it never arrives, and nobody says so
  swallow_reply,  // it is carried out, and nobody says so
  late_request,   // it arrives when the test says deliver()
  late_reply,     // 1.2 s late
  trickle_reply   // a byte each 0.4 s
};

enum class Often { once, always };

// Stands on a free port of 127.0.0.1 between clients and the real server on a unix socket, and is a
// faithful wire until it meets the moment that the test aims a fault at. [docs/FAULTS.md, "Faults"]
class AmbiguousProxy {
 public:
  explicit AmbiguousProxy(std::string server_socket);
  AmbiguousProxy(const AmbiguousProxy&) = delete;
  AmbiguousProxy& operator=(const AmbiguousProxy&) = delete;
  ~AmbiguousProxy();

  std::string url() const { return "redis://127.0.0.1:" + std::to_string(listener_.port); }

  void inject(RequestKind request_kind, Fault fault, Often often = Often::once);
  // How often the fault has struck.
  int injected() const { return injected_; }
  // How many renewals have come so far.
  int renewals() const { return renewals_; }
  // Hands the requests of late_request to the server and waits for its answers; how many there
  // were.
  int deliver();

 private:
  struct Link;

  void run_connections();
  void accept_client();
  void flush_due(Link& link, TimePoint now);
  void read_requests(Link& link);
  void read_replies(Link& link);
  void pass_request(Link& link, std::string_view request, RequestKind request_kind);
  void pass_reply(Link& link, std::string reply);
  RequestKind request_kind_of(const std::vector<std::string_view>& words);
  bool should_inject(RequestKind request_kind);
  TimePoint next_due() const;

  std::string server_socket_;
  const Listener listener_ = listen_on_loopback();
  util::Fd stop_;
  std::mutex mutex_;  // of everything below but the counters
  std::list<Link> links_;
  RequestKind request_kind_ = RequestKind::other;
  Fault fault_ = Fault::lose_request;
  int injections_left_ = 0;
  bool woken_ = false;  // a wake has passed since the last acquire
  std::atomic<int> injected_{0};
  std::atomic<int> renewals_{0};
  std::thread thread_;
};

}  // namespace rlock::test
