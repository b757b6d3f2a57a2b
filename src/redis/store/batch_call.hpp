#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "redis/store/call.hpp"

namespace rlock::redis {

// One script for several locks at once, in one batch.
template <class T>
class BatchCall final : public lock::Reply<std::vector<Result<T>>> {
 public:
  struct Item {
    std::vector<std::string> words;  // EVALSHA
    std::string what;                // for messages
  };
  using Decode = std::function<std::optional<T>(const redisReply&)>;

  BatchCall(Link& link, std::vector<Item> items, const lua::Script& script, Decode decode)
      : link_(link),
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
    if (failure_) return *failure_;
    return std::move(results_);
  }

 private:
  // Each round brings the text of the script to one more node of a cluster.
  static constexpr int kMostRounds = 64;

  void send() {
    Batch batch;
    for (size_t i : open_) batch.push_back(items_[i].words);
    if (rounds_ > 0) {
      batch.front()[kCommand] = "EVAL";
      batch.front()[kScript] = script_.text;
    }
    ++rounds_;
    link_.start_batch(std::move(batch));
  }

  void read(std::vector<Result<ReplyPtr>> replies) {
    std::vector<size_t> without_script;
    size_t failed = 0;
    for (size_t i = 0; i < open_.size(); ++i) {
      Result<ReplyPtr>& reply = replies[i];
      if (!reply) ++failed;
      if (reply && is_noscript(**reply) && rounds_ < kMostRounds) {
        without_script.push_back(open_[i]);
      } else {
        results_[open_[i]] = result_of(items_[open_[i]].what, reply);
      }
    }
    if (failed == items_.size()) failure_ = replies.front().error();
    open_ = std::move(without_script);
    done_ = open_.empty();
    if (!done_) send();
  }

  Result<T> result_of(const std::string& what, const Result<ReplyPtr>& reply) {
    if (!reply) return with_action(what, reply.error());
    if (is_demoted(**reply)) link_.drop();
    if (is_error(**reply)) return refusal(link_, what, text_of(**reply), &script_);
    std::optional<T> value = decode_(**reply);
    if (!value) return unexpected_reply(link_, what);
    return *std::move(value);
  }

  Link& link_;
  std::vector<Item> items_;
  lua::Script script_;
  Decode decode_;
  std::vector<size_t> open_;  // without a reply so far
  int rounds_ = 0;
  bool done_ = false;
  std::vector<Result<T>> results_;
  std::optional<Error> failure_;  // no server was reached
};

}  // namespace rlock::redis
