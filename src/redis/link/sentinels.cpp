#include "redis/link/sentinels.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "redis/link/server_error.hpp"

namespace rlock::redis {
namespace {

std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view()
                              : std::string_view(reply.str, static_cast<size_t>(reply.len));
}

// {host, port}; nullopt for a nil (no such master) and for whatever else.
std::optional<HostPort> address_in(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2) return std::nullopt;
  HostPort at{std::string(text_of(*reply.element[0])), 0};
  std::string_view digits = text_of(*reply.element[1]);
  std::from_chars(digits.data(), digits.data() + digits.size(), at.port);
  if (at.host.empty() || at.port < 1 || at.port > 65535) return std::nullopt;
  return at;
}

Error vote_error(const redisReply& reply, const Connection& sentinel, const std::string& master) {
  const std::string who = "sentinel " + sentinel.label();
  if (reply.type != REDIS_REPLY_ERROR) {
    return {ErrorKind::unavailable, who + " knows no master \"" + master + "\"", Retry::later};
  }
  Error error = decode_error(text_of(reply));
  return {error.kind, who + ": " + redact(sentinel, std::move(error.text)), Retry::later};
}

}  // namespace

Sentinels::Sentinels(std::vector<Server> sentinels, std::string master)
    : master_(std::move(master)),
      label_(joined_labels(sentinels) + "/" + master_),
      // The other half of the time is for the master itself.
      vote_timeout_(sentinels.front().connect_timeout / 2) {
  voters_.reserve(sentinels.size());
  for (Server& sentinel : sentinels) voters_.emplace_back(std::move(sentinel));
}

void Sentinels::start() {
  vote_deadline_.reset();
  elected_.reset();
  for (Voter& voter : voters_) {
    voter.vote.reset();
    voter.abstains = false;
    voter.error.reset();
    voter.asked = true;
    voter.connection.start({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_});
  }
}

void Sentinels::wants(std::vector<pollfd>& out) const {
  for (const Voter& voter : voters_) {
    if (voter.asked) voter.connection.wants(out);
  }
}

TimePoint Sentinels::due() const {
  TimePoint earliest = vote_deadline_.value_or(TimePoint::min());
  for (const Voter& voter : voters_) {
    if (voter.asked) earliest = std::min(earliest, voter.connection.due());
  }
  return earliest;
}

bool Sentinels::advance(TimePoint now) {
  if (!vote_deadline_) vote_deadline_ = now + vote_timeout_;
  for (Voter& voter : voters_) {
    if (voter.asked && voter.connection.advance(now)) read(voter);
  }
  elect();
  return elected_ || all_answered() || now >= *vote_deadline_;
}

void Sentinels::read(Voter& voter) {
  voter.asked = false;
  auto reply = voter.connection.take();
  if (!reply) {
    voter.error = std::move(reply).error();
    return;
  }
  voter.vote = address_in(**reply);
  voter.abstains = (*reply)->type == REDIS_REPLY_NIL;
  if (!voter.vote) voter.error = vote_error(**reply, voter.connection, master_);
}

void Sentinels::elect() {
  auto abstaining = std::count_if(voters_.begin(), voters_.end(),
                                  [](const Voter& voter) { return voter.abstains; });
  for (const Voter& candidate : voters_) {
    if (!candidate.vote) continue;
    auto votes = std::count_if(voters_.begin(), voters_.end(),
                               [&](const Voter& voter) { return voter.vote == candidate.vote; });
    if (is_majority(votes, voters_.size(), abstaining)) elected_ = candidate.vote;
  }
}

bool Sentinels::all_answered() const {
  return std::none_of(voters_.begin(), voters_.end(), [](const Voter& v) { return v.asked; });
}

Result<HostPort> Sentinels::take() {
  if (elected_) return *elected_;
  return no_majority();
}

void Sentinels::drop() {
  for (Voter& voter : voters_) {
    if (std::exchange(voter.asked, false)) voter.connection.drop();
  }
}

// A wrong password will not mend itself; everything else may be a fail-over under way.
Error Sentinels::no_majority() const {
  const Error* why = nullptr;
  for (const Voter& voter : voters_) {
    if (!voter.error) continue;
    if (voter.error->kind == ErrorKind::denied) return *voter.error;
    if (why == nullptr) why = &*voter.error;
  }
  std::string text = "no majority of the sentinels " + label_ + " names a master";
  if (why != nullptr) text += " (" + why->text + ")";
  return {ErrorKind::unavailable, std::move(text), Retry::later};
}

}  // namespace rlock::redis
