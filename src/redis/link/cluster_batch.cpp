#include "redis/link/cluster_batch.hpp"

#include <utility>

namespace rlock::redis {
namespace {

constexpr size_t kMostPlaces = 4096;

// The first key of a script call.
std::string key_of(const std::vector<std::string>& words) {
  constexpr size_t kFirstKey = 3;
  return words.size() > kFirstKey ? words[kFirstKey] : "";
}

}  // namespace

ClusterBatch::ClusterBatch(Batch commands, KeyPlaces& places)
    : places_(places), open_(commands.size()) {
  if (places_.size() > kMostPlaces) places_.clear();
  replies_ = failed_batch(commands.size(), Error{ErrorKind::internal, "not sent"});
  for (auto& words : commands) {
    std::string key = key_of(words);
    commands_.push_back({std::move(words), std::move(key)});
  }
}

std::optional<HostPort> ClusterBatch::place_of(const Command& command) const {
  if (command.ask) return command.at;
  auto place = places_.find(command.key);
  return place == places_.end() ? std::nullopt : std::optional(place->second);
}

std::optional<HostPort> ClusterBatch::choose_group() {
  group_.clear();
  std::optional<HostPort> node;
  for (size_t i = 0; i < commands_.size(); ++i) {
    if (!commands_[i].open) continue;
    auto place = place_of(commands_[i]);
    if (group_.empty()) node = place;
    if (place == node) group_.push_back(i);
  }
  return node;
}

Batch ClusterBatch::group() const {
  Batch out;
  for (size_t i : group_) {
    if (commands_[i].ask) out.push_back({"ASKING"});
    out.push_back(commands_[i].words);
  }
  return out;
}

void ClusterBatch::take_group(std::vector<Result<ReplyPtr>> replies, const HostPort& from,
                              bool redirects) {
  size_t next = 0;
  for (size_t i : group_) {
    Command& command = commands_[i];
    if (command.ask) ++next;
    if (next >= replies.size()) return;
    Result<ReplyPtr>& reply = replies[next++];
    if (redirects && reply && redirect(command, **reply, from)) continue;
    if (!command.ask && reply && !is_error(**reply)) places_[command.key] = from;
    close(i, std::move(reply));
  }
}

bool ClusterBatch::redirect(Command& command, const redisReply& reply, const HostPort& from) {
  auto redirect = is_error(reply) ? redirect_in(text_of(reply)) : std::nullopt;
  if (!redirect) return false;
  if (redirect->to.host.empty()) redirect->to.host = from.host;
  command.ask = redirect->kind == Redirect::Kind::ask;
  command.at = redirect->to;
  if (!command.ask) places_[command.key] = redirect->to;
  return true;
}

void ClusterBatch::forget_node(const HostPort& node) {
  std::erase_if(places_, [&](const auto& place) { return place.second == node; });
  for (Command& command : commands_) command.ask = command.ask && !(command.at == node);
}

void ClusterBatch::fail_group(const Error& why) {
  for (size_t i : group_) close(i, why);
}

void ClusterBatch::close(size_t index, Result<ReplyPtr> reply) {
  replies_[index] = std::move(reply);
  commands_[index].open = false;
  --open_;
}

}  // namespace rlock::redis
