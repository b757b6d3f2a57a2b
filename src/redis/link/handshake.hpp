#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "redis/link/reply.hpp"
#include "redis/net/server.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Whether a server counts as a member of a quorum: once, whatever its names; and not right after a
// restart, when it may have lost locks, unless it writes each change to its append-only file before
// it answers.

// The servers of a quorum by the run ids that they report, so that one server with two names is not
// counted twice.
class MemberRegistry {
 public:
  // Notes which server answers at `label`; the label of another member if that is the same server.
  std::optional<std::string> add_member(const std::string& label, const std::string& run_id);

 private:
  std::mutex mutex_;  // the renewal thread has connections of its own
  std::map<std::string, std::string> run_ids_;
};

// A lease that was granted just before a restart may last as long as this: the longest over a
// quorum.
inline constexpr uint64_t kRestartGuardSeconds = 60;

// Whether the server keeps what it acknowledged.
enum class Durability { unknown, every_write };

// What a server says of its append-only file.
struct AppendOnly {
  bool enabled = false;
  bool syncs_always = false;

  // From an answer to CONFIG GET; one that was refused changes nothing.
  void read(const redisReply& reply);
  Durability durability() const {
    return enabled && syncs_always ? Durability::every_write : Durability::unknown;
  }
};

// `reply` is the answer to INFO server; nullopt: the server counts. ErrorKind::unavailable says
// until when it does not; ErrorKind::denied: its uptime is unknown; ErrorKind::usage: it is another
// member under a second name.
std::optional<Error> check_member(const redisReply& reply, Durability durability,
                                  const Server& server);

// How a new connection logs in and checks the server, before or together with its first command.

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
