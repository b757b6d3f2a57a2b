#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock/store.hpp"
#include "lua/scripts.hpp"
#include "redis/link/link.hpp"
#include "redis/link/server_error.hpp"
#include "redis/store/acl.hpp"
#include "redis/store/decode.hpp"

// One command in flight, whose reply is decoded at its end: the stores of all formats consist of
// these.
namespace rlock::redis {

// Positions in the words of EVALSHA and EVAL.
inline constexpr size_t kCommand = 0;
inline constexpr size_t kScript = 1;

bool is_noscript(const redisReply& reply);

// Whether the server is no master any more, or cannot be one now.
bool is_demoted(const redisReply& reply);

// Whether a script's reply is `wakes REPLY owner event…`: the server lets scripts push only to
// declared keys, so that these wakes are still to be pushed.
bool has_wakes(const redisReply& reply);

// The script call that pushes the wakes in `reply`, the reply to the script call `words`.
std::vector<std::string> wake_call(const std::vector<std::string>& words, const redisReply& reply);

// `cannot WHAT: …`
Error with_action(const std::string& what, Error error);

// The Error for an error reply to `script`, or to another command where that is null.
Error refusal(const Link& link, const std::string& what, std::string_view text,
              const lua::Script* script);
Error unexpected_reply(const Link& link, const std::string& what);

// final: releases and cancellations. Where a majority decides without this server, nobody waits for
// its NOSCRIPT any more, so the text of the script is sent along unless the server has just said
// that it knows the script. following: as of Link::follow().
enum class Delivery { normal, final, following };

// `script` may be null; else its text is sent once if the server does not know the digest (after a
// restart or SCRIPT FLUSH).
template <class T>
class Call final : public lock::Reply<T> {
 public:
  using Decode = std::optional<T> (*)(const redisReply&, const std::string& context);

  Call(Link& link, std::vector<std::string> words, std::string what, Decode decode,
       std::string context, const lua::Script* script, Delivery delivery = Delivery::normal)
      : link_(link),
        words_(std::move(words)),
        what_(std::move(what)),
        decode_(decode),
        context_(std::move(context)),
        script_(script),
        unsent_text_(script) {
    if (delivery == Delivery::final && link_.is_quorum_member()) {
      start_final();
    } else if (delivery == Delivery::following) {
      link_.follow(words_);
    } else {
      link_.start(words_);
    }
  }

  ~Call() override {
    if (!done_) link_.drop();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void wants(std::vector<pollfd>& out) const override { link_.wants(out); }
  TimePoint due() const override { return link_.due(); }
  Answered answered() const override { return link_.answered(); }

  bool advance(TimePoint now) override {
    while (!done_ && link_.advance(now)) {
      auto reply = link_.take();
      if (reply && unsent_text_ != nullptr && is_noscript(**reply)) {
        send_text();
        continue;
      }
      done_ = reply_ != nullptr || !reply || !has_unpushed_wakes(**reply);
      keep(std::move(reply));
      if (!done_) push_wakes();
    }
    return done_;
  }

  bool finish_reading(TimePoint) override {
    if (!done_ && link_.settle()) {
      keep(link_.take());
      done_ = true;
    }
    return done_;
  }

  Result<T> take() override {
    if (!reply_) return with_action(what_, std::move(error_));
    if (is_error(*reply_)) return refusal(link_, what_, text_of(*reply_), script_);
    const redisReply& raw = has_unpushed_wakes(*reply_) ? *reply_->element[1] : *reply_;
    std::optional<T> value = decode_(raw, context_);
    if (!value) return unexpected_reply(link_, what_);
    return std::move(*value);
  }

 private:
  // Only the first reply counts; a second one answers the wakes, which are mere hints.
  void keep(Result<ReplyPtr> reply) {
    if (reply_) return;
    if (!reply) {
      error_ = std::move(reply).error();
      return;
    }
    if (is_demoted(**reply)) link_.drop();
    reply_ = std::move(*reply);
  }

  bool has_unpushed_wakes(const redisReply& reply) const {
    return script_ != nullptr && has_wakes(reply);
  }

  void push_wakes() {
    words_ = wake_call(words_, *reply_);
    unsent_text_ = &lua::wake;
    link_.start(words_);
  }

  // The server may only get to read this when we have hung up. Over an idle connection it then
  // still reads a command of any length. Over a new one it notices the hang-up when it answers the
  // handshake and has read 16 kB by then: enough for the digest, but not for a whole text.
  void start_final() {
    if (!link_.is_open()) {
      link_.start(words_);
      link_.pipeline(with_text());
    } else if (link_.knows_final_script()) {
      link_.start(words_);
    } else {
      send_text();
    }
  }

  std::vector<std::string> with_text() const {
    std::vector<std::string> words = words_;
    words[kCommand] = "EVAL";
    words[kScript] = unsent_text_->text;
    return words;
  }

  void send_text() {
    words_ = with_text();
    unsent_text_ = nullptr;
    link_.start(words_);
  }

  Link& link_;
  std::vector<std::string> words_;
  std::string what_;
  Decode decode_;
  std::string context_;
  const lua::Script* script_;
  const lua::Script* unsent_text_;  // null once it was sent
  bool done_ = false;
  ReplyPtr reply_;
  Error error_;
};

// A call whose decoded reply `read` converts to a reply of the lock.
template <class Raw, class T>
class ConvertedCall final : public lock::Reply<T> {
 public:
  using Read = std::function<Result<T>(Raw&)>;

  ConvertedCall(std::unique_ptr<Call<Raw>> call, Read read)
      : call_(std::move(call)), read_(std::move(read)) {}
  void wants(std::vector<pollfd>& out) const override { call_->wants(out); }
  TimePoint due() const override { return call_->due(); }
  bool advance(TimePoint now) override { return call_->advance(now); }
  Answered answered() const override { return call_->answered(); }
  bool finish_reading(TimePoint now) override { return call_->finish_reading(now); }
  Result<T> take() override {
    TRY(auto raw, call_->take());
    return read_(raw);
  }

 private:
  std::unique_ptr<Call<Raw>> call_;
  Read read_;
};

// Adapts a decoder that needs no context.
template <class T, std::optional<T> (*decode)(const redisReply&)>
std::optional<T> without_context(const redisReply& reply, const std::string&) {
  return decode(reply);
}

inline std::string action_on(const char* verb, const lock::LockName& name) {
  return std::string(verb) + " \"" + name.text() + "\"";
}

}  // namespace rlock::redis
