#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/link/link.hpp"
#include "redis/link/reply.hpp"
#include "redis/net/server.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// One connection to one server, one command in flight. It connects when a command needs it. CLIENT
// SETNAME goes out in one write with the first command; steps that decide where and as which user a
// command runs (AUTH, SELECT, ROLE, the check of a quorum member) are answered before the command
// is sent. Every reply is read. A failure of the transport closes it, and the next command
// reconnects.
class Connection final : public Link {
 public:
  explicit Connection(Server server);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection() override;

  void start(const std::vector<std::string>& words) override;
  void follow(const std::vector<std::string>& words) override;
  void start_batch(Batch batch) override;
  // The socket is not used again after these commands.
  void pipeline(const std::vector<std::string>& words) override;
  // Waits for a message that the server sends by itself, as of a channel; fails without an open
  // socket. May be called again after a wait without a message.
  void listen();
  bool was_accepted() const override;
  bool knows_final_script() const override;
  bool is_open() const override;
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  bool settle() override;
  Result<ReplyPtr> take() override;
  std::vector<Result<ReplyPtr>> take_batch() override;
  bool may_have_arrived() const override;
  // Yes while a password that the server refused is fetched again.
  Answered answered() const override;
  // Closes the socket.
  void drop() override;
  std::string label() const override { return server().label(); }
  std::string node() const override { return server().label(); }
  bool is_quorum_member() const override { return server().members != nullptr; }
  bool contains_secret(std::string_view text) const override {
    return contains_password(server(), text);
  }

  const Server& server() const;
  // Of the server, while the socket is open; nothing without TLS.
  std::optional<std::chrono::system_clock::time_point> certificate_end() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rlock::redis
