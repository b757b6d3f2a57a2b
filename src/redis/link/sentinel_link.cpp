#include "redis/link/sentinel_link.hpp"

#include <utility>

namespace rlock::redis {

SentinelLink::SentinelLink(Sentinels sentinels, Server master)
    : sentinels_(std::move(sentinels)),
      master_(std::move(master)),
      database_(master_.db == 0 ? "" : "/" + std::to_string(master_.db)) {
  master_.role = Role::master;
}

void SentinelLink::start(const std::vector<std::string>& words) {
  if (phase_ == SentinelPhase::asking || phase_ == SentinelPhase::talking) drop();
  words_ = words;
  batch_.clear();
  error_.reset();
  elected_ = false;
  sentinels_.start();
  phase_ = SentinelPhase::asking;
}

void SentinelLink::start_batch(Batch batch) {
  start({});
  batch_ = std::move(batch);
}

bool SentinelLink::advance(TimePoint now) {
  if (phase_ == SentinelPhase::asking && sentinels_.advance(now)) {
    auto master = sentinels_.take();
    if (master) {
      handle_elected(*std::move(master));
    } else {
      error_ = std::move(master).error();
      phase_ = SentinelPhase::ended;
    }
  }
  if (phase_ == SentinelPhase::talking && connection_->advance(now)) phase_ = SentinelPhase::ended;
  return phase_ == SentinelPhase::ended || phase_ == SentinelPhase::idle;
}

void SentinelLink::handle_elected(HostPort master) {
  bool same = connection_ && connection_->server().host == master.host &&
              connection_->server().port == master.port;
  if (!same) {
    master_.host = std::move(master.host);
    master_.port = master.port;
    connection_.emplace(master_);
  }
  if (batch_.empty()) {
    connection_->start(words_);
  } else {
    connection_->start_batch(batch_);
  }
  elected_ = true;
  phase_ = SentinelPhase::talking;
}

Result<ReplyPtr> SentinelLink::take() {
  phase_ = SentinelPhase::idle;
  if (error_) return *std::exchange(error_, std::nullopt);
  return connection_->take();
}

std::vector<Result<ReplyPtr>> SentinelLink::take_batch() {
  phase_ = SentinelPhase::idle;
  if (error_) return failed_batch(batch_.size(), *std::exchange(error_, std::nullopt));
  return connection_->take_batch();
}

void SentinelLink::wants(std::vector<pollfd>& out) const {
  if (phase_ == SentinelPhase::asking) sentinels_.wants(out);
  if (phase_ == SentinelPhase::talking) connection_->wants(out);
}

TimePoint SentinelLink::due() const {
  if (phase_ == SentinelPhase::asking) return sentinels_.due();
  if (phase_ == SentinelPhase::talking) return connection_->due();
  return phase_ == SentinelPhase::idle ? TimePoint::max() : TimePoint::min();
}

void SentinelLink::drop() {
  phase_ = SentinelPhase::idle;
  sentinels_.drop();
  if (connection_) connection_->drop();
}

}  // namespace rlock::redis
