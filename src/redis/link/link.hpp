#pragma once

#include <poll.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/link/reply.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

using Batch = std::vector<std::vector<std::string>>;  // commands, each with its words

// Sends a command to the server that is responsible for it: a single server, the current master of
// a Sentinel group, or the node of a cluster that has the key. One command, or one batch of them,
// in flight.
class Link {
 public:
  virtual ~Link() = default;

  // Sends `words`; a command still in flight is abandoned.
  virtual void start(const std::vector<std::string>& words) = 0;

  // As start(), right after take(): over the connection that gave that reply. Without it the
  // command fails, unsent.
  virtual void follow(const std::vector<std::string>& words) = 0;

  // Right after start(): `words` go out in the same write, and their reply is not read.
  virtual void pipeline(const std::vector<std::string>& /*words*/) {}

  // As start(), for several commands: those for one server go out in one write. take_batch() has
  // the replies.
  virtual void start_batch(Batch batch) = 0;

  // As in lock::Request, for the command in flight.
  virtual void wants(std::vector<pollfd>& out) const = 0;
  virtual TimePoint due() const = 0;
  virtual bool advance(TimePoint now) = 0;

  // As lock::Request::finish_reading: reads what has come, sends nothing. True: take() has it.
  virtual bool settle() { return false; }

  // Once, after advance() or settle() has returned true. An error reply of the server is a value
  // (REDIS_REPLY_ERROR); a failed transport or handshake is an Error.
  virtual Result<ReplyPtr> take() = 0;
  // As take(), after start_batch(): the reply to each command, in their order.
  virtual std::vector<Result<ReplyPtr>> take_batch() = 0;

  // Whether the server may have carried out the command started last: in at least one try the whole
  // command was handed to the network, and the answer was not an error. Until the next start().
  virtual bool may_have_arrived() const = 0;

  // Whether a server has answered since the command in flight was started.
  virtual Answered answered() const { return Answered::no; }

  // Abandons the command in flight and the connection: the next command reconnects.
  virtual void drop() = 0;

  // What the user configured, the same before and after a fail-over; never a password.
  virtual std::string label() const = 0;
  // The server that is asked now or was asked last: for messages.
  virtual std::string node() const = 0;
  // Whether a majority may decide without this server, so that nobody reads its reply.
  virtual bool is_quorum_member() const { return false; }
  // Of a quorum's member: whether it has accepted any connection of this process. Before that it is
  // sent nothing but set-up, and commands whose reply nobody reads.
  virtual bool was_accepted() const { return true; }
  // Whether the server said a moment ago that it knows Server::final_script.
  virtual bool knows_final_script() const { return false; }
  // Whether there is a connection, as far as this side knows.
  virtual bool is_open() const { return false; }
  // Whether `text` contains the password that is used there.
  virtual bool contains_secret(std::string_view text) const = 0;
};

// take_batch() of one that failed as a whole.
inline std::vector<Result<ReplyPtr>> failed_batch(size_t commands, const Error& why) {
  std::vector<Result<ReplyPtr>> all;
  for (size_t i = 0; i < commands; ++i) all.emplace_back(why);
  return all;
}

// A server's error text, safe for a message: some servers and proxies quote what they were sent.
inline std::string redact(const Link& link, std::string text) {
  return link.contains_secret(text) ? "an error message that contains the password"
                                    : std::move(text);
}

}  // namespace rlock::redis
