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
#include "redis/acl.hpp"
#include "redis/decode.hpp"
#include "redis/link.hpp"
#include "redis/server_error.hpp"
#include "redis/wake_call.hpp"

// What the stores of every format are made of: one command in flight, decoded at its end.
namespace rlock::redis {

// Where EVALSHA has the digest and EVAL the text.
inline constexpr size_t kCommand = 0;
inline constexpr size_t kScript = 1;

inline bool is_noscript(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR &&
         std::string_view(reply.str, reply.len).starts_with("NOSCRIPT");
}

// Whoever answers so is no master any more, or cannot be one now. (L34, L44)
inline bool is_demoted(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return false;
  std::string_view text(reply.str, reply.len);
  for (std::string_view sign : {"READONLY", "UNBLOCKED", "MASTERDOWN"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

// for_good: what gives back. Where others may decide without this server nobody is there any more
// when it says that it lacks the script: the text goes along.
enum class Purpose { usual, for_good };

// One command in flight on the store's link, decoded at its end. `script` may be null; else
// its text is sent once where the server does not know the digest (a restart, SCRIPT FLUSH: L42).
template <class T>
class Call final : public lock::Reply<T> {
 public:
  using Decode = std::optional<T> (*)(const redisReply&, const std::string& context);

  Call(Link& link, std::vector<std::string> words, std::string what, Decode decode,
       std::string context, const lua::Script* script, Purpose purpose = Purpose::usual)
      : link_(link),
        words_(std::move(words)),
        what_(std::move(what)),
        decode_(decode),
        context_(std::move(context)),
        script_(script),
        unsent_text_(script) {
    if (purpose == Purpose::for_good && link_.may_be_left()) {
      start_for_good();
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
  util::TimePoint due() const override { return link_.due(); }
  util::Answered answered() const override { return link_.answered(); }

  bool advance(util::TimePoint now) override {
    while (!done_ && link_.advance(now)) {
      auto reply = link_.take();
      if (reply && unsent_text_ != nullptr && is_noscript(**reply)) {
        send_text();
        continue;
      }
      done_ = reply_ != nullptr || !reply || !left_wakes(**reply);
      keep(std::move(reply));
      if (!done_) push_wakes();
    }
    return done_;
  }

  bool settled(util::TimePoint) override {
    if (!done_ && link_.settle()) {
      keep(link_.take());
      done_ = true;
    }
    return done_;
  }

  util::Result<T> take() override {
    if (!reply_) return about_call(std::move(error_));
    if (reply_->type == REDIS_REPLY_ERROR) {
      return about_call(named(refusal({reply_->str, reply_->len})));
    }
    const redisReply& told = left_wakes(*reply_) ? *reply_->element[1] : *reply_;
    std::optional<T> value = decode_(told, context_);
    if (!value) {
      return about_call(
          named({util::ErrorKind::unavailable, "a reply that no rlock script gives"}));
    }
    return std::move(*value);
  }

 private:
  // The first reply is the one that counts; another is that to the wakes, which are hints.
  void keep(util::Result<ReplyPtr> reply) {
    if (reply_) return;
    if (!reply) {
      error_ = std::move(reply).error();
      return;
    }
    if (is_demoted(**reply)) link_.drop();
    reply_ = std::move(*reply);
  }

  bool left_wakes(const redisReply& reply) const { return script_ != nullptr && has_wakes(reply); }

  void push_wakes() {
    words_ = wake_call(words_, *reply_);
    unsent_text_ = &lua::wake;
    link_.start(words_);
  }

  // A server that comes to its senses when we are gone reads a command of any length over a quiet
  // connection. Over a fresh one it notices that once it has answered the set-up, and has read 16
  // kB by then: less than a text, but enough for the digest.
  void start_for_good() {
    if (link_.is_open()) return send_text();
    link_.start(words_);
    link_.follow(with_text());
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
  util::Error refusal(std::string_view text) const {
    util::Error error = decode_error(text);
    const bool of_command =
        error.kind == util::ErrorKind::denied || error.kind == util::ErrorKind::config;
    if (!of_command || script_ == nullptr) return error;
    if (std::string command = command_at(text, script_->text); !command.empty()) {
      error.text += ": " + command;
    }
    return error;
  }

  // The transport's errors name the server themselves, a reply does not.
  util::Error named(util::Error error) const {
    error.text = link_.node() + ": " + tellable(link_, std::move(error.text));
    error.answered = util::Answered::yes;
    return error;
  }

  util::Error about_call(util::Error error) const {
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
  util::Error error_;
};

// A call whose reply `read` puts in the words of the lock.
template <class Told, class T>
class Asked final : public lock::Reply<T> {
 public:
  using Read = std::function<util::Result<T>(Told&)>;

  Asked(std::unique_ptr<Call<Told>> call, Read read)
      : call_(std::move(call)), read_(std::move(read)) {}
  void wants(std::vector<pollfd>& out) const override { call_->wants(out); }
  util::TimePoint due() const override { return call_->due(); }
  bool advance(util::TimePoint now) override { return call_->advance(now); }
  util::Answered answered() const override { return call_->answered(); }
  bool settled(util::TimePoint now) override { return call_->settled(now); }
  util::Result<T> take() override {
    auto told = call_->take();
    if (!told) return std::move(told).error();
    return read_(*told);
  }

 private:
  std::unique_ptr<Call<Told>> call_;
  Read read_;
};

// Adapts a decoder that needs no context.
template <class T, std::optional<T> (*decode)(const redisReply&)>
std::optional<T> without_context(const redisReply& reply, const std::string&) {
  return decode(reply);
}

inline std::string about(const char* verb, const lock::LockName& name) {
  return std::string(verb) + " \"" + name.text() + "\"";
}

}  // namespace rlock::redis
