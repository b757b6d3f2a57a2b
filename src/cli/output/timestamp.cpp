#include "cli/output/timestamp.hpp"

#include <time.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace rlock::cli {

std::string rfc3339(lock::ServerTime time) {
  constexpr int64_t kYear10000 = 253'402'300'800'000;
  if (time.ms <= 0 || time.ms >= kYear10000) return {};
  const time_t seconds = time.ms / 1000;
  tm utc{};
  if (gmtime_r(&seconds, &utc) == nullptr) return {};
  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(time.ms % 1000));
  return text;
}

std::string local_time(lock::ServerTime time, lock::ServerTime now) {
  if (rfc3339(time).empty()) return {};
  const time_t seconds = time.ms / 1000;
  const time_t today = now.ms / 1000;
  tm then{};
  tm current{};
  tzset();
  if (localtime_r(&seconds, &then) == nullptr || localtime_r(&today, &current) == nullptr)
    return {};
  const bool same_day = then.tm_year == current.tm_year && then.tm_yday == current.tm_yday;
  char text[40];
  return {text, strftime(text, sizeof text, same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then)};
}

lock::ServerTime wall_clock() {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Millis>(since_1970).count()};
}

}  // namespace rlock::cli
