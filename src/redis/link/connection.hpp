#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "redis/link/link.hpp"
#include "redis/link/reply.hpp"
#include "redis/net/server.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// One connection to one server, one command in flight. It connects by itself when a command needs
// it. CLIENT SETNAME goes out in one write with the first command; what decides where and as whom a
// command runs (AUTH, SELECT, ROLE, a member's vote) is answered before the command is sent. Every
// reply is read. Any failure of the transport closes it: the next command starts afresh.
class Connection final : public Link {
 public:
  explicit Connection(Server server);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection() override;

  void start(const std::vector<std::string>& words) override;
  // The socket is not used again after the command.
  void pipeline(const std::vector<std::string>& words) override;
  // Waits for what the server says by itself, a message of a channel, over the socket as it is;
  // without one it fails. A wait that found nothing may be followed by another.
  void listen();
  bool is_open() const override;
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  bool settle() override;
  Result<ReplyPtr> take() override;
  bool may_have_arrived() const override;
  // A password that it refused is being fetched anew.
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

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rlock::redis
