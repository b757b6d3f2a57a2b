#pragma once

#include <string>

#include "lock/types.hpp"

namespace rlock::cli {

// RFC 3339, UTC, milliseconds: `2026-11-21T02:53:00.123Z`. Empty for 0 (unknown) and for years
// outside 1970-9999, which only a broken or hostile server sends.
std::string rfc3339(lock::ServerTime time);

// By the time zone of this host: `03:00:02`, and on another day than `now` `2026-11-21 03:00:02`.
// Empty as for rfc3339().
std::string local_time(lock::ServerTime time, lock::ServerTime now);

// This host's clock: for output to people, never for deadlines.
lock::ServerTime wall_clock();

}  // namespace rlock::cli
