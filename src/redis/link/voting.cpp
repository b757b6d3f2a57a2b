#include "redis/link/voting.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "lock/quorum/quorum.hpp"
#include "lock/timing.hpp"
#include "redis/link/member_registry.hpp"

namespace rlock::redis {

static_assert(std::chrono::seconds(kRestartGuardSeconds) == timing::kLongestQuorumLease,
              "a shorter one lets a server vote that forgot a lease, a longer one helps nobody");

namespace {

std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view()
                              : std::string_view(reply.str, static_cast<size_t>(reply.len));
}

// What follows `field` on its line of INFO; empty where there is no such line.
std::string_view value_in(std::string_view info, std::string_view field) {
  size_t at = info.find(field);
  if (at == info.npos) return {};
  std::string_view rest = info.substr(at + field.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}

// The server counts by its wall clock: less than nothing where that was set back since.
std::optional<uint64_t> uptime_in(std::string_view info) {
  std::string_view digits = value_in(info, "\nuptime_in_seconds:");
  int64_t seconds = 0;
  auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  if (error != std::errc()) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(0, seconds));
}

std::optional<Error> check_duplicate(std::string_view info, const Server& server) {
  std::string run_id(value_in(info, "\nrun_id:"));
  if (run_id.empty() || server.members == nullptr) return std::nullopt;
  auto other = server.members->add_member(server.label(), run_id);
  if (!other) return std::nullopt;
  return Error{ErrorKind::usage, server.label() + " is the same server as " + *other +
                                     ": a quorum needs independent ones"};
}

// `07:12:33 UTC`, so many seconds from now.
std::string clock_in(uint64_t seconds) {
  time_t then = time(nullptr) + static_cast<time_t>(seconds);
  tm utc{};
  char text[32] = "";
  if (gmtime_r(&then, &utc) != nullptr) strftime(text, sizeof text, "%H:%M:%S UTC", &utc);
  return text;
}

}  // namespace

bool writes_synchronously(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY) return false;
  bool on = false;
  bool always = false;
  for (size_t i = 0; i + 1 < reply.elements; i += 2) {
    std::string_view key = text_of(*reply.element[i]);
    std::string_view value = text_of(*reply.element[i + 1]);
    if (key == "appendonly") on = value == "yes";
    if (key == "appendfsync") always = value == "always";
  }
  return on && always;
}

std::optional<Error> check_vote(const redisReply& info, bool synchronous, const Server& server) {
  if (auto twice = check_duplicate(text_of(info), server)) return twice;
  if (synchronous) return std::nullopt;
  auto uptime = uptime_in(text_of(info));
  if (!uptime) {
    return Error{ErrorKind::denied,
                 server.label() + ": does not vote: it does not say since when it runs (INFO)"};
  }
  if (*uptime >= kRestartGuardSeconds) return std::nullopt;
  // Whole seconds are told: the last of them counts in full.
  uint64_t left = kRestartGuardSeconds - *uptime;
  return Error{ErrorKind::unavailable,
               server.label() + ": does not vote until " + clock_in(left) + ": it started " +
                   std::to_string(*uptime) + " s ago by its clock and may have forgotten leases",
               Retry::later};
}

}  // namespace rlock::redis
