#include "redis/link/voting.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "lock/quorum/quorum.hpp"
#include "lock/timing.hpp"
#include "redis/link/info.hpp"
#include "util/clock.hpp"
#include "util/duration.hpp"
#include "util/number.hpp"

namespace rlock::redis {

static_assert(std::chrono::seconds(kRestartGuardSeconds) == timing::kLongestQuorumLease,
              "a shorter time lets a server count that lost a lease, a longer one helps nobody");

namespace {

// A server measures its uptime by its wall clock: negative where that was set back since it
// started.
std::optional<uint64_t> uptime_in(const InfoFields& info) {
  auto seconds = util::parse_number<int64_t>(info_field(info, "uptime_in_seconds"));
  if (!seconds) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(0, *seconds));
}

std::optional<Error> check_duplicate(const InfoFields& info, const Server& server) {
  const std::string run_id = info_field(info, "run_id");
  if (run_id.empty() || server.members == nullptr) return std::nullopt;
  auto other = server.members->add_member(server.label(), run_id);
  if (!other) return std::nullopt;
  return Error{ErrorKind::usage, server.label() + " is the same server as " + *other +
                                     "; a quorum needs independent servers"};
}

std::optional<Error> check_uptime(const InfoFields& info, const Server& server) {
  auto uptime = uptime_in(info);
  if (!uptime) {
    return Error{
        ErrorKind::denied,
        server.label() + " is not counted: its uptime is unknown (INFO denied or incomplete)"};
  }
  if (*uptime >= kRestartGuardSeconds) return std::nullopt;
  // The uptime is rounded down to whole seconds, so this is late enough. Rounded up again, servers
  // that started together have the same text.
  const int64_t counted = wall_seconds() + static_cast<int64_t>(kRestartGuardSeconds - *uptime);
  const std::string latest = util::format_utc((counted + 9) / 10 * 10);
  return Error{ErrorKind::unavailable,
               server.label() + ": not counted until it has run for " +
                   std::to_string(kRestartGuardSeconds) + " s, at the latest by " + latest +
                   ", because it may have lost locks",
               Retry::later};
}

}  // namespace

std::optional<std::string> MemberRegistry::add_member(const std::string& label,
                                                      const std::string& run_id) {
  std::lock_guard lock(mutex_);
  for (const auto& [other, its_id] : run_ids_) {
    if (other != label && its_id == run_id) return other;
  }
  run_ids_[label] = run_id;
  return std::nullopt;
}

void AppendOnly::read(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY) return;
  for (size_t i = 0; i + 1 < reply.elements; i += 2) {
    std::string_view key = text_of(*reply.element[i]);
    std::string_view value = text_of(*reply.element[i + 1]);
    if (key == "appendonly") enabled = value == "yes";
    if (key == "appendfsync") syncs_always = value == "always";
  }
}

std::optional<Error> check_member(const redisReply& reply, Durability durability,
                                  const Server& server) {
  const InfoFields info = read_info(text_of(reply));
  if (auto duplicate = check_duplicate(info, server)) return duplicate;
  if (durability == Durability::every_write) return std::nullopt;
  return check_uptime(info, server);
}

}  // namespace rlock::redis
