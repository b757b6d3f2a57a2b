#include "redis/link/sentinels.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "redis/link/server_error.hpp"

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
  elected_.reset();
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
  elected_ = elect(votes_);
  return elected_ || all_answered() || now >= *vote_deadline_;
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
  if (elected_) return *elected_;
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

}  // namespace rlock::redis
