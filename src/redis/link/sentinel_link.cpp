#include "redis/link/sentinel_link.hpp"

#include <algorithm>
#include <utility>

namespace rlock::redis {
namespace {

// A reply that comes later than this after the question to the sentinels is believed only if they
// still name the same master. A fail-over takes longer, and a round trip rarely does.
constexpr Millis kVoteLife{100};

}  // namespace

SentinelLink::SentinelLink(Sentinels sentinels, Server master)
    : sentinels_(std::move(sentinels)),
      master_(std::move(master)),
      database_(master_.db == 0 ? "" : "/" + std::to_string(master_.db)) {
  master_.role = Role::master;
}

void SentinelLink::start(const std::vector<std::string>& words) {
  start_batch({words});
}

void SentinelLink::start_batch(Batch batch) {
  if (phase_ != SentinelPhase::idle && phase_ != SentinelPhase::ended) drop();
  batch_ = std::move(batch);
  replies_.clear();
  elected_ = false;
  asked_.reset();
  sentinels_.start();
  phase_ = SentinelPhase::asking;
}

// The sentinels are asked again only before a late reply is believed.
void SentinelLink::follow(const std::vector<std::string>& words) {
  batch_ = {words};
  replies_.clear();
  connection_->follow(words);
  phase_ = SentinelPhase::talking;
}

bool SentinelLink::advance(TimePoint now) {
  if (!asked_) asked_ = now;
  if (phase_ == SentinelPhase::asking && sentinels_.advance(now)) {
    auto master = sentinels_.take();
    if (master) {
      handle_elected(*std::move(master));
    } else {
      end(std::move(master).error());
    }
  }
  if (phase_ == SentinelPhase::talking && connection_->advance(now)) handle_replies(now);
  if (phase_ == SentinelPhase::confirming && sentinels_.advance(now)) {
    handle_confirmed(sentinels_.take());
  }
  return phase_ == SentinelPhase::ended || phase_ == SentinelPhase::idle;
}

bool SentinelLink::is_master(const HostPort& address) const {
  return connection_ && connection_->server().host == address.host &&
         connection_->server().port == address.port;
}

void SentinelLink::handle_elected(HostPort master) {
  if (!is_master(master)) {
    master_.host = std::move(master.host);
    master_.port = master.port;
    connection_.emplace(master_);
  }
  connection_->start_batch(batch_);
  elected_ = true;
  phase_ = SentinelPhase::talking;
}

void SentinelLink::handle_replies(TimePoint now) {
  replies_ = connection_->take_batch();
  phase_ = SentinelPhase::ended;
  const bool failed =
      std::none_of(replies_.begin(), replies_.end(), [](const auto& reply) { return bool(reply); });
  if (failed || now - *asked_ < kVoteLife) return;
  sentinels_.start();
  phase_ = SentinelPhase::confirming;
}

void SentinelLink::handle_confirmed(const Result<HostPort>& master) {
  if (!master) return end(master.error());
  if (is_master(*master)) {
    phase_ = SentinelPhase::ended;
    return;
  }
  end({ErrorKind::unavailable,
       connection_->node() + " answered after the sentinels had replaced it as the master",
       Retry::later});
}

void SentinelLink::end(Error why) {
  replies_ = failed_batch(batch_.size(), why);
  phase_ = SentinelPhase::ended;
}

Result<ReplyPtr> SentinelLink::take() {
  return std::move(take_batch().front());
}

std::vector<Result<ReplyPtr>> SentinelLink::take_batch() {
  phase_ = SentinelPhase::idle;
  return std::exchange(replies_, {});
}

void SentinelLink::wants(std::vector<pollfd>& out) const {
  if (is_voting()) sentinels_.wants(out);
  if (phase_ == SentinelPhase::talking) connection_->wants(out);
}

TimePoint SentinelLink::due() const {
  if (is_voting()) return sentinels_.due();
  if (phase_ == SentinelPhase::talking) return connection_->due();
  return phase_ == SentinelPhase::idle ? TimePoint::max() : TimePoint::min();
}

void SentinelLink::drop() {
  phase_ = SentinelPhase::idle;
  sentinels_.drop();
  if (connection_) connection_->drop();
}

}  // namespace rlock::redis
