// The settings of --once, --once-per and --once-within.
#include "cli/settings/run_settings.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/output/messages.hpp"
#include "unit/cli_config.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

// Sets the time zone for as long as it lives.
class HostZone {
 public:
  explicit HostZone(const char* name) {
    const char* before = std::getenv("TZ");
    if (before != nullptr) before_ = before;
    setenv("TZ", name, 1);
  }
  HostZone(const HostZone&) = delete;
  HostZone& operator=(const HostZone&) = delete;
  ~HostZone() {
    if (before_) {
      setenv("TZ", before_->c_str(), 1);
    } else {
      unsetenv("TZ");
    }
    tzset();
  }

 private:
  std::optional<std::string> before_;
};

// Rules in full, so that no files of time zones are needed.
constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";
constexpr const char* kKiritimati = "<+14>-14";

// 2026-03-29, 00:59:59 UTC: the last second of winter time in Berlin.
constexpr time_t kSpring = 1'774'745'999;
// 2026-10-25, 00:59:59 UTC: the last second of summer time there.
constexpr time_t kAutumn = 1'792'889'999;
constexpr time_t kHour = 3'600;
constexpr time_t kDay = 24 * kHour;

lock::Once once_with(const test::Words& options, time_t now = kSpring) {
  auto once = once_choice(test::run_call(options).choices, now);
  if (!once) FAIL(once.error().text);
  REQUIRE(*once);
  return **once;
}

std::string period_text(const char* word, time_t now) {
  return once_with({"--once-per", word}, now).key;
}

}  // namespace

TEST_CASE("a day begins at midnight of the host") {
  const time_t evening = kSpring - 2 * kHour;  // 2026-03-28, 22:59:59 UTC
  {
    const HostZone zone("UTC0");
    CHECK(period_text("day", evening) == "day:2026-03-28");
    CHECK(period_text("day", evening + kHour + 1) == "day:2026-03-29");
  }
  {
    const HostZone zone(kBerlin);
    CHECK(period_text("day", evening) == "day:2026-03-28");
    CHECK(period_text("day", evening + 1) == "day:2026-03-29");
  }
  const HostZone zone(kKiritimati);
  CHECK(period_text("day", evening) == "day:2026-03-29");
  CHECK(period_text("month", kSpring + 2 * kDay) == "month:2026-03");
  CHECK(period_text("month", kSpring + 2 * kDay + 10 * kHour) == "month:2026-04");
}

TEST_CASE("a day of 25 hours is one day, and one of 23 hours is one") {
  const HostZone zone(kBerlin);
  const time_t autumn_begins = kAutumn + 1 - 3 * kHour;  // 2026-10-25, 00:00 local time
  CHECK(period_text("day", autumn_begins - 1) == "day:2026-10-24");
  CHECK(period_text("day", autumn_begins) == "day:2026-10-25");
  CHECK(period_text("day", autumn_begins + 25 * kHour - 1) == "day:2026-10-25");
  CHECK(period_text("day", autumn_begins + 25 * kHour) == "day:2026-10-26");
  const time_t spring_begins = kSpring + 1 - 2 * kHour;
  CHECK(period_text("day", spring_begins + 23 * kHour - 1) == "day:2026-03-29");
  CHECK(period_text("day", spring_begins + 23 * kHour) == "day:2026-03-30");
}

TEST_CASE("summer time repeats no hour and no minute, and skips none") {
  const HostZone zone(kBerlin);
  CHECK(period_text("hour", kAutumn) == "hour:2026-10-25T00Z");
  CHECK(period_text("hour", kAutumn + 1) == "hour:2026-10-25T01Z");
  CHECK(period_text("minute", kAutumn) == "minute:2026-10-25T00:59Z");
  CHECK(period_text("minute", kAutumn + 1) == "minute:2026-10-25T01:00Z");
}

TEST_CASE("a week is that of ISO 8601, from Monday, and belongs to the year of its Thursday") {
  const HostZone zone("UTC0");
  const time_t sunday = kSpring + 12 * kHour;
  CHECK(period_text("week", sunday) == "week:2026-W13");
  CHECK(period_text("week", sunday + kDay) == "week:2026-W14");
  const time_t new_year = 1'798'761'600;  // 2027-01-01, a Friday
  CHECK(period_text("week", new_year) == "week:2026-W53");
  CHECK(period_text("week", new_year + 3 * kDay) == "week:2027-W01");
}

TEST_CASE("a part of a day begins at midnight in UTC, whatever the time zone") {
  const HostZone zone("XYZ-5:45");
  CHECK(period_text("15m", kSpring) == "15m:2026-03-29T00:45Z");
  CHECK(period_text("15m", kSpring + 1) == "15m:2026-03-29T01:00Z");
  CHECK(period_text("6h", kSpring) == "6h:2026-03-29T00:00Z");
  CHECK(period_text("6h", kSpring - kHour) == "6h:2026-03-28T18:00Z");
  CHECK(period_text("360m", kSpring) == period_text("6h", kSpring));
  CHECK(period_text("60m", kSpring) == period_text("hour", kSpring));
  CHECK(period_text("60", kSpring) == period_text("minute", kSpring));
  CHECK(once_with({"--once-per", "6h"}).span == Millis(6 * 3'600'000));
}

// The offset is compared at the instant at which the other host asked: neither change of the clock
// is a difference.
TEST_CASE("hosts in one time zone agree across both changes of the clock, and others are warned") {
  const lock::Once day{lock::OnceKind::period, "day:2026-03-29", Millis(0), {}};
  auto warning = [&](time_t asked, const char* there, const char* here) {
    lock::AlreadyDone done;
    {
      const HostZone zone(there);
      Record record;
      record.host = "web3";
      record.asked = local_time(asked);
      done.record = encode_record(record);
    }
    const HostZone zone(here);
    return zone_warning(done, day);
  };
  for (time_t change : {kSpring + 1, kAutumn + 1}) {
    const bool spring = change < kAutumn;
    for (time_t asked = change - 30 * kHour; asked <= change + 30 * kHour; asked += kHour / 2) {
      CAPTURE(asked);
      CHECK(warning(asked, kBerlin, kBerlin).empty());
      const bool summer = (asked >= change) == spring;
      CHECK(warning(asked, "CET-1", kBerlin).empty() == !summer);
      CHECK_FALSE(warning(asked, "UTC0", kBerlin).empty());
    }
  }
  CHECK(warning(kSpring, kBerlin, "UTC0") ==
        "; warning: web3 has another time zone (UTC+01:00, here UTC+00:00), so the hosts do not "
        "mean the same day: give all of them one time zone");
  CHECK(zone_warning({}, day).empty());
}

TEST_CASE("a local time is read as it was written") {
  for (const char* name : {"UTC0", kBerlin, kKiritimati, "<-03:30>3:30"}) {
    const HostZone zone(name);
    const auto read = parse_local_time(local_time(kSpring));
    REQUIRE(read);
    CHECK(read->seconds == kSpring);
  }
  for (const char* text : {"", "2026-11-27", "2026-11-27T03:00:00Z", "2026-11-27T03:00:00+01:0x"}) {
    CHECK_FALSE(parse_local_time(text));
  }
}

TEST_CASE("--once, --once-per and --once-within give key, period and distance") {
  using namespace std::chrono_literals;
  const HostZone zone(kBerlin);
  CHECK(once_with({"--once", "v 1=%"}) == lock::Once{lock::OnceKind::key, "v 1=%", {}, {}});
  CHECK(once_with({"--once-per", "day"}) ==
        lock::Once{lock::OnceKind::period, "day:2026-03-29", Millis(25h), {}});
  CHECK(once_with({"--once-per", "minute", "--max-failures", "3"}) ==
        lock::Once{lock::OnceKind::period, "minute:2026-03-29T00:59Z", Millis(1min), 3U});
  CHECK(once_with({"--once-within", "12h"}) ==
        lock::Once{lock::OnceKind::within, {}, Millis(12h), {}});
  CHECK(once_with({"--once-within", "366d"}).span == Millis(366 * 24h));
  auto none = once_choice(test::run_call().choices, kSpring);
  REQUIRE(none);
  CHECK_FALSE(*none);
}
