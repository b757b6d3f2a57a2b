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
#include "redis/store/wake_call.hpp"

// What the stores of every format are made of: one command in flight, decoded at its end.
namespace rlock::redis {

// Where EVALSHA has the digest and EVAL the text.
inline constexpr size_t kCommand = 0;
inline constexpr size_t kScript = 1;

inline bool is_noscript(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR &&
         std::string_view(reply.str, reply.len).starts_with("NOSCRIPT");
}

// Whoever answers so is no master any more, or cannot be one now.
inline bool is_demoted(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return false;
  std::string_view text(reply.str, reply.len);
  for (std::string_view sign : {"READONLY", "UNBLOCKED", "MASTERDOWN"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

// final: what gives back. Where others may decide without this server nobody is there any more
// when it says that it lacks the script: the text goes along.
enum class Delivery { normal, final };

// One command in flight on the store's link, decoded at its end. `script` may be null; else
// its text is sent once where the server does not know the digest (a restart, SCRIPT FLUSH).
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
    if (!reply_) return with_action(std::move(error_));
    if (reply_->type == REDIS_REPLY_ERROR) {
      return with_action(with_server(script_error({reply_->str, reply_->len})));
    }
    const redisReply& raw = has_unpushed_wakes(*reply_) ? *reply_->element[1] : *reply_;
    std::optional<T> value = decode_(raw, context_);
    if (!value) {
      return with_action(
          with_server({ErrorKind::unavailable, "a reply that no rlock script gives"}));
    }
    return std::move(*value);
  }

 private:
  // The first reply is the one that counts; another is that to the wakes, which are hints.
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

  // A server that comes to its senses when we are gone reads a command of any length over a quiet
  // connection. Over a fresh one it notices that once it has answered the set-up, and has read 16
  // kB by then: less than a text, but enough for the digest.
  void start_final() {
    if (link_.is_open()) return send_text();
    link_.start(words_);
    link_.pipeline(with_text());
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

  // Which command of a script an ACL denies, or the server lacks, it does not always say.
  Error script_error(std::string_view text) const {
    Error error = decode_error(text);
    const bool of_command = error.kind == ErrorKind::denied || error.kind == ErrorKind::config;
    if (!of_command || script_ == nullptr) return error;
    if (std::string command = command_at(text, script_->text); !command.empty()) {
      error.text += ": " + command;
    }
    return error;
  }

  // The transport's errors name the server themselves, a reply does not.
  Error with_server(Error error) const {
    error.text = link_.node() + ": " + redact(link_, std::move(error.text));
    error.answered = Answered::yes;
    return error;
  }

  Error with_action(Error error) const {
    error.text = "cannot " + what_ + ": " + error.text;
    return error;
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

// A call whose reply `read` puts in the words of the lock.
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
