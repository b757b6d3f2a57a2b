#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "redis/reply.hpp"
#include "redis/server.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// One connection to one server, one command in flight. It connects by itself when a command needs
// it; set-up (AUTH, SELECT, CLIENT SETNAME) goes out in one write with the first command, and every
// reply is read. Any failure of the transport closes it: the next command starts afresh. [DESIGN,
// Transport]
class Connection {
 public:
  explicit Connection(Server server);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // Sends `words`; a command still in flight is abandoned together with its socket.
  void start(const std::vector<std::string>& words);

  // As lock::Request has them, for the command in flight.
  void wants(std::vector<pollfd>& out) const;
  util::TimePoint due() const;
  bool advance(util::TimePoint now);

  // Once, after advance() returned true. An error reply of the server is a value here
  // (REDIS_REPLY_ERROR); failed transport or set-up is an Error with the exit code's kind.
  util::Result<ReplyPtr> take();

  // Closes the socket; what was in flight is abandoned.
  void drop();

  // Whether the next command finds a socket, as far as is known.
  bool is_open() const;

  const Server& server() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rlock::redis
