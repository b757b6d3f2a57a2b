#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "support/loopback.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace rlock::test {

// A TCP server on a free port of 127.0.0.1 that says what its script says: one connection after the
// other, on a thread of its own. Its destructor interrupts whatever the script waits for.
class FakeServer {
 public:
  // One accepted connection. Everything returns early once the client or the test is gone.
  class Peer {
   public:
    Peer(util::Fd fd, int stop) : fd_(std::move(fd)), stop_(stop) {}
    // Reads until all that came so far contains `mark`; false when the client hung up before.
    bool await(std::string_view mark);
    // As await(), and forgets everything up to the end of `mark`.
    bool next(std::string_view mark);
    void send(std::string_view bytes);
    // A byte each `gap`.
    void trickle(std::string_view bytes, Millis gap);
    void await_hang_up();
    const std::string& received() const { return received_; }

   private:
    bool readable();
    bool read_more();
    util::Fd fd_;
    int stop_;
    std::string received_;
  };

  // `number` counts the connections from 0.
  using Script = std::function<void(Peer& peer, int number)>;
  explicit FakeServer(Script script);
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer();

  int port() const { return listener_.port; }
  int connections() const { return connections_; }

 private:
  void run_connections();

  Script script_;
  const Listener listener_ = listen_on_loopback();
  util::Fd stop_;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace rlock::test
