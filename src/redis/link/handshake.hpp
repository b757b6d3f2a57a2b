#pragma once

#include <optional>
#include <string>
#include <vector>

#include "redis/link/reply.hpp"
#include "redis/link/voting.hpp"
#include "redis/net/server.hpp"
#include "util/result.hpp"

// How a new connection logs in and checks the server, before or together with its first command.
namespace rlock::redis {

enum class HandshakeStep { auth, select, role, set_name, ping, script, append_only, sync, uptime };
const char* to_string(HandshakeStep step);

// Some proxies hang up on CLIENT SETNAME, and the name only helps operators.
enum class ClientNaming { send, skip };

// Which answers the first command waits for: a final one, whose reply nobody reads, may also go to
// a server that does not count as a member of its quorum.
enum class FirstCommand { normal, final };

class Handshake {
 public:
  Handshake() = default;  // of a connection that has none: nothing is awaited
  Handshake(const Server& server, ClientNaming naming);

  // All steps, as one text to send; at least one, so that each new connection has an answer to wait
  // for.
  std::string request(const Server& server) const;
  bool precedes(FirstCommand command) const;

  bool is_pending() const { return next_ < steps_.size(); }
  // Whether the server said that it knows Server::final_script.
  bool knows_final_script() const { return knows_final_script_; }
  // Whose answer comes next, while pending.
  HandshakeStep awaited() const { return steps_[next_]; }

  // Takes the next answer; an Error if the connection cannot be used. The text of a refused AUTH is
  // not passed on: some servers quote the command, password included.
  std::optional<Error> read(const redisReply& reply, const Server& server);

 private:
  std::vector<HandshakeStep> steps_;  // in the order of sending
  size_t next_ = 0;                   // of steps_
  AppendOnly append_only_{};
  bool knows_final_script_ = false;
};

}  // namespace rlock::redis
