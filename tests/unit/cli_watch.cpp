#include <doctest/doctest.h>

#include <map>

#include "cli/watch/frame.hpp"
#include "cli/watch/screen.hpp"
#include "unit/cli_fixture.hpp"
#include "util/text.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::contains;

namespace {

constexpr TimePoint kStart{std::chrono::hours(1)};

LockView view(const std::string& name, lock::Snapshot snapshot) {
  return {name, std::move(snapshot)};
}

lock::NamesPage page(std::vector<std::string> names) {
  lock::NamesPage out;
  out.in_use = out.names = std::move(names);
  return out;
}

lock::HistoryRow run_of(Millis length, const std::string& result) {
  return lock::Run{{1}, {1'000'000}, {1'000'000 + length.count()}, "released", result};
}

WatchModel model_with(const std::vector<std::string>& names) {
  WatchModel model({});
  model.add(page(names));
  for (const std::string& name : names) {
    model.see(name, view(name, test::snapshot({test::holder()}, 2)), kStart);
  }
  return model;
}

std::vector<std::string> texts(const WatchModel& model, Cursor cursor, size_t columns, size_t rows,
                               TimePoint now = kStart + Millis(3000)) {
  static const ServerState kQuiet;
  FrameInput input{model, kQuiet};
  input.server = "db1:6379";
  input.cursor = std::move(cursor);
  input.columns = columns;
  input.rows = rows;
  input.now = now;
  std::vector<std::string> out;
  for (const Line& line : frame(input)) out.push_back(line.text);
  return out;
}

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
  lock::InFlight<lock::NamesPage> list_names(const std::string& cursor) override {
    ++others;
    if (!cursor.empty()) {
      return lock::ready<lock::NamesPage>(Error{ErrorKind::unavailable, "down", Retry::later});
    }
    lock::NamesPage page;
    page.in_use = page.names = names;
    page.cursor = dead_server;
    return reply(page);
  }
  std::string server() const override { return "fake:6379"; }

  template <class T>
  lock::InFlight<T> reply(T value) {
    if (failure) return std::make_unique<lock::ReadyReply<T>>(*failure);
    return std::make_unique<lock::ReadyReply<T>>(std::move(value));
  }

  std::vector<std::string> names;
  std::string dead_server;  // the cursor of one that is listed after the first; empty: none
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

TEST_CASE("two snapshots differ if state, holders or waiters differ, not merely elapsed time") {
  WatchModel model({});
  model.add(page({"nightly"}));
  auto first = model.see("nightly", view("nightly", test::snapshot({test::holder()}, 2)), kStart);
  REQUIRE(first);
  CHECK(first->kind == ChangeKind::seen);
  lock::Holder later = test::holder();
  later.held += Millis(1000);
  later.left = *later.left - Millis(1000);
  CHECK_FALSE(model.see("nightly", view("nightly", test::snapshot({later}, 2)), kStart));
  auto queued = model.see("nightly", view("nightly", test::snapshot({later}, 3)), kStart);
  REQUIRE(queued);
  CHECK(queued->fields == std::vector<std::string_view>{"waiters"});
  auto freed = model.see("nightly", view("nightly", test::snapshot({}, 0)), kStart);
  REQUIRE(freed);
  CHECK(freed->fields == std::vector<std::string_view>{"state", "holders", "waiters"});
}

TEST_CASE("a listed lock that stays free is dropped, but not a lock that the user named") {
  auto name = lock::LockName::parse("mine");
  REQUIRE(name);
  WatchModel model({{*name}, {"*"}});
  model.add(page({"other", "stale"}));
  for (const char* held : {"mine", "other"}) {
    model.see(held, view(held, test::snapshot({test::holder()}, 0)), kStart);
    model.see(held, view(held, test::snapshot({}, 0)), kStart);
  }
  CHECK_FALSE(model.see("stale", view("stale", test::snapshot({}, 0)), kStart));
  CHECK(model.drop_free(kStart + Millis(9000)).empty());
  auto gone = model.drop_free(kStart + Millis(11'000));
  REQUIRE(gone.size() == 1);
  CHECK(gone.front().name == "other");
  CHECK(table_names(model) == std::vector<std::string>{"mine"});
}

TEST_CASE("only names that are in use and fit a pattern are taken from the listing") {
  WatchModel model({{}, {"team/*"}});
  lock::NamesPage names = page({"team/a", "other"});
  names.names.push_back("team/idle");
  model.add(names);
  CHECK(model.locks().size() == 1);
  CHECK(model.find("team/a") != nullptr);
}

TEST_CASE("keys come whole, in pieces, or as an escape alone") {
  KeyReader reader;
  CHECK(reader.feed("jk\x1b[A\x1bOB\x1b[5~\x1b[1;5Aq") ==
        std::vector{Key::down, Key::up, Key::up, Key::down, Key::page_up, Key::quit});
  CHECK(reader.feed("\x1b").empty());
  CHECK(reader.is_pending());
  CHECK(reader.feed("[").empty());
  CHECK(reader.feed("B") == std::vector{Key::down});
  CHECK_FALSE(reader.is_pending());
  CHECK(reader.feed("\x1b").empty());
  CHECK(reader.flush() == std::vector{Key::back});
}

TEST_CASE("the cursor stays on its lock and on the screen") {
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  Cursor cursor = moved({}, Key::down, names, 2);
  CHECK(cursor.selected == "b");
  cursor = moved(cursor, Key::last, names, 2);
  CHECK(cursor.selected == "e");
  CHECK(cursor.top == 3);
  CHECK(settled(cursor, {"a", "b"}, 2).selected == "b");
  CHECK(settled(cursor, {"a", "b"}, 2).top == 0);
  CHECK(settled(cursor, names, 5).top == 0);
  cursor = moved(cursor, Key::enter, names, 2);
  CHECK(cursor.opened == "e");
  CHECK(moved(cursor, Key::down, names, 2).opened_top == 1);
  CHECK_FALSE(moved(cursor, Key::back, names, 2).opened);
}

TEST_CASE("the table shows holder, time, expected end, queue and age") {
  WatchModel model = model_with({"nightly"});
  model.learn("nightly", {run_of(Millis(180'000), "exit:0")});
  const auto lines = texts(model, {"nightly"}, 100, 10);
  CHECK(lines.size() == 10);
  CHECK(lines[0] == "1 lock, 2 waiting  db1:6379");
  CHECK(lines[2] == "  NAME     STATE  HELD BY     FOR   ENDS  WAIT  AGE  COMMAND");
  CHECK(contains(lines[3], "> nightly  held   alice@web1  2m3s  ~57s  2     3s   make deploy"));
  model.learn("nightly", {run_of(Millis(100'000), "exit:0")});
  CHECK(contains(texts(model, {"nightly"}, 100, 10)[3], "late 23s"));
}

TEST_CASE("every line fits, is printable and has its age, on a screen of any size") {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back("job-" + std::to_string(i + 10));
  WatchModel model = model_with(names);
  lock::Snapshot hostile = test::snapshot({test::hostile_holder()}, 3);
  hostile.waiters = {test::waiter()};
  hostile.waiters.front().record = test::hostile_holder().record;
  model.see("job-10", view("job-10", hostile), kStart);
  for (size_t columns : {20U, 33U, 80U, 300U}) {
    for (size_t rows : {1U, 4U, 24U, 60U}) {
      CAPTURE(columns);
      CAPTURE(rows);
      for (const Cursor& cursor : {Cursor{"job-10"}, Cursor{"job-10", 0, "job-10", 5}}) {
        const auto lines = texts(model, cursor, columns, rows);
        CHECK(lines.size() == rows);
        for (const std::string& line : lines) {
          CHECK(util::display_width(line) <= columns);
          CHECK(util::printable(line) == line);
        }
      }
    }
  }
  CHECK(texts(model, {"job-10"}, 20, 10)[2] == "  NAME   FOR  AGE");
  CHECK(texts(model, {"job-10"}, 20, 10)[4] == "  job-11 2m3s 3s");
}

TEST_CASE("an outage keeps the table and says since when and why") {
  const WatchModel model = model_with({"nightly"});
  ServerState state;
  state.outage =
      Outage{{ErrorKind::unavailable, "db1: \x1b[2J refused"}, kStart, kStart + Millis(14'000), 3};
  FrameInput input{model, state};
  input.cursor = {"nightly"};
  input.now = kStart + Millis(12'000);
  auto lines = frame(input);
  CHECK(lines[1].text == "no answer for 12s, next try in 2s: db1: \\x1b[2J refused");
  CHECK(lines[1].style == LineStyle::alarm);
  CHECK(contains(lines[3].text, "12s"));
  input.now = kStart + Millis(14'500);
  CHECK(frame(input)[1].text == "no answer for 14s, trying again: db1: \\x1b[2J refused");

  input.columns = 20;
  lines = frame(input);
  CHECK(lines[1].text == "no answer for 14s,");
  CHECK(lines[2].text == "trying again: db1:");
  CHECK(lines[3].text == "\\x1b[2J refused");
  CHECK(lines[4].text == "  NAME    FOR  AGE");
  CHECK(page_of(input) == 24 - 6);
  input.rows = 4;
  CHECK(contains(frame(input)[3].text, "q: quit"));
}

TEST_CASE("a silent server is noticed before its request times out, even without locks") {
  const WatchModel empty({});
  ServerState state{kStart, {}, {}};
  FrameInput input{empty, state};
  input.now = kStart + Millis(1900);
  CHECK(frame(input)[1].text.empty());
  input.now = kStart + Millis(2000);
  CHECK(frame(input)[1].text == "no answer for 2s");
  CHECK(frame(input)[1].style == LineStyle::alarm);
}

TEST_CASE("servers of a quorum that do not answer are named, even without locks") {
  const WatchModel empty({});
  ServerState state{kStart, {}, {{"db2", "db2: no answer yet"}}};
  FrameInput input{empty, state};
  input.now = kStart;
  CHECK(frame(input)[1].text == "1 server does not answer: db2: no answer yet");
  state.silent.push_back({"db3", "db3: Connection refused"});
  CHECK(frame(input)[1].text ==
        "2 servers do not answer: db2: no answer yet; db3: Connection refused");
}

TEST_CASE("only lines that differ are drawn, and colours only where they are wanted") {
  const std::vector<Line> before{{"one", LineStyle::title}, {"two"}};
  const std::vector<Line> after{{"one", LineStyle::title}, {"caf\xC3\xA9"}};
  CHECK(redrawn(before, after, {}) == "\x1b[2;1Hcaf\xC3\xA9\x1b[K");
  CHECK(contains(redrawn({}, after, {}), "\x1b[1mone\x1b[0m"));
  CHECK_FALSE(contains(redrawn({}, after, {true, false, true}), "m"));
  CHECK(redrawn({}, {{"caf\xC3\xA9"}, {""}}, {false, false, false}) == "caf?\n");
}

TEST_CASE("the terminal's abilities come from its environment") {
  auto plain = terminal_kind([](const char*) -> const char* { return nullptr; });
  CHECK_FALSE(plain.moves);
  CHECK_FALSE(plain.utf8);
  auto usual = terminal_kind([](const char* name) -> const char* {
    return std::string_view(name) == "TERM"   ? "xterm"
           : std::string_view(name) == "LANG" ? "de_DE.UTF-8"
                                              : nullptr;
  });
  CHECK(usual.moves);
  CHECK(usual.colours);
  CHECK(usual.utf8);
  auto grey = terminal_kind([](const char* name) -> const char* {
    return std::string_view(name) == "LC_ALL" ? "C" : "1";
  });
  CHECK(grey.moves);
  CHECK_FALSE(grey.colours);
  CHECK_FALSE(grey.utf8);
}

TEST_CASE("more than 20 locks are read in batches of at most 100, and each lock has its turn") {
  CountingInspector server;
  server.names = names_of(450);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kStart;
  OnScreen screen;
  screen.visible = {"job-1000", "job-1449"};
  run_for(client, now, Millis(50'000), screen);
  CHECK(server.largest == 100);
  CHECK(server.batches + server.others <= 204);
  CHECK(server.looks["job-1449"] >= 49);
  for (const std::string& name : server.names) CHECK(server.looks[name] >= 9);
}

TEST_CASE("a listing is complete when each of its locks has been read") {
  CountingInspector server;
  server.names = names_of(150);
  WatchModel model({});
  WatchClient client(server, model, {});
  CHECK_FALSE(client.is_complete());
  TimePoint now = kStart;
  while (model.locks().size() < server.names.size()) run_for(client, now, Millis(100));
  const size_t read = model.shown().size();
  CHECK(client.is_complete() == (read == server.names.size()));
  REQUIRE(read < server.names.size());
  run_for(client, now, Millis(5000));
  CHECK(client.is_complete());
}

TEST_CASE("a listing is complete although its last server does not answer") {
  CountingInspector server;
  server.names = names_of(1);
  server.dead_server = "db2:6379";
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kStart;
  run_for(client, now, Millis(5000));
  CHECK(client.is_complete());
  CHECK_FALSE(client.server().outage);
}

TEST_CASE("only the lock that is opened has its waiters read") {
  CountingInspector server;
  server.names = names_of(3);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kStart;
  OnScreen screen;
  screen.opened = "job-1001";
  screen.waiters = 128;
  run_for(client, now, Millis(5000), screen);
  for (const lock::InspectCall& call : server.asked) {
    CHECK(call.waiters_page == (call.name.text() == "job-1001" ? 128 : 0));
  }
}

TEST_CASE(
    "the first waiters are read if a screen shows them, to find runs that wait for each other") {
  CountingInspector server;
  server.names = names_of(1);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kStart;
  OnScreen screen;
  screen.estimates = true;
  run_for(client, now, Millis(5000), screen);
  REQUIRE(server.asked.size() > 1);
  CHECK(server.asked.front().waiters_page == 0);
  CHECK(server.asked.back().waiters_page == 16);
}

TEST_CASE("runs that wait for each other are marked in the table") {
  auto seen = [](const char* owner, const Hold& waiter_holds) {
    lock::Holder holder = test::holder();
    holder.owner = owner;
    lock::Snapshot lock = test::snapshot({holder}, 1);
    Record record{"web2", "root", 812, {}, {}, {}};
    record.holds = {waiter_holds};
    lock.waiters = {test::waiter()};
    lock.waiters.front().record = encode_record(record);
    return lock;
  };
  WatchModel model = model_with({"a", "b"});
  model.see("a", view("a", seen("ann", {"b", "bob"})), kStart);
  model.mark_deadlocks();
  CHECK_FALSE(contains(texts(model, {"c"}, 200, 10)[3], "[deadlock]"));
  model.see("b", view("b", seen("bob", {"a", "ann"})), kStart);
  model.mark_deadlocks();
  CHECK(contains(texts(model, {"c"}, 200, 10)[3], "[deadlock] make deploy"));
  CHECK(contains(texts(model, {"c"}, 200, 10)[4], "[deadlock] make deploy"));
  model.see("b", view("b", test::snapshot({}, 0)), kStart);
  model.mark_deadlocks();
  CHECK_FALSE(contains(texts(model, {"c"}, 200, 10)[3], "[deadlock]"));
}

TEST_CASE("an outage is reported with its beginning and its end, and retried ever more rarely") {
  CountingInspector server;
  server.names = names_of(2);
  WatchModel model({});
  WatchClient client(server, model, {});
  TimePoint now = kStart;
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
