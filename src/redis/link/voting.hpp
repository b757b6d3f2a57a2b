#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "redis/link/reply.hpp"
#include "redis/net/server.hpp"
#include "util/result.hpp"

// Whether a server counts as a member of a quorum: once, whatever its names; and not right after a
// restart, when it may have lost locks, unless it writes each change to its append-only file before
// it answers.
namespace rlock::redis {

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

}  // namespace rlock::redis
