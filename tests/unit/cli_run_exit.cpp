#include "cli/run_exit.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "unit/cli_fixture.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::contains;

namespace {

const Session& session() {
  static const Session at_db1 = [] {
    redis::OpenOptions options;
    options.urls = *redis::parse_urls({"redis://db1:6379"});
    auto opened = Session::open(std::move(options));
    return *std::move(opened);
  }();
  return at_db1;
}

// What a user asked of a run.
struct Asked {
  RunSettings settings{.plan = {.claim = {{.name = *lock::LockName::parse("nightly"),
                                           .owner = *lock::Owner::parse(test::kOwner)}},
                                .limits = {},
                                .argv = {"backup"},
                                .environment = {},
                                .max_run = Millis(600'000)}};
  bool unlocked = false;

  lock::AcquireCall& claim() { return settings.plan.claim; }
  MessageContext context() const {
    return {
        .settings = settings, .session = session(), .waited = Millis(3'000), .unlocked = unlocked};
  }
};

RunExit to_exit(const run::RunOutcome& outcome, const Asked& asked) {
  return cli::to_exit(outcome, asked.context());
}

// Of a command that ran until its lease was gone.
run::RunEnd lost_end(run::LeaseEnd lease, std::vector<std::string> survivors = {}) {
  return {.started = true,
          .ended_for = run::EndCause::lease,
          .lost = std::move(lease),
          .survivors = std::move(survivors)};
}

RunExit run_exit(const run::RunOutcome& outcome) {
  return to_exit(outcome, Asked{});
}

// Each message names the lock and the server and is one printable line.
void check_complete(const RunExit& run_exit) {
  CAPTURE(run_exit.message);
  CHECK(contains(run_exit.message, "nightly"));
  CHECK(contains(run_exit.message, "db1:6379"));
  for (char c : run_exit.message) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

TEST_CASE("a full lock with slots says how many are held, and whose limit applies") {
  auto full = [](std::vector<uint64_t> limits, uint64_t own) {
    std::vector<lock::Holder> holders;
    for (uint64_t limit : limits) {
      holders.push_back(test::holder());
      holders.back().limit = lock::Limit::slots(limit);
    }
    return slots_text(test::snapshot(holders, 0), lock::Limit::slots(own));
  };
  CHECK(full({4, 2}, 4) == "2 of 2 slots are held (this run allows 4, a holder 2)");
  CHECK(full({4, 4}, 2) == "2 of 2 slots are held (this run allows 2, a holder 4)");
  CHECK(full({2, 2}, 2) == "2 of 2 slots are held");
  CHECK(full({3, 3}, 3).empty());
  CHECK(slots_text(test::snapshot({test::holder()}, 0), lock::Limit::slots(2)).empty());
  std::vector<lock::Holder> holders(2, test::holder());
  auto cool = [&](size_t one, int64_t left) {
    holders[one].state = lock::HolderState::cooldown;
    holders[one].left = Millis(left);
    return slots_text(test::snapshot(holders, 0), lock::Limit::slots(2));
  };
  for (lock::Holder& holder : holders) holder.limit = lock::Limit::slots(2);
  CHECK(cool(0, 3'600'000) ==
        "2 of 2 slots are held, one of them in its cool-down (--min-hold); the first is free in "
        "1h");
  CHECK(cool(1, 3'540'000) ==
        "2 of 2 slots are in their cool-down (--min-hold); the first is free in 59m");
}

TEST_CASE(
    "a run that ends without guard or renewal thread reports running processes and stays locked "
    "(71)") {
  Error none{ErrorKind::system, "cannot start the guard: fork: no"};
  Error gone{ErrorKind::unavailable, "connection refused"};
  RunExit got = run_exit(run::RunEnd{.started = true,
                                     .ended_for = run::EndCause::no_guard,
                                     .error = none,
                                     .survivors = {"process 5 (other)"},
                                     .unreleased = gone});
  CHECK(got.code == 71);
  CHECK(contains(got.message, "could not stop process 5 (other); the lock was not released"));
  CHECK(contains(got.message, "did not confirm the release"));
  check_complete(got);
}

TEST_CASE("no message of a command that ran without the lock speaks of a lock that is held") {
  Asked unlocked;
  unlocked.unlocked = true;
  const std::vector<std::string> survivors{"process 5 (other)"};
  const Error none{ErrorKind::system, "cannot start the guard: fork: no"};
  for (const run::RunOutcome& outcome :
       {run::RunOutcome(run::RunEnd{
            .ended_for = run::EndCause::no_guard, .error = none, .survivors = survivors}),
        run::RunOutcome(run::RunEnd{.ended_for = run::EndCause::run_limit, .survivors = survivors}),
        run::RunOutcome(run::RunEnd{.survivors = survivors})}) {
    RunExit got = to_exit(outcome, unlocked);
    check_complete(got);
    CHECK(contains(got.message, "without"));
    CHECK(contains(got.message, "--fail-open"));
    CHECK(contains(got.message, "could not stop process 5 (other)"));
    CHECK_FALSE(contains(got.message, "lease"));
    CHECK_FALSE(contains(got.message, "released"));
  }
}

TEST_CASE(
    "the message about survivors of a lost lease says that they may run with the next holder") {
  const std::vector<std::string> survivors{"process 5 (other)"};
  const run::LeaseEnd lease{{}, {}, true};
  for (const run::RunOutcome& outcome :
       {run::RunOutcome(lost_end(lease, survivors)),
        run::RunOutcome(run::RunEnd{
            .ended_for = run::EndCause::run_limit, .lost = lease, .survivors = survivors}),
        run::RunOutcome(run::RunEnd{.lost = lease, .survivors = survivors})}) {
    RunExit got = run_exit(outcome);
    check_complete(got);
    CHECK(contains(got.message, "could not stop process 5 (other), which may still be running"));
    CHECK_FALSE(contains(got.message, "rlock stopped"));
    CHECK_FALSE(contains(got.message, "not released"));
  }
  CHECK(contains(run_exit(lost_end(lease)).message, "rlock stopped the command"));
}

TEST_CASE("a skip names the holder and is a notice, not an error") {
  for (const run::RunOutcome& outcome : {run::RunOutcome(lock::Busy{test::holder(), 0}),
                                         run::RunOutcome(lock::TimedOut{test::holder()})}) {
    RunExit got = run_exit(outcome);
    CHECK(got.code == 75);
    CHECK(got.severity == run::Severity::notice);
    check_complete(got);
    CHECK(
        contains(got.message,
                 "held by alice@web1 (pid 4711) for 2m3s, since 2026-11-21T02:53:00Z: make deploy "
                 "(reason: release 7)"));
  }
  CHECK(contains(run_exit(lock::TimedOut{}).message, "still busy after 3s"));
  CHECK(contains(
      run_exit(lock::TimedOut{.obstacle = {}, .needs = lock::NewerRules{"1.4", {"!weights"}}})
          .message,
      "was not granted within 3s (--wait): only rlock 1.4 or later (!weights) grants it: "
      "upgrade rlock on this host; see "));
  CHECK(contains(
      run_exit(lock::TimedOut{test::holder(), lock::NewerRules{"1.4", {"!weights"}}}).message,
      "only rlock 1.4 or later (!weights) grants it"));
  CHECK(contains(run_exit(lock::TimedOut{.obstacle = lock::Closure{}}).message,
                 "did not open within 3s (--wait): closed until "));
  Asked spaced;
  spaced.claim().name = *lock::LockName::parse("a b");
  CHECK(to_exit(lock::Busy{}, spaced).message.ends_with("; see rlock status 'a b'"));
}

TEST_CASE("work that was done before is a success of its own, and says whose") {
  Asked once;
  once.claim().once = lock::Once{lock::OnceKind::key, "v17", {}, {}};
  const std::string record = encode_record({"web3", "cron", 812, {}, {}, {}});
  const lock::ServerTime at{wall_clock().ms - 40 * 60'000};
  lock::AlreadyDone done{at, Millis(250'000), record};
  RunExit got = to_exit(done, once);
  CHECK(got.code == 0);
  CHECK(got.severity == run::Severity::notice);
  CHECK(got.message == "\"nightly\" was done by web3 40m ago, at " + time_text(at) +
                           " (took 4m10s), with the KEY \"v17\"");
  once.settings.waiting.codes = {.done = 9, .failures = 7};
  CHECK(to_exit(lock::AlreadyDone{}, once).code == 9);
  CHECK(to_exit(lock::AlreadyDone{}, once).message ==
        "\"nightly\" was done by another run, with the KEY \"v17\"");
  once.claim().once = lock::Once{lock::OnceKind::period, "day:2026-11-21", {}, {}};
  auto done_by = [&](const char* command) {
    const std::string by = encode_record({{}, {}, {}, command, {}, {}});
    return to_exit(lock::AlreadyDone{{}, {}, by, {}}, once);
  };
  CHECK(done_by("./backup -a").message ==
        "\"nightly\" was done by another run, for day 2026-11-21: ./backup -a");
  CHECK(done_by("./backup -a").severity == run::Severity::notice);
  CHECK(contains(done_by("./job").message,
                 ": ./job; warning: this run was to execute another "
                 "program, backup, which did not run"));
  CHECK(done_by("./job").severity == run::Severity::error);
  got = to_exit(lock::FailedTooOften{3}, once);
  CHECK(got.code == 7);
  CHECK(got.severity == run::Severity::notice);
  CHECK(contains(got.message, "failed 3 times"));
}

TEST_CASE("a superseded run names the newer one") {
  Asked deploy;
  deploy.settings.waiting.codes.superseded = 8;
  const std::string record = encode_record({"runner7", "ci", 812, {}, {}, {}});
  RunExit got = to_exit(lock::Superseded{record}, deploy);
  CHECK(got.code == 8);
  CHECK(got.severity == run::Severity::notice);
  CHECK(got.kind == "superseded");
  CHECK(contains(got.message, " was superseded by ci@runner7 (pid 812)"));
  CHECK_FALSE(contains(got.message, "number"));
  CHECK(contains(to_exit(lock::Superseded{}, deploy).message, "a newer run"));
  // The number is in the reply, or in the record of the newer one.
  deploy.claim().supersede = lock::Supersede{3};
  const lock::ServerTime three_days_ago{wall_clock().ms - int64_t{3} * 24 * 3600 * 1000 - 1000};
  got = to_exit(lock::Superseded{record, 57, three_days_ago, {}}, deploy);
  CHECK(contains(got.message,
                 ": number 3 was superseded by number 57 of ci@runner7 (pid 812), "
                 "which was granted the lock 3d ago, at 20"));
  CHECK(contains(got.message,
                 "; if the numbers have started again: rlock forget nightly, which also "
                 "forgets the work done with --once"));
  Record newer = decode_record(record);
  newer.supersede = 58;
  got = to_exit(lock::Superseded{encode_record(newer), {}, {}, {}}, deploy);
  CHECK(contains(got.message, ": number 3 was superseded by number 58 of ci@runner7 (pid 812); "));
  got = to_exit(lock::Superseded{record, 57, {}, {1763712005000}}, deploy);
  CHECK(got.message.ends_with(
      "(pid 812), which has waited since 2025-11-21T08:00:05Z; see rlock queue nightly"));
}

TEST_CASE("a success that is not recorded is a warning, and the exit code stays") {
  Asked once;
  once.claim().once.emplace();
  using run::Recording;
  for (auto [recording, text] : {std::pair{Recording::unconfirmed, "it may run again"},
                                 {Recording::stopped, "was asked to stop"},
                                 {Recording::pushed_out_another, "some 1000 for each lock"}}) {
    RunExit got = to_exit(run::RunEnd{.recording = recording}, once);
    CHECK(got.code == 0);
    CHECK(got.severity == run::Severity::error);
    CHECK(contains(got.message, text));
    check_complete(got);
  }
  RunExit silent = to_exit(run::RunEnd{.recording = Recording::recorded}, once);
  CHECK(silent.severity == run::Severity::silent);
  once.unlocked = true;
  CHECK(contains(to_exit(run::RunEnd{}, once).message, "it may run again"));
  CHECK_FALSE(contains(to_exit(run::RunEnd{.end = run::Exited{1}}, once).message, "run again"));
  const Error gone{ErrorKind::unavailable, "connection refused"};
  CHECK(contains(unlocked_warning(gone, once.context()), "its success will not be recorded"));
}

TEST_CASE("a removed waiter learns who removed it and why") {
  std::string note = encode_record({"ops1", "bob", {}, {}, "wrong branch", {}});
  RunExit got = run_exit(lock::OwnerEnded{lock::OwnerEnd::removed, note});
  check_complete(got);
  CHECK(contains(got.message, "by bob@ops1: wrong branch"));
  check_complete(run_exit(lock::OwnerEnded{lock::OwnerEnd::removed, "\xff{"}));
}

TEST_CASE("the message about a lost lease says how it was lost") {
  auto message = [](lock::Lost lost) {
    RunExit got = run_exit(lost_end({std::move(lost), {}, false}));
    CHECK(got.code == 76);
    CHECK(got.severity == run::Severity::error);
    check_complete(got);
    return got.message;
  };
  CHECK(contains(message({lock::LostHow::taken, test::holder(), ""}),
                 "taken by alice@web1 (owner " + test::kOwner + ", since 2026-11-21T02:53:00Z)"));
  message({lock::LostHow::unissued, {}, ""});
  std::string note = encode_record({"ops1", "bob", {}, {}, "host is gone", {}});
  CHECK(contains(message({lock::LostHow::forced, {}, note}), "broken by bob@ops1: host is gone"));
  CHECK(contains(message({lock::LostHow::forced, {}, "junk"}), "broken by an operator"));
  message({lock::LostHow::taken, test::hostile_holder(), "\x1b"});
}

TEST_CASE("\"nobody had the lock since\" is printed only if the server reported it") {
  for (auto how : {lock::LostHow::expired, lock::LostHow::deleted}) {
    lock::Lost lost{how, {}, ""};
    auto message = [&] { return run_exit(lost_end({lost, {}, false})).message; };
    CHECK_FALSE(contains(message(), "since"));
    lost.later_holder = lock::LaterHolder::nobody;
    CHECK(contains(message(), "(no other client has held it since)"));
    lost.later_holder = lock::LaterHolder::another;
    CHECK(contains(message(), "(another client has held it since)"));
  }
  run::LeaseEnd silent{{}, {}, true};
  auto message = [&] { return run_exit(lost_end(silent)).message; };
  CHECK_FALSE(contains(message(), "since"));
  silent.later_holder = lock::LaterHolder::another;
  CHECK(
      contains(message(),
               "the lease expired while rlock was stopped or got no processor time (another client "
               "has held it since)"));
}

TEST_CASE(
    "a lease lost without a reply is reported with the last error and the remaining processes") {
  run::LeaseEnd lease{{}, Error{ErrorKind::unavailable, "timed out"}, true};
  RunExit got = run_exit(lost_end(lease, {"pid 5 (other user)"}));
  check_complete(got);
  CHECK(contains(got.message, "timed out"));
  CHECK(contains(got.message, "stopped or got no processor time"));
  CHECK(contains(got.message, "pid 5 (other user)"));
  CHECK(contains(run_exit(run::RunEnd{.ended_for = run::EndCause::lease, .lost = lease}).message,
                 "was not started"));
}

TEST_CASE("a lease lost in an outage says which outage it always survives") {
  run::LeaseEnd lease{{}, Error{ErrorKind::unavailable, "db1:6379: no answer in time"}, false};
  CHECK_FALSE(contains(run_exit(lost_end(lease)).message, "survives"));
  lease.survives = Millis(40'000);
  CHECK(contains(run_exit(lost_end(lease)).message,
                 "no answer in time; this lease survives every outage of up to 40s, a longer --ttl "
                 "more; rlock stopped the command"));
  // Without an outage a longer lease would not have helped.
  lease.last_error.reset();
  CHECK_FALSE(contains(run_exit(lost_end(lease)).message, "survives"));
}

TEST_CASE("a command that ended by itself keeps its code, with a warning for a lost lease") {
  run::LeaseEnd lease{lock::Lost{lock::LostHow::taken, test::holder(), ""}, {}, false};
  RunExit got = run_exit(run::RunEnd{.end = run::Exited{3}, .lost = lease});
  CHECK(got.code == 3);
  CHECK(got.severity == run::Severity::error);
  check_complete(got);
  CHECK(got.message.starts_with("warning: "));
  RunExit unreleased = run_exit(run::RunEnd{.unreleased = Error{ErrorKind::unavailable, "reset"}});
  CHECK(unreleased.code == 0);
  check_complete(unreleased);
  CHECK(contains(unreleased.message, "did not confirm"));
}

TEST_CASE("a command that cannot be executed is not reported as released if the release failed") {
  Error silent{ErrorKind::unavailable, "db1:6379: no answer in time"};
  RunExit got = run_exit(run::RunEnd{.exec_error = ENOENT, .unreleased = silent});
  CHECK(got.code == 127);
  CHECK(contains(got.message,
                 "the server did not confirm the release (db1:6379: no answer in time)"));
  CHECK_FALSE(contains(got.message, "released "));
  check_complete(got);
}

TEST_CASE("an error names lock and server once") {
  RunExit bare = run_exit(Error{ErrorKind::system, "cannot fork"});
  CHECK(bare.code == 71);
  check_complete(bare);
  RunExit full =
      run_exit(Error{ErrorKind::unavailable, "cannot acquire \"nightly\" at db1:6379: timed out"});
  CHECK(full.code == 69);
  CHECK(full.message ==
        "cannot acquire \"nightly\" at db1:6379: timed out; rlock doctor checks the server, "
        "rlock help 69 says what to do");
  Error denied{ErrorKind::denied, "cannot acquire \"nightly\" at db1:6379: NOPERM"};
  CHECK(run_exit(denied).message.ends_with("rlock help 77 says what to do"));
}

TEST_CASE("each cause of an end has its exit code, event and words in one row") {
  using run::RunCause;
  const auto code_of = [](RunCause cause) { return std::get<int>(run::row_of(cause).exit_code); };
  const run::LeaseEnd lease{{}, {}, true};
  CHECK(run::cause_of(lost_end(lease)) == RunCause::lease_lost);
  CHECK(code_of(RunCause::lease_lost) == kLost);
  // A lost lease whose command ended by itself.
  CHECK(run::cause_of(run::RunEnd{.started = true, .lost = lease}) == RunCause::command);
  CHECK(std::get<run::CodeOf>(run::row_of(RunCause::command).exit_code) == run::CodeOf::command);
  CHECK(code_of(RunCause::run_limit) == kRunLimit);
  CHECK(code_of(RunCause::removed) == kBusy);
  CHECK(code_of(RunCause::upgrade) == kUsage);
  for (RunCause cause : {RunCause::no_renewal, RunCause::no_guard}) {
    CHECK(code_of(cause) == exit_code(ErrorKind::system));
  }
}
