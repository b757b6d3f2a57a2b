#pragma once

#include <string>

#include "lock/types.hpp"

// Every time that rlock shows is in UTC. All are empty for 0 (unknown) and for years outside
// 1970-9999, which only a broken or hostile server sends.
namespace rlock::cli {

// For programs, in RFC 3339 with milliseconds: `2026-11-21T02:53:00.123Z`.
std::string rfc3339(lock::ServerTime time);

// For people, rounded down to the second: `2026-11-21T02:53:00Z`.
std::string utc_time(lock::ServerTime time);

// `40m ago, at 2026-11-21T02:53:00Z`; without the age where `now` is unknown.
std::string age_and_time(lock::ServerTime time, lock::ServerTime now);

// This host's clock: for output to people, never for deadlines.
lock::ServerTime wall_clock();

}  // namespace rlock::cli
