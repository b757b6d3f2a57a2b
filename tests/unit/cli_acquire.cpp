// The settings of `acquire`, `renew` and `release`.
#include <doctest/doctest.h>
#include <unistd.h>

#include "cli/commands/acquire.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/record.hpp"
#include "unit/cli_fixture.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

using Words = std::vector<std::string>;

Invocation invocation(const Words& words) {
  auto command_line = parse(words);
  if (!command_line) FAIL(command_line.error().text);
  return std::get<Invocation>(*command_line);
}

AcquireSettings good(Words options) {
  options.insert(options.begin(), {"acquire", "x"});
  auto got = acquire_settings(invocation(options));
  if (!got) FAIL(got.error().text);
  return *std::move(got);
}

std::string error_of(const Words& words) {
  Invocation asked = invocation(words);
  auto error = asked.command == CommandId::acquire ? acquire_settings(asked).error()
                                                   : parse_lease_id(asked).error();
  CHECK(error.kind == ErrorKind::usage);
  return error.text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("acquire needs to know how long: --ttl or --renew-while") {
  CHECK(contains(error_of({"acquire", "x"}), "--renew-while"));
  CHECK(contains(error_of({"acquire", "x", "-t", "999ms"}), "at least 1s"));
  CHECK(good({"--ttl", "15m"}).plan.claim.ttl == Millis(900'000));
  CHECK(good({"--renew-while", "1"}).plan.claim.ttl == Millis(30'000));
  CHECK(good({"--renew-while", "1", "-t", "5"}).plan.claim.ttl == Millis(5'000));
}

TEST_CASE("only a lock that is renewed by somebody waits for a confirmation when it is broken") {
  CHECK(good({"--ttl", "1m"}).plan.claim.responsive == lock::Responsive::no);
  CHECK(good({"--renew-while", "1"}).plan.claim.responsive == lock::Responsive::yes);
}

TEST_CASE("a pid that cannot be one is refused") {
  for (const char* pid : {"0", "-1", "x", "", "2147483648"}) {
    CAPTURE(pid);
    CHECK(
        contains(error_of({"acquire", "x", std::string("--renew-while=") + pid}), "--renew-while"));
  }
}

TEST_CASE("acquire waits and excludes as run does") {
  AcquireSettings got = good({"-t1m", "-w", "10m", "-E", "9", "--slots", "3", "--max-queue", "2"});
  CHECK(got.waiting.wait == Millis(600'000));
  CHECK(got.waiting.conflict_code == 9);
  CHECK(got.plan.claim.limit == lock::Limit::slots(3));
  CHECK(got.plan.claim.max_queue == 2U);
  CHECK(good({"-t1m", "-n"}).plan.claim.queueing == lock::Queueing::never);
}

TEST_CASE("the record is of the process that asked, or of the one that it is held for") {
  Record record = decode_record(good({"-t1m", "--reason", "why"}).plan.claim.record);
  CHECK(record.pid == getppid());
  CHECK(record.reason == "why");
  record = decode_record(good({"--renew-while", std::to_string(getpid())}).plan.claim.record);
  CHECK(record.pid == getpid());
  REQUIRE(record.command);
  CHECK(contains(*record.command, "unit_cli"));
  CHECK_FALSE(decode_record(good({"-t1m", "--hide-command"}).plan.claim.record).command);
}

TEST_CASE("renew and release are about one owner of one lock") {
  for (const char* command : {"renew", "release"}) {
    CHECK(contains(error_of({command, "x"}), "--owner"));
    CHECK(contains(error_of({command, "x", "--owner", "me"}), "bad owner"));
    CHECK(contains(error_of({command, "--owner", test::kOwner}), "no lock name"));
    auto lease = parse_lease_id(invocation({command, "x", "--owner", test::kOwner}));
    REQUIRE(lease);
    CHECK(lease->owner.text() == test::kOwner);
  }
}

TEST_CASE("a lock that is no longer held: which, where, whose, why, and who has it") {
  LeaseId lease{*lock::LockName::parse("x"), *lock::Owner::parse(test::kOther)};
  auto error = no_longer_held(lease, "its lease has ended", test::holder(), "db1:6379");
  CHECK(error.kind == ErrorKind::lost);
  CHECK(error.text == "\"x\" at db1:6379 is no longer held by " + test::kOther +
                          ": its lease has ended; it is now held by alice@web1 (pid 4711) since "
                          "2026-11-21T02:53:00.007Z: make deploy (reason: release 7)");
}
