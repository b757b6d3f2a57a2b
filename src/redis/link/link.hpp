#pragma once

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock/store.hpp"
#include "redis/link/reply.hpp"
#include "redis/net/url.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"
#include "util/text.hpp"

namespace rlock::redis {

using Batch = std::vector<std::vector<std::string>>;  // commands, each a list of words

// How a command reaches the server.
//
// last_words: a release or a cancellation. If a majority decides without this server, no one waits
// for its reply, and rlock may have closed the connection before the server reads the command. From
// an idle connection the server reads the command to the end, whatever its length. On a new
// connection it answers the handshake first, notices that the peer is gone, and closes; by then it
// has read 16 kB, which is enough for the digest of a script, but not for the text. A server that
// does not know the digest, for example after a restart, could report that to no one. Therefore a
// member of a quorum gets the text over an idle connection, unless it has just reported that it
// knows the script, and over a new connection the digest followed by the text. The check of a
// member is not awaited either, because even a server that does not count may free a lock.
enum class Delivery {
  normal,
  following,  // over the connection that gave the last reply, or not at all
  last_words,
};

// Sends commands to the server that is responsible for them: a single server, the current master of
// a Sentinel group, or the node of a cluster that has the key. One batch is in flight at a time;
// start() and take() handle a batch of one command.
class Link {
 public:
  virtual ~Link() = default;

  // Sends the commands, all those for one server in one write. Abandons a batch that is still in
  // flight.
  virtual void start_batch(Batch batch) = 0;
  void start(const std::vector<std::string>& words) { start_batch({words}); }

  // Like start(), right after take(), with Delivery::following. If that connection is gone, the
  // command fails without being sent.
  virtual void follow(const std::vector<std::string>& words) = 0;

  // Like start(), with Delivery::last_words, for the EVALSHA of a script with this text.
  virtual void start_last_words(const std::vector<std::string>& words, std::string_view /*text*/) {
    start(words);
  }

  // Like lock::Request, for the batch in flight.
  virtual void wants(std::vector<pollfd>& out) const = 0;
  virtual TimePoint due() const = 0;
  virtual bool advance(TimePoint now) = 0;

  // Like lock::Request::finish_reading(): reads what has come and sends nothing. True if take() has
  // the replies.
  virtual bool settle() { return false; }

  // Call once, after advance() or settle() has returned true. Returns the reply to each command, in
  // order. An error reply of the server is a value (REDIS_REPLY_ERROR); a failed transport or
  // handshake is an Error.
  virtual std::vector<Result<ReplyPtr>> take_batch() = 0;
  Result<ReplyPtr> take() {
    auto replies = take_batch();
    if (replies.empty()) return Error{ErrorKind::internal, label() + ": no reply to take"};
    return std::move(replies.front());
  }

  // Whether a failover may make another server the master while this one still answers.
  virtual bool fails_over() const { return false; }
  // As lock::LockStore::check_failover(), for the server that gave the last reply.
  virtual lock::InFlight<Done> check_failover(Millis /*patience*/) { return nullptr; }

  // Whether the server may have carried out the last command: in at least one try the whole command
  // was handed to the network, and the answer was not an error. Valid until the next start().
  virtual bool may_have_arrived() const = 0;

  // Whether a server has answered since the command in flight was started.
  virtual Answered answered() const { return Answered::no; }

  // Abandons the command in flight and the connection: the next command reconnects.
  virtual void drop() = 0;

  virtual bool uses_tls() const { return false; }

  // The address that the user configured, the same before and after a failover; never a password.
  virtual std::string label() const = 0;
  // The server of the current or last request, for messages.
  virtual std::string node() const = 0;
  // The same: how to reach it.
  virtual const Server& node_server() const = 0;
  // For a member of a quorum: whether it has accepted any connection of this process. Until then
  // rlock sends it only the set-up, and commands whose reply is not read.
  virtual bool was_accepted() const { return true; }
  // Whether `text` contains the password for this server.
  virtual bool contains_secret(std::string_view text) const = 0;

 private:
  friend class LinkUse;
  bool in_use_ = false;
};

// The one request that uses a link, during its lifetime; the next request would abandon it. Debug
// builds check that.
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

// Makes EVAL, with the text of the script, from its EVALSHA.
inline std::vector<std::string> with_text(std::vector<std::string> words, std::string_view text) {
  words[0] = "EVAL";
  words[1] = text;
  return words;
}

// One of `parts` of a connect timeout, but enough to be tried at all.
inline Millis part_of(Millis connect_timeout, int parts) {
  return std::max(Millis(1), connect_timeout / parts);
}

// lock::LockStore::complete_grant() for a store over this link.
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

// A server's error text, safe for a message: some servers and proxies quote the command that they
// received. `ERR, and a text that contains the password`.
inline std::string redact(const Link& link, const std::string& text) {
  if (!link.contains_secret(text)) return text;
  const std::string_view code = std::string_view(text).substr(0, text.find(' '));
  const bool shown = !code.empty() && !link.contains_secret(code) &&
                     code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == code.npos;
  return util::format("{} that contains the password",
                      shown ? util::format("{}, and a text", code) : "an error message");
}

}  // namespace rlock::redis
