#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "redis/link.hpp"
#include "redis/reply.hpp"
#include "redis/server.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// One connection to one server, one command in flight. It connects by itself when a command needs
// it. CLIENT SETNAME goes out in one write with the first command; what decides where and as whom a
// command runs (AUTH, SELECT, ROLE, a member's vote) is answered before the command is sent. Every
// reply is read. Any failure of the transport closes it: the next command starts afresh. [DESIGN,
// Transport]
class Connection final : public Link {
 public:
  explicit Connection(Server server);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection() override;

  void start(const std::vector<std::string>& words) override;
  // The socket is not used again after the command.
  void follow(const std::vector<std::string>& words) override;
  // Waits for what the server says by itself, a message of a channel, over the socket as it is;
  // without one it fails. A wait that found nothing may be followed by another.
  void listen();
  bool is_open() const override;
  void wants(std::vector<pollfd>& out) const override;
  util::TimePoint due() const override;
  bool advance(util::TimePoint now) override;
  bool settle() override;
  util::Result<ReplyPtr> take() override;
  bool may_have_arrived() const override;
  // A password that it refused is being fetched anew.
  util::Answered answered() const override;
  // Closes the socket.
  void drop() override;
  std::string label() const override { return server().label(); }
  std::string node() const override { return server().label(); }
  bool may_be_left() const override { return server().members != nullptr; }
  bool is_secret(std::string_view text) const override { return tells_password(server(), text); }

  const Server& server() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rlock::redis
