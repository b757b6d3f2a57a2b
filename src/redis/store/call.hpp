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

// `script` may be null. Otherwise its text is sent once if the server does not know the digest
// (after a restart or SCRIPT FLUSH).
template <class T>
class Call final : public lock::Reply<T> {
 public:
  // Returns nullopt if the reply is not one of the script's.
  using Decode = std::function<std::optional<Result<T>>(const redisReply&)>;

  Call(Link& link, std::vector<std::string> words, std::string what, Decode decode,
       const lua::Script* script = nullptr, Delivery delivery = Delivery::normal)
      : link_(link),
        use_(link),
        words_(std::move(words)),
        what_(std::move(what)),
        decode_(std::move(decode)),
        script_(script),
        unsent_text_(script) {
    if (delivery == Delivery::last_words) {
      link_.start_last_words(words_, script_->text);
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
    if (is_error(*reply_)) return refusal(link_, what_, text_of(*reply_), script_, words_);
    const redisReply& raw = has_unpushed_wakes(*reply_) ? *reply_->element[1] : *reply_;
    std::optional<Result<T>> value = decode_(raw);
    if (!value) return unexpected_reply(link_, what_);
    return std::move(*value);
  }

 private:
  // Only the first reply counts; a second one answers the wakes, which are only hints.
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

  void send_text() {
    words_ = with_text(std::move(words_), unsent_text_->text);
    unsent_text_ = nullptr;
    link_.start(words_);
  }

  Link& link_;
  const LinkUse use_;
  std::vector<std::string> words_;
  std::string what_;
  Decode decode_;
  const lua::Script* script_;
  const lua::Script* unsent_text_;  // null once the text was sent
  bool done_ = false;
  ReplyPtr reply_;
  Error error_;
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

// One script, or one command, for several locks in one batch. `script` may be null.
template <class T>
class BatchCall final : public lock::Reply<std::vector<Result<T>>> {
 public:
  using Decode = std::function<std::optional<T>(const redisReply&)>;

  BatchCall(Link& link, std::vector<CallItem> items, const lua::Script* script, Decode decode)
      : link_(link),
        use_(link),
        items_(std::move(items)),
        script_(script),
        decode_(std::move(decode)),
        results_(items_.size(), Result<T>(Error{})) {
    for (size_t i = 0; i < items_.size(); ++i) open_.push_back(i);
    done_ = open_.empty();
    if (!done_) send();
  }

  ~BatchCall() override {
    if (!done_) link_.drop();
  }
  BatchCall(const BatchCall&) = delete;
  BatchCall& operator=(const BatchCall&) = delete;

  void wants(std::vector<pollfd>& out) const override { link_.wants(out); }
  TimePoint due() const override { return done_ ? TimePoint::min() : link_.due(); }
  Answered answered() const override { return link_.answered(); }

  bool advance(TimePoint now) override {
    while (!done_ && link_.advance(now)) read(link_.take_batch());
    return done_;
  }

  Result<std::vector<Result<T>>> take() override {
    if (failure_) return with_action("read the locks", *failure_);
    return std::move(results_);
  }

 private:
  // Each round brings the text of the script to one more node of a cluster.
  static constexpr int kMostRounds = 64;

  void send() {
    Batch batch;
    for (size_t i : open_) batch.push_back(items_[i].words);
    if (rounds_ > 0) batch.front() = with_text(std::move(batch.front()), script_->text);
    ++rounds_;
    link_.start_batch(std::move(batch));
  }

  void read(std::vector<Result<ReplyPtr>> replies) {
    std::vector<size_t> without_script;
    size_t failed = 0;
    for (size_t i = 0; i < open_.size(); ++i) {
      Result<ReplyPtr>& reply = replies[i];
      if (!reply) ++failed;
      if (reply && script_ != nullptr && is_noscript(**reply) && rounds_ < kMostRounds) {
        without_script.push_back(open_[i]);
      } else {
        results_[open_[i]] = result_of(items_[open_[i]], reply);
      }
    }
    if (failed == items_.size()) failure_ = replies.front().error();
    open_ = std::move(without_script);
    done_ = open_.empty();
    if (!done_) send();
  }

  Result<T> result_of(const CallItem& item, const Result<ReplyPtr>& reply) {
    if (!reply) return with_action(item.what, reply.error());
    if (is_demoted(**reply)) link_.drop();
    if (is_error(**reply)) {
      return refusal(link_, item.what, text_of(**reply), script_, item.words);
    }
    std::optional<T> value = decode_(**reply);
    if (!value) return unexpected_reply(link_, item.what);
    return *std::move(value);
  }

  Link& link_;
  const LinkUse use_;
  std::vector<CallItem> items_;
  const lua::Script* script_;
  Decode decode_;
  std::vector<size_t> open_;  // those without a reply so far
  int rounds_ = 0;
  bool done_ = false;
  std::vector<Result<T>> results_;
  std::optional<Error> failure_;  // set if no server was reached
};

}  // namespace rlock::redis
