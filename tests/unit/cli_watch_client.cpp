#include <doctest/doctest.h>

#include <map>

#include "cli/watch/client.hpp"
#include "unit/cli_fixture.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

constexpr TimePoint kFirstLook{std::chrono::hours(1)};

// Counts what it is asked, and answers at once: all locks are held.
class CountingInspector final : public lock::LockInspector {
 public:
  lock::InFlight<lock::ForceReply> force_unlock(const lock::ForceCall&) override { return nullptr; }
  lock::InFlight<lock::Snapshot> inspect(const lock::InspectCall&) override { return nullptr; }
  lock::InFlight<std::vector<Result<lock::Snapshot>>> inspect_all(
      const std::vector<lock::InspectCall>& calls) override {
    ++batches;
    std::vector<Result<lock::Snapshot>> all;
    for (const lock::InspectCall& call : calls) {
      asked.push_back(call);
      ++looks[call.name.text()];
      all.emplace_back(test::snapshot({test::holder()}, 1));
    }
    largest = std::max(largest, calls.size());
    return reply<std::vector<Result<lock::Snapshot>>>(std::move(all));
  }
  lock::InFlight<std::vector<lock::HistoryRow>> history(const lock::LockName&, uint64_t) override {
    ++others;
    return reply<std::vector<lock::HistoryRow>>({});
  }
  lock::InFlight<lock::NamesPage> list_names(const std::string&) override {
    ++others;
    lock::NamesPage page;
    page.in_use = page.names = names;
    return reply(page);
  }
  std::string server() const override { return "fake:6379"; }

  template <class T>
  lock::InFlight<T> reply(T value) {
    if (failure) return std::make_unique<lock::ReadyReply<T>>(*failure);
    return std::make_unique<lock::ReadyReply<T>>(std::move(value));
  }

  std::vector<std::string> names;
  std::optional<Error> failure;
  int batches = 0, others = 0;
  size_t largest = 0;
  std::vector<lock::InspectCall> asked;
  std::map<std::string, int> looks;
};

std::vector<std::string> names_of(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("job-" + std::to_string(1000 + i));
  return names;
}

// Runs the client for so long; the time moves to when it is due.
void run_for(WatchClient& client, TimePoint& now, Millis time, const OnScreen& screen = {}) {
  const TimePoint end = now + time;
  while (now < end) {
    client.start_due(now, screen);
    if (client.in_flight() == nullptr) {
      now = std::max(now + Millis(1), std::min(client.due(), end));
      continue;
    }
    client.finish(now);
  }
}

}  // namespace

TEST_CASE("beyond 20 locks it is four, a batch has at most 100, and each lock has its turn") {
  CountingInspector server;
  server.names = names_of(450);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kFirstLook;
  OnScreen screen;
  screen.visible = {"job-1000", "job-1449"};
  run_for(client, now, Millis(50'000), screen);
  CHECK(server.largest == 100);
  CHECK(server.batches + server.others <= 204);
  CHECK(server.looks["job-1449"] >= 49);
  for (const std::string& name : server.names) CHECK(server.looks[name] >= 9);
}

TEST_CASE("only the lock that is opened has its waiters read") {
  CountingInspector server;
  server.names = names_of(3);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kFirstLook;
  OnScreen screen;
  screen.opened = "job-1001";
  screen.waiters = 128;
  run_for(client, now, Millis(5000), screen);
  for (const lock::InspectCall& call : server.asked) {
    CHECK(call.waiters_page == (call.name.text() == "job-1001" ? 128 : 0));
  }
}

TEST_CASE("an outage is reported with its beginning, tried more and more rarely, and ends") {
  CountingInspector server;
  server.names = names_of(2);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kFirstLook;
  run_for(client, now, Millis(10'000));
  const int before = server.batches + server.others;
  server.failure = Error{ErrorKind::unavailable, "refused", Retry::later};
  run_for(client, now, Millis(60'000));
  REQUIRE(client.server().outage);
  CHECK(client.server().outage->why.text == "refused");
  CHECK(now - client.server().outage->since >= Millis(59'000));
  CHECK(server.batches + server.others - before <= 14);
  CHECK(model.shown().size() == 2);
  server.failure.reset();
  run_for(client, now, Millis(8001));
  CHECK_FALSE(client.server().outage);
}
