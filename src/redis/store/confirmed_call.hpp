#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "redis/store/call.hpp"

namespace rlock::redis {

// What replicas have to confirm, and in what time.
struct Confirmation {
  uint64_t replicas;
  Millis within;
  std::string what;  // `renew "nightly"`
  const char* done;  // `renewed`
};

inline std::optional<int64_t> decode_count(const redisReply& reply) {
  return reply.type == REDIS_REPLY_INTEGER ? std::optional<int64_t>(reply.integer) : std::nullopt;
}

// A call whose reply counts once replicas have confirmed what it wrote: WAIT follows a reply that
// `needs_it`, over the same connection. `unconfirmed` makes the result where they have not.
template <class T>
class ConfirmedCall final : public lock::Reply<T> {
 public:
  using NeedsIt = bool (*)(const T&);
  using Unconfirmed = Result<T> (*)(T reply, Error why);

  ConfirmedCall(Link& link, std::unique_ptr<Call<T>> call, Confirmation confirmation,
                NeedsIt needs_it, Unconfirmed unconfirmed)
      : link_(link),
        call_(std::move(call)),
        confirmation_(std::move(confirmation)),
        needs_it_(needs_it),
        unconfirmed_(unconfirmed) {}

  void wants(std::vector<pollfd>& out) const override { current().wants(out); }
  TimePoint due() const override { return current().due(); }
  Answered answered() const override { return wait_ ? Answered::yes : call_->answered(); }

  bool advance(TimePoint now) override {
    if (reply_ && !wait_) return true;
    if (!reply_) {
      if (!call_->advance(now)) return false;
      reply_.emplace(call_->take());
      if (!*reply_ || !needs_it_(**reply_)) return true;
      wait_ = std::make_unique<Call<int64_t>>(
          link_,
          std::vector<std::string>{"WAIT", std::to_string(confirmation_.replicas),
                                   std::to_string(confirmation_.within.count())},
          confirmation_.what, decode_count, nullptr, Delivery::following);
    }
    return wait_->advance(now);
  }

  Result<T> take() override {
    if (!wait_) return *std::move(reply_);
    auto count = wait_->take();
    if (count && *count >= static_cast<int64_t>(confirmation_.replicas)) return *std::move(reply_);
    Error why = count ? too_few(*count) : std::move(count).error();
    why.answered = Answered::yes;
    // An ACL that denies WAIT, or a server without it, will not change its mind.
    if (why.retry == Retry::never) return why;
    return unconfirmed_(**std::move(reply_), std::move(why));
  }

 private:
  const lock::Request& current() const {
    return wait_ ? static_cast<const lock::Request&>(*wait_) : *call_;
  }

  Error too_few(int64_t count) const {
    return with_action(
        confirmation_.what,
        {ErrorKind::unavailable,
         link_.node() + ": " + confirmation_.done + ", but " + std::to_string(count) + " of " +
             std::to_string(confirmation_.replicas) + " replicas confirmed it",
         Retry::later});
  }

  Link& link_;
  std::unique_ptr<Call<T>> call_;
  std::unique_ptr<Call<int64_t>> wait_;
  Confirmation confirmation_;
  NeedsIt needs_it_;
  Unconfirmed unconfirmed_;
  std::optional<Result<T>> reply_;
};

}  // namespace rlock::redis
