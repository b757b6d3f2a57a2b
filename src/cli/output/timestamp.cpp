#include "cli/output/timestamp.hpp"

#include <chrono>
#include <cstdint>

#include "util/duration.hpp"

namespace rlock::cli {

std::string utc_time(lock::ServerTime time) {
  return util::format_utc(time.ms / 1000);
}

std::string rfc3339(lock::ServerTime time) {
  std::string text = utc_time(time);
  if (text.empty()) return text;
  text.back() = '.';
  return text + std::to_string(1000 + time.ms % 1000).substr(1) + "Z";
}

std::string age_and_time(lock::ServerTime time, lock::ServerTime now) {
  const std::string at = utc_time(time);
  if (at.empty()) return at;
  if (now.ms <= 0) return "at " + at;
  const Millis age{now.ms - time.ms};
  const bool recent = age < std::chrono::seconds(1);  // or our clock is behind the server's
  return (recent ? "just now" : util::format_rough_duration(age) + " ago") + ", at " + at;
}

lock::ServerTime wall_clock() {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Millis>(since_1970).count()};
}

}  // namespace rlock::cli
