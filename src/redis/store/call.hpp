#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock/store.hpp"
#include "lua/scripts.hpp"
#include "redis/link/link.hpp"
#include "redis/link/reply.hpp"
#include "redis/store/acl.hpp"
#include "redis/store/decode.hpp"
#include "util/text.hpp"

namespace rlock::redis {

// One command in flight, whose reply is decoded at the end. The stores of all formats are built
// from such calls.

bool is_noscript(const redisReply& reply);

// Whether the server is no longer a master, or cannot be one now.
bool is_demoted(const redisReply& reply);

// Whether a script's reply is `wakes REPLY owner event…`: this server lets scripts push only to
// declared keys, so the client has to push these wakes.
bool has_wakes(const redisReply& reply);

// The EVALSHA of a script.
std::vector<std::string> script_call(const lua::Script& script,
                                     const std::vector<std::string>& keys,
                                     const std::vector<std::string>& arguments);

// The script call that pushes the wakes in `reply`, the reply to the script call `words`.
std::vector<std::string> wake_call(const std::vector<std::string>& words, const redisReply& reply);

// `cannot WHAT: …`
Error with_action(const std::string& what, Error error);

// The Error for an error reply to `script`, which `words` called, or to a command without a script
// if `script` is null.
Error refusal(const Link& link, const std::string& what, std::string_view text,
              const lua::Script* script, const std::vector<std::string>& words);
Error unexpected_reply(const Link& link, const std::string& what);

// One command in flight, whatever its reply is decoded to.
class CallCore {
 public:
  CallCore(Link& link, std::vector<std::string> words, std::string what, const lua::Script* script,
           Delivery delivery);
  ~CallCore();
  CallCore(const CallCore&) = delete;
  CallCore& operator=(const CallCore&) = delete;

  // Like lock::Request.
  void wants(std::vector<pollfd>& out) const { link_.wants(out); }
  TimePoint due() const { return link_.due(); }
  Answered answered() const { return link_.answered(); }
  bool advance(TimePoint now);
  bool finish_reading();

  // Call once, after advance() has returned true. Returns an Error for an error reply, too. The
  // reply lives as long as this.
  Result<const redisReply*> take();
  // The Error for a reply that is not one of the script's.
  Error unexpected() const { return unexpected_reply(link_, what_); }

 private:
  // Only the first reply counts; a second one answers the wakes, which are only hints.
  void keep(Result<ReplyPtr> reply);
  bool has_unpushed_wakes(const redisReply& reply) const;
  void push_wakes();
  void send_text();

  Link& link_;
  const LinkUse use_;
  std::vector<std::string> words_;
  std::string what_;
  const lua::Script* script_;
  const lua::Script* unsent_text_;  // null once the text was sent
  bool done_ = false;
  ReplyPtr reply_;
  Error error_;
};

// `script` may be null. Otherwise its text is sent once if the server does not know the digest
// (after a restart or SCRIPT FLUSH).
template <class T>
class Call final : public lock::Reply<T> {
 public:
  // Returns nullopt if the reply is not one of the script's.
  using Decode = std::function<std::optional<Result<T>>(const redisReply&)>;

  Call(Link& link, std::vector<std::string> words, std::string what, Decode decode,
       const lua::Script* script = nullptr, Delivery delivery = Delivery::normal)
      : core_(link, std::move(words), std::move(what), script, delivery),
        decode_(std::move(decode)) {}

  void wants(std::vector<pollfd>& out) const override { core_.wants(out); }
  TimePoint due() const override { return core_.due(); }
  Answered answered() const override { return core_.answered(); }
  bool advance(TimePoint now) override { return core_.advance(now); }
  bool finish_reading(TimePoint) override { return core_.finish_reading(); }

  Result<T> take() override {
    TRY(const redisReply* reply, core_.take());
    std::optional<Result<T>> value = decode_(*reply);
    return value ? *std::move(value) : core_.unexpected();
  }

 private:
  CallCore core_;
  Decode decode_;
};

inline std::string action_on(const char* verb, const std::string& name) {
  return util::format("{} \"{}\"", verb, name);
}
inline std::string action_on(const char* verb, const lock::LockName& name) {
  return action_on(verb, name.text());
}

// One call of a batch.
struct CallItem {
  std::vector<std::string> words;  // EVALSHA, or a command without a script
  std::string what;                // for messages
};

// One script, or one command, for several locks in one batch, whatever the replies are decoded to.
class BatchCore {
 public:
  BatchCore(Link& link, std::vector<CallItem> items, const lua::Script* script);
  ~BatchCore();
  BatchCore(const BatchCore&) = delete;
  BatchCore& operator=(const BatchCore&) = delete;

  // Like lock::Request.
  void wants(std::vector<pollfd>& out) const { link_.wants(out); }
  TimePoint due() const { return done_ ? TimePoint::min() : link_.due(); }
  Answered answered() const { return link_.answered(); }
  bool advance(TimePoint now);

  // Call once, after advance() has returned true. For each item its reply, or an Error for an error
  // reply, too. Returns an Error as a whole if no server was reached.
  Result<std::vector<Result<ReplyPtr>>> take();
  // As CallCore::unexpected(), for the reply to item `i`.
  Error unexpected(size_t i) const { return unexpected_reply(link_, items_[i].what); }

 private:
  void send();
  void read(std::vector<Result<ReplyPtr>> replies);
  Result<ReplyPtr> checked(const CallItem& item, Result<ReplyPtr> reply);

  Link& link_;
  const LinkUse use_;
  std::vector<CallItem> items_;
  const lua::Script* script_;
  std::vector<size_t> open_;  // those without a reply so far
  int rounds_ = 0;
  bool done_ = false;
  std::vector<Result<ReplyPtr>> replies_;
  std::optional<Error> failure_;  // set if no server was reached
};

// `script` may be null.
template <class T>
class BatchCall final : public lock::Reply<std::vector<Result<T>>> {
 public:
  using Decode = std::function<std::optional<T>(const redisReply&)>;

  BatchCall(Link& link, std::vector<CallItem> items, const lua::Script* script, Decode decode)
      : core_(link, std::move(items), script), decode_(std::move(decode)) {}

  void wants(std::vector<pollfd>& out) const override { core_.wants(out); }
  TimePoint due() const override { return core_.due(); }
  Answered answered() const override { return core_.answered(); }
  bool advance(TimePoint now) override { return core_.advance(now); }

  Result<std::vector<Result<T>>> take() override {
    TRY(auto replies, core_.take());
    std::vector<Result<T>> results;
    for (size_t i = 0; i < replies.size(); ++i)
      results.push_back(decoded(i, std::move(replies[i])));
    return results;
  }

 private:
  Result<T> decoded(size_t i, Result<ReplyPtr> reply) const {
    if (!reply) return std::move(reply).error();
    std::optional<T> value = decode_(**reply);
    if (!value) return core_.unexpected(i);
    return *std::move(value);
  }

  BatchCore core_;
  Decode decode_;
};

}  // namespace rlock::redis
