#include "redis/link/sentinel.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "redis/link/reply.hpp"

namespace rlock::redis {
namespace {

// The reply is {host, port}, or nil for an unknown master.
std::optional<HostPort> address_in(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2) return std::nullopt;
  const std::string_view host = text_of(*reply.element[0]);
  auto port = parse_port(text_of(*reply.element[1]));
  if (host.empty() || !port) return std::nullopt;
  return HostPort{std::string(host), *port};
}

Error unknown_master(const Connection& sentinel, const std::string& master) {
  return {ErrorKind::unavailable,
          "sentinel " + sentinel.label() + " does not know a master \"" + master + "\"",
          Retry::later};
}

// A reply that comes later than this after the question to the sentinels is believed only if they
// still name the same master. A fail-over takes longer, and a round trip rarely does.
constexpr Millis kVoteLife{100};

}  // namespace

std::optional<HostPort> elect(const std::vector<SentinelVote>& votes) {
  const auto abstaining = std::count_if(votes.begin(), votes.end(), [](const auto& vote) {
    return std::holds_alternative<UnknownMaster>(vote);
  });
  for (const SentinelVote& candidate : votes) {
    const auto* master = std::get_if<HostPort>(&candidate);
    if (master == nullptr) continue;
    const auto count = std::count_if(votes.begin(), votes.end(), [&](const auto& vote) {
      const auto* other = std::get_if<HostPort>(&vote);
      return other != nullptr && *other == *master;
    });
    if (2 * count > static_cast<std::ptrdiff_t>(votes.size()) - abstaining) return *master;
  }
  return std::nullopt;
}

Sentinels::Sentinels(std::vector<Server> sentinels, std::string master)
    : votes_(sentinels.size()),
      master_(std::move(master)),
      label_(joined_labels(sentinels) + "/" + master_),
      // The other half of the time is for the master itself.
      vote_timeout_(sentinels.front().connect_timeout / 2) {
  sentinels_.reserve(sentinels.size());
  for (Server& sentinel : sentinels) sentinels_.emplace_back(std::move(sentinel));
}

void Sentinels::start() {
  vote_deadline_.reset();
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    votes_[i] = NoAnswer{};
    sentinels_[i].start({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_});
  }
}

void Sentinels::wants(std::vector<pollfd>& out) const {
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i)) sentinels_[i].wants(out);
  }
}

TimePoint Sentinels::due() const {
  TimePoint earliest = vote_deadline_.value_or(TimePoint::min());
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i)) earliest = std::min(earliest, sentinels_[i].due());
  }
  return earliest;
}

bool Sentinels::advance(TimePoint now) {
  if (!vote_deadline_) vote_deadline_ = now + vote_timeout_;
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i) && sentinels_[i].advance(now)) votes_[i] = read_vote(sentinels_[i]);
  }
  return elect(votes_) || all_answered() || now >= *vote_deadline_;
}

SentinelVote Sentinels::read_vote(Connection& sentinel) const {
  auto reply = sentinel.take();
  if (!reply) return std::move(reply).error();
  if (auto master = address_in(**reply)) return *std::move(master);
  if ((*reply)->type == REDIS_REPLY_NIL) return UnknownMaster{};
  if (!is_error(**reply)) return unknown_master(sentinel, master_);
  Error error = decode_error(text_of(**reply));
  error.text = "sentinel " + sentinel.label() + ": " + redact(sentinel, std::move(error.text));
  error.retry = Retry::later;
  return error;
}

bool Sentinels::all_answered() const {
  return std::none_of(votes_.begin(), votes_.end(),
                      [](const auto& vote) { return std::holds_alternative<NoAnswer>(vote); });
}

Result<HostPort> Sentinels::take() {
  if (auto master = elect(votes_)) return *std::move(master);
  return no_majority();
}

void Sentinels::drop() {
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i)) sentinels_[i].drop();
  }
}

// A wrong password does not fix itself; everything else may be a fail-over in progress.
Error Sentinels::no_majority() const {
  std::optional<Error> why;
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    const auto* error = std::get_if<Error>(&votes_[i]);
    if (error != nullptr && error->kind == ErrorKind::denied) return *error;
    if (why) continue;
    if (error != nullptr) why = *error;
    if (std::holds_alternative<UnknownMaster>(votes_[i])) {
      why = unknown_master(sentinels_[i], master_);
    }
  }
  std::string text = "no majority of the sentinels " + label_ + " names a master";
  if (why) text += " (" + why->text + ")";
  return {ErrorKind::unavailable, std::move(text), Retry::later};
}

SentinelLink::SentinelLink(Sentinels sentinels, Server master)
    : sentinels_(std::move(sentinels)),
      master_(std::move(master)),
      database_(master_.db == 0 ? "" : "/" + std::to_string(master_.db)) {
  master_.role = Role::master;
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
