#include "cli/output/render.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>
#include <tuple>

#include "cli/output/dead_holders.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/table.hpp"
#include "cli/run_observer.hpp"
#include "unit/cli_fixture.hpp"
#include "util/text.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::contains;

namespace {

void check_lines(const std::string& text, size_t width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(util::display_width(line) <= width);
    CHECK(util::printable(line) == line);
  }
  CHECK(text.ends_with('\n'));
}

// The queue of one lock.
std::string queue_text(const QueueView& queue, size_t width) {
  return queue_table({&queue, 1}, NameColumn::hidden, width);
}

}  // namespace

TEST_CASE("every line for people fits its width and is printable, hostile or not") {
  const Error error{ErrorKind::wrong_type, "-ERR \x1b[31m" + std::string(300, 'e')};
  std::vector<LockView> views{
      {std::string(200, 'n'), test::snapshot({test::hostile_holder(), test::holder()}, 12'345)},
      {"\u202e", test::snapshot({}, 0)},
      {"bad", error}};
  lock::Waiter waiter = test::waiter();
  waiter.owner = "\xff\x1b" + std::string(100, 'o');
  waiter.record = test::hostile_holder().record;
  const lock::Run run{{1}, {-1}, {INT64_MAX}, "\x1b[31m", "\xff", waiter.record, "\x1b{\xff"};
  const lock::Skips skips{UINT64_MAX, {INT64_MAX}, {INT64_MIN}, waiter.record};
  const History history = to_history("x", {skips, run}, 20);
  for (size_t width : {20U, 40U, 80U, 132U}) {
    CAPTURE(width);
    check_lines(history_table(history, NameColumn::shown, width), width);
    check_lines(status_table(views, width), width);
    check_lines(queue_text({"x", {waiter, test::waiter()}}, width), width);
    for (const LockView& view : views) check_lines(lock_details(view, width), width);
  }
}

TEST_CASE("status shows who holds the lock, where, since when and why") {
  LockView view{"nightly", test::snapshot({test::holder()}, 2)};
  std::string text = lock_details(view, 80);
  for (const char* part :
       {"nightly: held, exclusive, 2 waiting", "alice@web1, pid 4711", "make deploy", "release 7",
        "2m3s, since 2026-11-21T02:53:00Z", "alive, renewed 5s ago",
        "6f1c9a0e5d3b4872a1908f7e6d5c4b3a", "1763690000123456"}) {
    CAPTURE(part);
    CHECK(contains(text, part));
  }
  CHECK(status_table({view}, 80) ==
        "NAME     STATE  HELD BY     PID   FOR   WAIT  COMMAND\n"
        "nightly  held   alice@web1  4711  2m3s  2     make deploy (release 7)\n");
  CHECK(lock_details({"x", test::snapshot({}, 0)}, 80) == "x: free, 0 waiting\n");
}

TEST_CASE("a holder whose processes do not end is shown as ending, and why") {
  Record record = decode_record(test::holder().record);
  record.ending = "cannot stop pid 4711 of root";
  lock::Holder ending = test::holder();
  ending.record = encode_record(record);
  LockView view{"nightly", test::snapshot({ending}, 2)};
  CHECK(contains(lock_details(view, 80), "  state    ending, cannot stop pid 4711 of root\n"));
  CHECK(contains(status_table({view}, 80), "nightly  ending  alice@web1"));
  CHECK(holder_phrase(ending, TimeStyle::duration) ==
        "held by alice@web1 (pid 4711) for 2m3s: make deploy (reason: release 7) (ending, cannot "
        "stop "
        "pid 4711 of root)");
  ending.state = lock::HolderState::revoked;
  view = {"nightly", test::snapshot({ending}, 2)};
  CHECK(contains(lock_details(view, 80), "state    broken by an operator"));
  CHECK(contains(lock_details(view, 80), "  state    ending, cannot stop pid 4711 of root\n"));
  CHECK(contains(status_table({view}, 80), "nightly  broken"));
}

TEST_CASE("the queue is shown in order with the owners that --remove takes") {
  const std::vector<lock::Waiter> waiters{test::waiter(), test::waiter()};
  CHECK(queue_text({"nightly", waiters}, 80) ==
        "#  WHO       PID  WAITING  COMMAND    OWNER\n"
        "1  bob@web2  99   1.5s     make test  0123456789abcdef0123456789abcdef\n"
        "2  bob@web2  99   1.5s     make test  0123456789abcdef0123456789abcdef\n");
  const std::vector<QueueView> queues{{"nightly", waiters}, {"x", {test::waiter()}}};
  CHECK(queue_table(queues, NameColumn::shown, 200) ==
        "NAME     #  WHO       PID  WAITING  COMMAND    OWNER\n"
        "nightly  1  bob@web2  99   1.5s     make test  0123456789abcdef0123456789abcdef\n"
        "nightly  2  bob@web2  99   1.5s     make test  0123456789abcdef0123456789abcdef\n"
        "x        1  bob@web2  99   1.5s     make test  0123456789abcdef0123456789abcdef\n");
  CHECK(queue_text({"nightly", waiters, {Millis(0)}}, 100) ==
        "#  WHO       PID  WAITING  STARTS IN  COMMAND    OWNER\n"
        "1  bob@web2  99   1.5s     soon       make test  0123456789abcdef0123456789abcdef\n"
        "2  bob@web2  99   1.5s     -          make test  0123456789abcdef0123456789abcdef\n");
  lock::Waiter silent = test::waiter();
  silent.silent = Millis(9'000);
  CHECK(contains(queue_text({"nightly", {silent}}, 80), "1.5s     [silent 9s] make test"));
}

TEST_CASE("a lock, a holder and a waiter with rules of a newer rlock say which version is needed") {
  const lock::NewerRules needs{"1.4", {"!calendar", "!weights"}};
  LockView lock{"nightly", test::snapshot({}, 0)};
  lock.snapshot->known = true;
  CHECK(is_idle(lock));
  lock.snapshot->needs = needs;
  CHECK_FALSE(is_idle(lock));
  CHECK(lock_details(lock, 80) ==
        "nightly: free, 0 waiting\n  needs    rlock 1.4 or later (!calendar, !weights)\n");
  CHECK(contains(status_table({lock}, 200), "[needs rlock 1.4]"));
  lock::Holder holder = test::holder();
  holder.needs = needs;
  CHECK(contains(holder_details(holder, 80),
                 "  needs    rlock 1.4 or later (!calendar, !weights)\n"));
  lock::Waiter waiter = test::waiter();
  waiter.needs = needs;
  CHECK(contains(queue_text({"nightly", {waiter}}, 200), "[needs rlock 1.4] make test"));
  lock::Queued queued{.position = 1};
  queued.needs = needs;
  const auto name = *lock::LockName::parse("nightly");
  CHECK(
      waiting_text(name, queued, Millis(0)) ==
      "waiting for \"nightly\", 1st in line; only rlock 1.4 or later (!calendar, !weights) grants "
      "it: upgrade rlock on this host");
  queued.obstacle = test::holder();
  CHECK(contains(waiting_text(name, queued, Millis(0)), "on this host: held by alice@web1"));
}

TEST_CASE("a lock whose runs wait for each other is marked, and says what to do") {
  LockView lock{"nightly", test::snapshot({test::holder()}, 1)};
  CHECK_FALSE(contains(status_table({lock}, 200), "deadlock"));
  lock.deadlock = "it is held by a, which waits for it";
  CHECK(contains(status_table({lock}, 200), "[deadlock] make deploy"));
  CHECK(contains(lock_details(lock, 200), "to end it, stop one of these runs"));
}

TEST_CASE("a waiter can expect the lock when so many runs have ended as are before it") {
  auto holder = [](uint64_t limit, int64_t held) {
    lock::Holder one;
    one.limit = lock::Limit::slots(limit);
    one.held = Millis(held);
    return one;
  };
  auto starts = [](std::vector<lock::Holder> holders, const std::vector<uint64_t>& limits) {
    std::vector<lock::Waiter> waiters(limits.size());
    for (size_t i = 0; i < limits.size(); ++i) waiters[i].limit = lock::Limit::slots(limits[i]);
    std::vector<int64_t> out;
    for (Millis start : expected_starts(test::snapshot(holders, 0), waiters, Millis(100)))
      out.push_back(start.count());
    return out;
  };
  using Times = std::vector<int64_t>;
  CHECK(starts({holder(1, 30)}, {1, 1, 1}) == Times{70, 170, 270});
  CHECK(starts({holder(1, 1000)}, {1, 1}) == Times{0, 100});
  CHECK(starts({holder(2, 30), holder(2, 60)}, {2, 2, 2, 2}) == Times{40, 70, 140, 170});
  CHECK(starts({holder(3, 30), holder(3, 60)}, {3, 1, 3}) == Times{0, 100, 200});
  CHECK(starts({}, {1}) == Times{0});
  lock::Holder cooling = holder(1, 0);
  cooling.state = lock::HolderState::cooldown;
  cooling.left = Millis(7);
  CHECK(starts({cooling}, {1}) == Times{7});
  cooling.left = Millis::max();
  CHECK(starts({cooling}, std::vector<uint64_t>(200, 1)).size() == 128);
  lock::Snapshot closed = test::snapshot({holder(1, 30)}, 0);
  closed.closure = test::closure();
  const std::vector<Millis> after = expected_starts(closed, {lock::Waiter{}}, Millis(100));
  CHECK(after == std::vector<Millis>{Millis(300'000)});
}

TEST_CASE("a table shows the closure of a lock that nobody holds, and marks that of a held one") {
  LockView lock{"deploy", test::snapshot({}, 0)};
  lock.snapshot->now = {1'795'229'640'007};
  lock.snapshot->closure = test::closure();
  const LockCells closed = lock_cells(lock);
  CHECK(closed.state == "closed");
  CHECK(closed.who == "ann@ops1");
  CHECK(closed.held == Millis(60'000));
  CHECK(closed.remark + closed.command == "[closed for another 5m] (upgrade)");
  lock.snapshot->holders.push_back(test::holder());
  const LockCells held = lock_cells(lock);
  CHECK(held.state == "held");
  CHECK(held.who == "alice@web1");
  CHECK(held.held == Millis(123'000));
  CHECK(held.remark + held.command == "[closed for another 5m] make deploy (release 7)");
}

TEST_CASE("the obstacle of a run is named: a holder, a cool-down or the closure") {
  CHECK(obstacle_phrase({}) == "held by another client");
  CHECK(obstacle_phrase(test::closure()) ==
        "closed until 2026-11-21T02:59:00Z by ann@ops1: upgrade");
  lock::Holder cooling = test::holder();
  cooling.state = lock::HolderState::cooldown;
  CHECK(obstacle_phrase(cooling) == "in its cool-down (--min-hold) for another 25s");
  const auto aged = std::get<lock::Closure>(lock::aged(test::closure(), Millis(60'000)));
  CHECK(aged.left == Millis(240'000));
  CHECK(aged.until == test::closure().until);
}

TEST_CASE("a table cuts columns to their caps only if the last one would have no room") {
  Table table({{"A", 4, 4}, {"B", 99, 4}});
  table.add({"abcdefgh", "0123456789"});
  CHECK(table.text(12) == "A    B\nabc\u2026 012345\u2026\n");
  CHECK(table.text(20) == "A        B\nabcdefgh 0123456789\n");
  CHECK(table.text(60) == "A         B\nabcdefgh  0123456789\n");
}

TEST_CASE("a narrow table drops its least important columns") {
  Table table({{"A", 12, 4, 0}, {"B", 12, 4, 2}, {"C", 12, 4, 1}});
  table.add({"abcdefgh", "01234567", "ABCDEFGH"});
  CHECK(table.text(10) == "A     C\nabcd\u2026 ABC\u2026\n");
  CHECK(table.text(3) == "A\nab\u2026\n");
}

TEST_CASE("a lease that is renewed shows that its holder is alive, or that it may be dead") {
  lock::Holder holder = test::holder();
  auto details = [&] { return lock_details({"x", test::snapshot({holder}, 0)}, 120); };
  CHECK(contains(details(), "  lease    alive, renewed 5s ago\n"));
  holder.left = Millis(15'001);
  CHECK(contains(details(), "  lease    alive, renewed "));
  CHECK_FALSE(contains(holder_phrase(holder), "alive"));
  holder.left = Millis(15'000);
  CHECK(state_of(test::snapshot({holder}, 0)) == LockState::overdue);
  CHECK(contains(details(),
                 "  lease    renewal overdue by 5s: may be dead; expires in 15s unless "
                 "renewed\n"));
  CHECK(contains(holder_phrase(holder), " (renewal overdue by 5s: may be dead)"));
  const LockView view{"x", test::snapshot({holder}, 0)};
  CHECK(contains(status_table({view}, 80), "overdue"));
  CHECK(contains(status_table({view}, 132), "[overdue by 5s] make"));
  CHECK(contains(status_json({view}), "\"overdue_ms\":5000"));
  lock::Holder patient = holder;  // a long lease is renewed every 10 s
  patient.ttl = Millis(600'000);
  patient.left = Millis(585'000);
  CHECK(contains(status_json({{"x", test::snapshot({patient}, 0)}}), "\"overdue_ms\":5000"));
  Record record = decode_record(holder.record);
  record.renews = false;
  holder.record = encode_record(record);
  CHECK(contains(details(), "(--no-renew)"));
  CHECK_FALSE(contains(details(), "overdue"));
}

TEST_CASE("a waiter shows whether the holder lived when the server replied") {
  const auto name = *lock::LockName::parse("nightly");
  lock::Queued queued{.position = 1};
  queued.obstacle = test::holder();
  // A reply that has become old does not make a renewal overdue.
  for (const Millis age : {Millis(0), Millis(20'000)}) {
    CHECK(waiting_text(name, queued, age).ends_with("make deploy (reason: release 7) (alive)"));
  }
  auto& holder = std::get<lock::Holder>(*queued.obstacle);
  holder.left = Millis(15'000);
  CHECK(waiting_text(name, queued, Millis(0)).ends_with(" (renewal overdue by 5s: may be dead)"));
  holder.died = true;
  holder.responsive = lock::Responsive::run;
  CHECK(waiting_text(name, queued, Millis(5'000))
            .ends_with("; rlock (pid 4711) has died; processes of its command may still run; the "
                       "lock is free in 10s"));
  CHECK(brief_waiting_text(name, queued, Millis(0), {}).ends_with("; the lock is free in 15s"));
}

TEST_CASE("a holder has died if a later reply still lists it after its process exited") {
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  REQUIRE(waitpid(ended, nullptr, 0) == ended);
  Record record = own_record();
  record.processes = own_processes();
  lock::Holder holder = test::holder();
  holder.responsive = lock::Responsive::run;
  // Returns whether the second of two replies shows that it has died.
  auto has_died = [&] {
    DeadHolders dead;
    holder.record = encode_record(record);
    holder.died = false;
    const bool unsure = dead.mark({&holder, 1});
    CHECK_FALSE(holder.died);
    CHECK_FALSE(dead.mark({&holder, 1}));
    CHECK(holder.died == unsure);
    return holder.died;
  };
  CHECK_FALSE(has_died());
  record.pid = ended;
  CHECK(has_died());
  holder.responsive = lock::Responsive::no;  // of acquire: the process is that of its steps
  CHECK_FALSE(has_died());
  holder.responsive = lock::Responsive::yes;  // its renewer is about to release the lock
  CHECK_FALSE(has_died());
  holder.left = Millis(15'000);
  CHECK(has_died());
  holder.responsive = lock::Responsive::run;
  holder.state = lock::HolderState::cooldown;
  CHECK_FALSE(has_died());
  holder.state = lock::HolderState::held;
  record.host = "another";
  CHECK_FALSE(has_died());
  record.host = own_record().host;
  record.processes = "0:0";  // another container, or another boot or host of this name
  CHECK_FALSE(has_died());
  CHECK(contains(lock_details({"x", test::snapshot({holder}, 0)}, 120),
                 util::format("pid {} of its pid namespace", ended)));
  record.processes = "0:4026531836";  // that of another host itself
  CHECK_FALSE(has_died());
  CHECK_FALSE(contains(lock_details({"x", test::snapshot({holder}, 0)}, 120), "namespace"));
}

TEST_CASE("the lock of a holder that has died is free after its lease and its min-hold") {
  lock::Holder holder = test::holder();
  holder.responsive = lock::Responsive::run;
  holder.died = true;
  CHECK(life_phrase(holder) ==
        "rlock (pid 4711) has died; processes of its command may still run; the lock is free in "
        "25s");
  CHECK(contains(status_table({{"x", test::snapshot({holder}, 0)}}, 200),
                 "[" + life_phrase(holder) + "] make deploy"));
  holder.min_hold = Millis(183'000);
  CHECK(life_phrase(holder).ends_with("; the lock is free in 1m"));
  holder.entries = 2;
  CHECK(life_phrase(holder).ends_with("; its lease expires in 25s unless a nested run renews it"));
  holder.entries = 1;
  holder.limit = lock::Limit::slots(3);
  CHECK(life_phrase(holder).ends_with("; its lease expires in 25s"));
}

TEST_CASE("a wait is reported once after a second, then once a minute") {
  const TimePoint start = BootClock::now();
  WaitingReports reports(Millis(1'000));
  CHECK_FALSE(reports.due(start));
  CHECK(reports.remaining(start) == Millis(0));
  reports.begin(start);
  reports.begin(start + Millis(900));
  CHECK(reports.remaining(start) == Millis(1'000));
  CHECK_FALSE(reports.due(start + Millis(999)));
  CHECK_FALSE(reports.began());
  CHECK(reports.due(start + Millis(1'000)));
  CHECK(reports.began());
  CHECK_FALSE(reports.due(start + Millis(1'000)));
  CHECK_FALSE(reports.due(start + Millis(60'999)));
  CHECK(reports.remaining(start + Millis(60'999)) == Millis(1));
  CHECK(reports.due(start + Millis(61'000)));
  // After a suspend it is reported once, not once for each minute that was missed.
  CHECK(reports.due(start + Millis(600'000)));
  CHECK_FALSE(reports.due(start + Millis(600'000)));
  CHECK(reports.remaining(start + Millis(600'000)) == Millis(1'000));
  WaitingReports verbose{Millis(0)};
  verbose.begin(start);
  CHECK(verbose.due(start));
  CHECK_FALSE(verbose.due(start + Millis(59'999)));
}

TEST_CASE("the waiting line shows the lock, the position, the holder and the time waited") {
  lock::Queued queued;
  queued.position = 2;
  queued.obstacle = test::holder();
  auto name = *lock::LockName::parse("nightly");
  CHECK(waiting_text(name, queued, Millis(2'000)) ==
        "waiting for \"nightly\", 2nd in line: held by alice@web1 (pid 4711) for 2m5s: make deploy "
        "(reason: release 7) (alive)");
  CHECK(waiting_text(name, queued, Millis(2'000), TimeStyle::duration, Millis(250'000)) ==
        "waiting for \"nightly\", 2nd in line: held by alice@web1 (pid 4711) for 2m5s, usually 4m, "
        "about 2m left: make deploy (reason: release 7) (alive)");
  CHECK(brief_waiting_text(name, queued, Millis(2'000), Millis(250'000)) ==
        "waiting for \"nightly\" (2nd): alice@web1, usually 4m, about 2m left");
  CHECK(brief_waiting_text(name, queued, Millis(2'000), std::nullopt).empty());
  for (auto [style, usual, text] :
       {std::tuple{TimeStyle::start, 250'000,
                   " for 2m3s, since 2026-11-21T02:53:00Z, usually 4m: make"},
        {TimeStyle::duration, 90'400, " for 2m3s, usually 1m30s: make"},
        {TimeStyle::duration, 150, " for 2m3s, usually 150ms: make"}}) {
    CHECK(waiting_text(name, queued, Millis(0), style, Millis(usual)).find(text) !=
          std::string::npos);
  }
  std::get<lock::Holder>(*queued.obstacle).state = lock::HolderState::revoked;
  CHECK(waiting_text(name, queued, Millis(0), TimeStyle::duration, Millis(1'000)).find("usually") ==
        std::string::npos);
  queued.obstacle.reset();
  for (auto [position, text] : {std::pair<uint64_t, const char*>{1, "1st"},
                                {3, "3rd"},
                                {4, "4th"},
                                {11, "11th"},
                                {12, "12th"},
                                {13, "13th"},
                                {21, "21st"},
                                {111, "111th"}}) {
    queued.position = position;
    CHECK(waiting_text(name, queued, Millis(0)) ==
          "waiting for \"nightly\", " + std::string(text) + " in line");
  }
}

TEST_CASE(
    "an exclusive lock that is lost to another holder was taken; only slots can all be taken") {
  lock::Lost lost{lock::LostHow::full, lock::Holder{.owner = "other"}};
  CHECK(lost_phrase(lost) == "it was taken by owner other");
  lost.by->limit = lock::Limit::slots(2);
  CHECK(lost_phrase(lost) == "all its slots were taken, one of them by owner other");
}

TEST_CASE("rlock version names the commit and the project's address if the build knows them") {
  CHECK(version_text("1.2.3", "", 1, "") == "rlock 1.2.3\nform of stored locks: 1\n");
  CHECK(version_text("1.2.3", "abc", 2, "https://example.org/rlock") ==
        "rlock 1.2.3 (commit abc)\nform of stored locks: 2\n"
        "packages, questions, security: https://example.org/rlock\n");
}
