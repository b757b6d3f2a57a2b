#include "cli/output/view.hpp"

#include <cstdint>
#include <sstream>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/output/json.hpp"
#include "cli/output/render.hpp"
#include "unit/cli_fixture.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::name;

namespace {

constexpr int64_t kSince = 1'795'229'580'007;

lock::Run ended(const char* how, const char* result, int64_t at = 0) {
  return {{1'763'690'000'123'456}, {kSince + at}, {kSince + at + 65'000}, how, result,
          test::holder().record};
}

lock::Skips skips(uint64_t count, int64_t at = 0) {
  return {count, {kSince + at}, {kSince + at + 2'000}, test::waiter().record};
}

std::string how(const char* how, const char* result) {
  HistoryEnd end = end_of(ended(how, result));
  return end.how + " " + (end.exit_code ? std::to_string(*end.exit_code) : "-") + " " +
         (end.signal ? std::to_string(*end.signal) : "-");
}

}  // namespace

TEST_CASE("a run's end is read from its parts") {
  CHECK(how("released", "exit:0") == "released 0 -");
  CHECK(how("released", "exit:255") == "released 255 -");
  CHECK(how("released", "signal:9") == "released - 9");
  CHECK(how("released", "-") == "released - -");
  CHECK(how("released", "max-run") == "max-run - -");
  CHECK(how("released", "lost") == "lost - -");
  CHECK(how("released", "no-guard") == "no-guard - -");
  CHECK(how("released", "stopped") == "stopped - -");
  CHECK(how("expired", "-") == "expired - -");
  CHECK(how("forced", "signal:15") == "broken - 15");
}

TEST_CASE("a history entry that no rlock wrote is unknown") {
  for (const char* strange : {"exit:", "exit:-1", "exit:256", "exit:7x", "exit:99999999999", "x"}) {
    CAPTURE(strange);
    CHECK(how("released", strange) == "released - -");
  }
}

TEST_CASE("the usual time of a run is the median of the successful ones") {
  auto took = [](int64_t ms, const char* how = "released", const char* result = "exit:0") {
    lock::Run row = ended(how, result);
    row.until.ms = row.since.ms + ms;
    return row;
  };
  CHECK_FALSE(usual_duration({}));
  CHECK_FALSE(usual_duration({skips(1), took(5, "released", "exit:1"), took(5, "expired", "-"),
                              took(5, "released", "-"), took(5, "forced", "exit:0"),
                              took(5, "released", "max-run")}));
  CHECK(usual_duration({took(7)}) == Millis(7));
  CHECK(usual_duration({took(10), took(20)}) == Millis(15));
  CHECK_FALSE(usual_duration({took(10), took(20)}, 3));
  CHECK(usual_duration({took(10), took(20), took(30)}, 3) == Millis(20));
  CHECK(usual_duration({took(900), skips(1), took(1), took(30), took(8, "expired", "-")}) ==
        Millis(30));
  lock::Run hostile = took(0);
  hostile.since = {INT64_MIN};
  hostile.until = {INT64_MAX};
  CHECK_FALSE(usual_duration({took(-1), hostile}));
}

TEST_CASE("history as JSON is exactly as documented") {
  History history = to_history(
      "nightly",
      {skips(1, 100'000), ended("released", "exit:7"), skips(2), ended("expired", "-", -90'000)},
      20);
  std::string text = history_json(name("nightly"), history);
  CHECK(text == test::golden("history.json", text));
  CHECK(nlohmann::json::parse(history_json(name("x"), {}))["skips"]["first"].is_null());
}

TEST_CASE("the history is a table of runs with the skipped runs between them") {
  History history = to_history(
      "x", {skips(1, 100'000), ended("released", "exit:7"), skips(2), ended("forced", "-")}, 20);
  CHECK(history_table(history, NameColumn::hidden, 80) ==
        "START                 FOR   END      WHO         COMMAND\n"
        "2026-11-21T02:54:40Z  -     1 skip   bob@web2    make test\n"
        "2026-11-21T02:53:00Z  1m5s  exit 7   alice@web1  make deploy\n"
        "2026-11-21T02:53:00Z  2s    2 skips  bob@web2    make test\n"
        "2026-11-21T02:53:00Z  1m5s  broken   alice@web1  make deploy\n");
}

TEST_CASE("a run that died may have run until the end of its lease") {
  auto died = [](int64_t renewed_after, int64_t ttl) {
    lock::Run run = ended("expired", "-");
    run.renewed.ms = kSince + renewed_after;
    run.until.ms = run.renewed.ms + ttl;
    return history_table(to_history("x", {run}, 20), NameColumn::hidden, 80);
  };
  CHECK(died(0, 30'000).find("Z  <30s  expired") != std::string::npos);
  CHECK(died(20'000, 30'000).find("Z  <50s  expired") != std::string::npos);
  CHECK(died(INT64_MIN, INT64_MAX).find("expired") != std::string::npos);
}

TEST_CASE("the rows of the table are sorted by START, whichever run ended last") {
  const History history = to_history("x",
                                     {ended("released", "exit:1", -20'000), skips(2, 5'000),
                                      ended("released", "exit:2", -10'000), skips(1, -15'000)},
                                     20);
  std::vector<std::string> ends;
  for (const HistoryLine& row : by_start(history)) {
    ends.push_back(row.run ? row.run->result : std::to_string(row.skips->count) + " skips");
  }
  CHECK(ends == std::vector<std::string>{"2 skips", "exit:2", "1 skips", "exit:1"});
}

TEST_CASE("skipped runs that found their work done, or were superseded, are named so") {
  lock::Skips all = skips(3);
  all.done = 3;
  lock::Skips some = skips(3);
  some.done = 1;
  some.superseded = 2;
  History history = to_history("x", {all, ended("released", "exit:0"), some}, 20);
  const std::string table = history_table(history, NameColumn::hidden, 100);
  CHECK(table.find("  -     3 found it done  -           make test") != std::string::npos);
  CHECK(table.find("[2 superseded] [1 found it done] make test") != std::string::npos);
}

TEST_CASE("a closure is shown until the lock was opened, or was closed anew") {
  auto closing = [](int64_t at, int64_t until) {
    return lock::Closing{{kSince + at}, {until == 0 ? 0 : kSince + until}, {}};
  };
  const History history = to_history("x",
                                     {closing(700'000, 760'000), closing(604'000, 0),
                                      closing(600'000, 4'200'000), closing(60'000, 3'660'000)},
                                     20);
  const std::string table = history_table(history, NameColumn::hidden, 80);
  std::istringstream lines(table);
  std::vector<std::string> shown;
  for (std::string line; std::getline(lines, line);) shown.push_back(line.substr(22, 12));
  CHECK(shown == std::vector<std::string>{"FOR  END    ", "1m   closed ", "-    opened ",
                                          "4s   closed ", "9m   closed "});
  const History two = {{"a", {}, {}, closing(0, 60'000)}, {"b", {}, {}, closing(10'000, 0)}};
  CHECK(history_table(two, NameColumn::shown, 80).find("  1m   closed") != std::string::npos);
}
