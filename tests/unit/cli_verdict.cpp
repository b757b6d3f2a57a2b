#include "cli/verdict.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>

#include "unit/cli_fixture.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

RunContext context() {
  return {"nightly", "db1:6379", "backup", 75, util::Millis(600'000), util::Millis(3'000)};
}

Verdict verdict(const run::Outcome& outcome) {
  return judge(outcome, context());
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Each message names the lock and the server and is one printable line. [CLI.md, Exit codes]
void check_complete(const Verdict& verdict) {
  CAPTURE(verdict.message);
  CHECK(contains(verdict.message, "nightly"));
  CHECK(contains(verdict.message, "db1:6379"));
  for (char c : verdict.message) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

TEST_CASE("success is silent and every exit code passes through (L01, L50)") {
  for (int code = 0; code < 256; ++code) {
    Verdict got = verdict(run::Ended{run::Exited{code}, {}, {}});
    CHECK(got.code == code);
    CHECK_FALSE(got.signal);
    CHECK(got.weight == Weight::silent);
  }
}

TEST_CASE("a command that a signal ended ends rlock by the same signal") {
  Verdict got = verdict(run::Ended{run::Signaled{SIGTERM}, {}, {}});
  CHECK(got.signal == SIGTERM);
  CHECK(got.code == 143);
  CHECK(got.weight == Weight::silent);
  CHECK(verdict(run::WaitSignaled{SIGINT}).signal == SIGINT);
}

TEST_CASE("a run ended for want of guard or thread tells of what runs on and stays locked (71)") {
  util::Error none{util::ErrorKind::system, "cannot start the guard: fork: no"};
  util::Error gone{util::ErrorKind::unavailable, "connection refused"};
  Verdict got = verdict(run::Unprotected{none, gone, {"process 5 (other)"}});
  CHECK(got.code == 71);
  CHECK(contains(got.message, "could not end process 5 (other)"));
  CHECK(contains(got.message, "release could not be confirmed"));
  check_complete(got);
}

TEST_CASE("a skip names the holder and is a notice, not an error (L19, L21, L50)") {
  for (const run::Outcome& outcome :
       {run::Outcome(run::NotAcquired{lock::Busy{test::holder(), 0}}),
        run::Outcome(run::NotAcquired{lock::TimedOut{test::holder()}})}) {
    Verdict got = verdict(outcome);
    CHECK(got.code == 75);
    CHECK(got.weight == Weight::notice);
    check_complete(got);
    CHECK(contains(got.message,
                   "held by alice@web1 (pid 4711) since 2026-11-21T02:53:00.007Z: make deploy "
                   "(reason: release 7)"));
  }
  CHECK(contains(verdict(run::NotAcquired{lock::TimedOut{}}).message, "waited 3s"));
  RunContext spaced = context();
  spaced.name = "a b";
  CHECK(
      judge(run::NotAcquired{lock::Busy{}}, spaced).message.ends_with("; see rlock status 'a b'"));
}

TEST_CASE("-E changes the code of a conflict and of nothing else (L02)") {
  RunContext asked = context();
  asked.conflict_code = 9;
  CHECK(judge(run::NotAcquired{lock::Busy{}}, asked).code == 9);
  CHECK(judge(run::NotAcquired{lock::TimedOut{}}, asked).code == 9);
  CHECK(judge(run::NotAcquired{lock::Gone{lock::Ending::removed, ""}}, asked).code == 75);
  CHECK(judge(run::LeaseLost{}, asked).code == 76);
}

TEST_CASE("a removed waiter learns who removed it and why") {
  std::string note = encode_record({"ops1", "bob", {}, {}, "wrong branch", {}});
  Verdict got = verdict(run::NotAcquired{lock::Gone{lock::Ending::removed, note}});
  check_complete(got);
  CHECK(contains(got.message, "by bob@ops1: wrong branch"));
  check_complete(verdict(run::NotAcquired{lock::Gone{lock::Ending::removed, "\xff{"}}));
}

TEST_CASE("a lost lease says what became of it (L10)") {
  auto message = [](lock::Lost lost) {
    Verdict got = verdict(run::LeaseLost{{std::move(lost), {}, false}, false, {}});
    CHECK(got.code == 76);
    CHECK(got.weight == Weight::error);
    check_complete(got);
    return got.message;
  };
  CHECK(
      contains(message({lock::LostHow::taken, test::holder(), ""}),
               "taken by alice@web1 (owner " + test::kOwner + ", since 2026-11-21T02:53:00.007Z)"));
  message({lock::LostHow::unissued, {}, ""});
  std::string note = encode_record({"ops1", "bob", {}, {}, "host is gone", {}});
  CHECK(contains(message({lock::LostHow::forced, {}, note}), "broken by bob@ops1: host is gone"));
  CHECK(contains(message({lock::LostHow::forced, {}, "junk"}), "broken by an operator"));
  message({lock::LostHow::taken, test::hostile_holder(), "\x1b"});
}

TEST_CASE("that nobody had the lock since is said on the server's word alone") {
  for (auto how : {lock::LostHow::expired, lock::LostHow::deleted}) {
    lock::Lost lost{how, {}, ""};
    auto message = [&] { return verdict(run::LeaseLost{{lost, {}, false}, false, {}}).message; };
    CHECK_FALSE(contains(message(), "since"));
    lost.since = lock::Since::nobody;
    CHECK(contains(message(), "(nobody had it since)"));
    lost.since = lock::Since::another;
    CHECK(contains(message(), "(another had it since)"));
  }
  run::LeaseEnd silent{{}, {}, true};
  auto message = [&] { return verdict(run::LeaseLost{silent, false, {}}).message; };
  CHECK_FALSE(contains(message(), "since"));
  silent.since = lock::Since::another;
  CHECK(
      contains(message(), "the lease ended, rlock was stopped or starved (another had it since)"));
}

TEST_CASE("a lease lost in silence tells the last trouble, and what could not be ended") {
  run::LeaseEnd lease{{}, util::Error{util::ErrorKind::unavailable, "timed out"}, true};
  Verdict got = verdict(run::LeaseLost{lease, false, {"pid 5 (other user)"}});
  check_complete(got);
  CHECK(contains(got.message, "timed out"));
  CHECK(contains(got.message, "stopped or starved"));
  CHECK(contains(got.message, "pid 5 (other user)"));
  CHECK(contains(verdict(run::LeaseLost{lease, true, {}}).message, "was not started"));
}

TEST_CASE("a command that ended by itself keeps its code, with a warning for a lost lease") {
  run::LeaseEnd lease{lock::Lost{lock::LostHow::taken, test::holder(), ""}, {}, false};
  Verdict got = verdict(run::Ended{run::Exited{3}, lease, {}});
  CHECK(got.code == 3);
  CHECK(got.weight == Weight::error);
  check_complete(got);
  CHECK(got.message.starts_with("warning: "));
  Verdict unreleased =
      verdict(run::Ended{run::Exited{0}, {}, util::Error{util::ErrorKind::unavailable, "reset"}});
  CHECK(unreleased.code == 0);
  check_complete(unreleased);
  CHECK(contains(unreleased.message, "could not be confirmed"));
}

TEST_CASE("a command that cannot be executed is 126, one that is not found 127") {
  CHECK(verdict(run::CannotExec{ENOENT}).code == 127);
  CHECK(verdict(run::CannotExec{EACCES}).code == 126);
  CHECK(verdict(run::CannotExec{E2BIG}).code == 126);
  check_complete(verdict(run::CannotExec{EACCES}));
  CHECK(contains(verdict(run::CannotExec{EACCES}).message, "\"backup\": Permission denied"));
}

TEST_CASE(
    "a command that cannot be executed is not said to have released what it could not (L16)") {
  util::Error silent{util::ErrorKind::unavailable, "db1:6379: no answer in time"};
  Verdict got = verdict(run::CannotExec{ENOENT, silent});
  CHECK(got.code == 127);
  CHECK(contains(got.message, "the release could not be confirmed (db1:6379: no answer in time)"));
  CHECK_FALSE(contains(got.message, "released "));
  check_complete(got);
}

TEST_CASE("--max-run ends with 124 and says how long it was") {
  Verdict got = verdict(run::RunLimit{});
  CHECK(got.code == 124);
  CHECK(contains(got.message, "--max-run 10m"));
  check_complete(got);
}

TEST_CASE("an error names lock and server once") {
  Verdict bare = verdict(util::Error{util::ErrorKind::system, "cannot fork"});
  CHECK(bare.code == 71);
  check_complete(bare);
  Verdict full = verdict(util::Error{util::ErrorKind::unavailable,
                                     "cannot acquire \"nightly\" at db1:6379: timed out"});
  CHECK(full.code == 69);
  CHECK(full.message ==
        "cannot acquire \"nightly\" at db1:6379: timed out; rlock doctor checks the server");
  util::Error denied{util::ErrorKind::denied, "cannot acquire \"nightly\" at db1:6379: NOPERM"};
  CHECK(verdict(denied).message.ends_with("; rlock doctor checks the server"));
}
