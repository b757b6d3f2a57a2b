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

// The way to the server that a command belongs to: one server, whoever is master now, or the node
// of a cluster that has the key. One command in flight.
class Link {
 public:
  virtual ~Link() = default;

  // Sends `words`; a command still in flight is abandoned.
  virtual void start(const std::vector<std::string>& words) = 0;

  // Right after start(): `words` go out in the same write, and no answer of theirs is read.
  virtual void pipeline(const std::vector<std::string>& /*words*/) {}

  // As lock::Request has them, for the command in flight.
  virtual void wants(std::vector<pollfd>& out) const = 0;
  virtual TimePoint due() const = 0;
  virtual bool advance(TimePoint now) = 0;

  // As lock::Request has it: reads what has come, sends nothing. True: take() what it is.
  virtual bool settle() { return false; }

  // Once, after advance() or settle() returned true. An error reply of the server is a value here
  // (REDIS_REPLY_ERROR); failed transport or set-up is an Error with the exit code's kind.
  virtual Result<ReplyPtr> take() = 0;

  // Whether the server may have carried out the command started last: it was handed to the network
  // as a whole, if only once of several tries, and was not answered with an error. Until the next
  // start().
  virtual bool may_have_arrived() const = 0;

  // Of a command in flight: whether the server has spoken meanwhile.
  virtual Answered answered() const { return Answered::no; }

  // Gives up what is in flight and does not trust the server at the far end any more: the next
  // command starts afresh.
  virtual void drop() = 0;

  // Where the user pointed us, the same over a fail-over; never a password.
  virtual std::string label() const = 0;
  // The server that is asked now or was asked last: for messages.
  virtual std::string node() const = 0;
  // Whether others may decide without this server, so that nobody is left to hear what it answers.
  virtual bool is_quorum_member() const { return false; }
  // There is a connection, as far as this side knows.
  virtual bool is_open() const { return false; }
  // Whether `text` has the password in it that is used there.
  virtual bool contains_secret(std::string_view text) const = 0;
};

// What the far end said, fit for a message: some servers, and what stands before them, quote what
// they were sent.
inline std::string redact(const Link& link, std::string text) {
  return link.contains_secret(text) ? "an error that quotes the password" : std::move(text);
}

}  // namespace rlock::redis
