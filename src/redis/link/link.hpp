#pragma once

#include <poll.h>

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock/store.hpp"
#include "redis/link/reply.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

using Batch = std::vector<std::vector<std::string>>;  // commands, each with its words

// How a command comes to the server.
//
// last_words: a release or a cancellation. If a majority decides without this server, nobody waits
// for its reply, and rlock may have hung up before the server reads what it was sent. From an idle
// connection it reads that to the end, whatever its length. On a new one it answers the handshake
// first, notices that nobody is there, and closes; by then it has read 16 kB, which is enough for
// the digest of a script, but not for the text. A server that does not know the digest, as after a
// restart, would say so to nobody. Hence a member of a quorum gets the text over an idle
// connection, unless it has just said that it knows the script, and over a new one the digest with
// the text behind it. Nor is the check of a member awaited: a server that does not count may free a
// lock.
enum class Delivery {
  normal,
  following,  // over the connection that gave the last reply, or not at all
  last_words,
};

// Sends commands to the server that is responsible for them: a single server, the current master of
// a Sentinel group, or the node of a cluster that has the key. One batch in flight; start() and
// take() are for a batch of one command.
class Link {
 public:
  virtual ~Link() = default;

  // Sends the commands, those for one server in one write; a batch still in flight is abandoned.
  virtual void start_batch(Batch batch) = 0;
  void start(const std::vector<std::string>& words) { start_batch({words}); }

  // As start(), right after take(): Delivery::following. Without the connection the command fails,
  // unsent.
  virtual void follow(const std::vector<std::string>& words) = 0;

  // As start(), for the EVALSHA of a script with this text: Delivery::last_words.
  virtual void start_last_words(const std::vector<std::string>& words, std::string_view /*text*/) {
    start(words);
  }

  // As in lock::Request, for the batch in flight.
  virtual void wants(std::vector<pollfd>& out) const = 0;
  virtual TimePoint due() const = 0;
  virtual bool advance(TimePoint now) = 0;

  // As lock::Request::finish_reading: reads what has come, sends nothing. True: take() has it.
  virtual bool settle() { return false; }

  // Once, after advance() or settle() has returned true: the reply to each command, in their order.
  // An error reply of the server is a value (REDIS_REPLY_ERROR); a failed transport or handshake is
  // an Error.
  virtual std::vector<Result<ReplyPtr>> take_batch() = 0;
  Result<ReplyPtr> take() {
    auto replies = take_batch();
    if (replies.empty()) return Error{ErrorKind::internal, label() + ": no reply to take"};
    return std::move(replies.front());
  }

  // Whether others may make another server the master while this one still answers.
  virtual bool fails_over() const { return false; }
  // As of lock::LockStore, of the server that gave the last reply.
  virtual lock::InFlight<Done> check_failover() { return nullptr; }

  // Whether the server may have carried out the command started last: in at least one try the whole
  // command was handed to the network, and the answer was not an error. Until the next start().
  virtual bool may_have_arrived() const = 0;

  // Whether a server has answered since the command in flight was started.
  virtual Answered answered() const { return Answered::no; }

  // Abandons the command in flight and the connection: the next command reconnects.
  virtual void drop() = 0;

  virtual bool uses_tls() const { return false; }

  // What the user configured, the same before and after a fail-over; never a password.
  virtual std::string label() const = 0;
  // The server that is asked now or was asked last: for messages.
  virtual std::string node() const = 0;
  // Of a quorum's member: whether it has accepted any connection of this process. Before that it is
  // sent nothing but set-up, and commands whose reply nobody reads.
  virtual bool was_accepted() const { return true; }
  // Whether `text` contains the password that is used there.
  virtual bool contains_secret(std::string_view text) const = 0;

 private:
  friend class LinkUse;
  bool in_use_ = false;
};

// The one request that uses a link, for as long as that request lives: the next one would abandon
// it. Debug builds check it.
class LinkUse {
 public:
  explicit LinkUse(Link& link) : link_(link) {
    assert(!link_.in_use_);
    link_.in_use_ = true;
  }
  ~LinkUse() { link_.in_use_ = false; }
  LinkUse(const LinkUse&) = delete;
  LinkUse& operator=(const LinkUse&) = delete;

 private:
  Link& link_;
};

// The call of a script, EVALSHA, with its text: EVAL.
inline std::vector<std::string> with_text(std::vector<std::string> words, std::string_view text) {
  words[0] = "EVAL";
  words[1] = text;
  return words;
}

// lock::LockStore::complete_grant() of a store over this link.
inline lock::InFlight<lock::GrantReach> grant_reach(const Link& link) {
  if (!link.fails_over()) return nullptr;
  return lock::ready<lock::GrantReach>(lock::GrantReach::one_master);
}

// The result of take_batch() for a batch that failed as a whole.
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
