#include "cli/settings/run_settings.hpp"

#include <doctest/doctest.h>

#include "cli/output/record.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

using Words = std::vector<std::string>;

const char* bash_getenv(const char* name) {
  return std::string_view(name) == "SHELL" ? "/bin/bash" : nullptr;
}
const char* empty_getenv(const char*) {
  return nullptr;
}

Result<RunSettings> settings(const Words& words, Getenv getenv = empty_getenv) {
  auto command_line = parse(words);
  if (!command_line) return command_line.error();
  return run_settings(std::get<Invocation>(*command_line), getenv);
}

RunSettings good(Words options) {
  options.insert(options.begin(), "run");
  options.insert(options.end(), {"x", "--", "true"});
  auto got = settings(options);
  if (!got) FAIL(got.error().text);
  return *got;
}

std::string error_of(const Words& words) {
  auto got = settings(words);
  REQUIRE_FALSE(got);
  CHECK(got.error().kind == ErrorKind::usage);
  return got.error().text;
}

}  // namespace

TEST_CASE("the defaults are the documented ones") {
  RunSettings got = good({});
  CHECK(got.plan.claim.ttl == Millis(30'000));
  CHECK(got.plan.kill_after == Millis(5'000));
  CHECK(got.plan.claim.queueing == lock::Queueing::wait);
  CHECK(got.plan.on_lost == run::OnLost::terminate);
  CHECK(got.plan.watchdog == lock::Watchdog::renew);
  CHECK_FALSE(got.plan.max_run);
  CHECK_FALSE(got.waiting.wait);
  CHECK(got.waiting.conflict_code == 75);
  CHECK(got.waiting.superseded_code == 75);
  CHECK(got.done_code == 0);
  CHECK(good({"-t", "6s"}).plan.kill_after == Millis(1'000));
}

TEST_CASE("-n tries once, -w waits for a time, and without either a run waits without limit") {
  CHECK(good({"-n"}).plan.claim.queueing == lock::Queueing::never);
  CHECK(good({"-w0"}).plan.claim.queueing == lock::Queueing::never);
  CHECK(good({"-n", "-w0"}).waiting.wait == Millis(0));
  CHECK(good({"-w", "10m"}).waiting.wait == Millis(600'000));
  CHECK(good({"-w", "10m"}).plan.claim.queueing == lock::Queueing::wait);
  CHECK_FALSE(good({}).waiting.wait);
}

TEST_CASE("a setting that makes no sense is refused and named") {
  CHECK(error_of({"run"}).find("no lock name") != std::string::npos);
  CHECK(error_of({"run", "--", "true"}).find("no lock name") != std::string::npos);
  CHECK(error_of({"run", "x"}).find("no command") != std::string::npos);
  CHECK(error_of({"run", "x", "--"}).find("is empty") != std::string::npos);
  CHECK(error_of({"run", "x", "--", ""}).find("is empty") != std::string::npos);
  CHECK(error_of({"run", "x", "-c", "true", "--", "true"}).find("-c") != std::string::npos);
  CHECK(error_of({"run", "x{y}", "--", "true"}).find("x{y}") != std::string::npos);
  CHECK(error_of({"run", "-n", "-w5", "x", "--", "true"}).find("together") != std::string::npos);
  CHECK(error_of({"run", "-t", "999ms", "x", "--", "true"}).find("--ttl") != std::string::npos);
  CHECK(error_of({"run", "-t", "soon", "x", "--", "true"}).find("--ttl") != std::string::npos);
  CHECK(error_of({"run", "-w-5", "x", "--", "true"}).find("--wait") != std::string::npos);
  CHECK(error_of({"run", "--on-lost", "explode", "x", "--", "true"}).find("--on-lost") !=
        std::string::npos);
  // A code is never reduced modulo 256.
  CHECK(error_of({"run", "-E", "600", "x", "--", "true"}).find("600") != std::string::npos);
}

TEST_CASE("modes, --min-hold and --max-queue reach the claim") {
  CHECK(good({}).plan.claim.limit == lock::Limit::exclusive());
  CHECK(good({"--slots", "1"}).plan.claim.limit == lock::Limit::exclusive());
  CHECK(good({"--slots", "1024"}).plan.claim.limit == lock::Limit::slots(1024));
  CHECK(good({"-s"}).plan.claim.limit == lock::Limit::shared());
  CHECK(good({"--min-hold", "5m"}).plan.claim.min_hold == Millis(300'000));
  CHECK_FALSE(good({}).plan.claim.max_queue);
  CHECK(good({"--max-queue", "0"}).plan.claim.max_queue == 0U);
  CHECK(good({"--max-queue", "3", "-n"}).plan.claim.queueing == lock::Queueing::never);
  for (const Words& words : {Words{"--slots", "0"},
                             {"--slots", "1025"},
                             {"--slots", "-1"},
                             {"--slots", "2", "-s"},
                             {"--max-queue", "-1"},
                             {"--max-queue", "x"},
                             {"--min-hold", "soon"}}) {
    Words all{"run"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"x", "--", "true"});
    CHECK(error_of(all).find(words.front()) != std::string::npos);
  }
}

TEST_CASE("--supersede takes a number behind an equals sign, and no other word") {
  CHECK_FALSE(good({}).plan.claim.supersede);
  REQUIRE(good({"--supersede"}).plan.claim.supersede);
  CHECK_FALSE(good({"--supersede"}).plan.claim.supersede->number);
  CHECK(good({"--supersede=0"}).plan.claim.supersede->number == 0U);
  CHECK(good({"--supersede=812"}).plan.claim.supersede->number == 812U);
  CHECK(good({"--reason", "--supersede"}).plan.claim.supersede == std::nullopt);
  CHECK(good({"--supersede", "--superseded-exit-code", "9"}).waiting.superseded_code == 9);
  CHECK(good({"--reason", "--supersede", "--wait", "9"}).plan.claim.supersede == std::nullopt);
  for (const char* word : {"--supersede=", "--supersede=x", "--supersede=-1"}) {
    CHECK(error_of({"run", word, "x", "--", "true"}).find("--supersede") != std::string::npos);
  }
  CHECK(error_of({"run", "--supersede", "9", "--", "true"}).find("--supersede=9") !=
        std::string::npos);
  CHECK(error_of({"run", "--superseded-exit-code", "9", "x", "--", "true"})
            .find("needs --supersede") != std::string::npos);
}

TEST_CASE("work that is done once has an exit code, and one holder") {
  CHECK(good({"--once", "k"}).plan.claim.once->key == "k");
  CHECK(good({"--once", "k", "--slots", "1", "--done-exit-code", "7"}).done_code == 7);
  for (const Words& words : {Words{"--once", "k", "--slots", "2"},
                             {"--once-per", "day", "-s"},
                             {"--once-within", "1h", "--format", "plain"},
                             {"--supersede", "--format", "redisson"},
                             {"--done-exit-code", "256"}}) {
    Words all{"run"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"x", "--", "true"});
    CHECK(error_of(all).find(words.front()) != std::string::npos);
  }
}

TEST_CASE(
    "by default a run re-enters and releases when the command ends, and options change both") {
  CHECK(good({}).reentry == Reentry::enter);
  CHECK(good({"--no-reentrant"}).reentry == Reentry::wait);
  CHECK(good({}).plan.until == run::ReleaseAfter::command);
  CHECK(good({"--wait-descendants"}).plan.until == run::ReleaseAfter::descendants);
}

TEST_CASE("-c runs $SHELL, else /bin/sh") {
  auto with_shell = settings({"run", "x", "-c", "a | b"}, bash_getenv);
  REQUIRE(with_shell);
  CHECK(with_shell->plan.argv == Words{"/bin/bash", "-c", "a | b"});
  auto without = settings({"run", "x", "-c", "a | b"});
  REQUIRE(without);
  CHECK(without->plan.argv.front() == "/bin/sh");
}

TEST_CASE("--max-run 0 is no limit, as with timeout(1)") {
  CHECK(good({"--max-run", "1h"}).plan.max_run == Millis(3'600'000));
  CHECK_FALSE(good({"--max-run", "0"}).plan.max_run);
}

TEST_CASE("the record names the command unless it is hidden") {
  Record shown = decode_record(good({"--reason", "why"}).plan.claim.record);
  CHECK(shown.command == "true");
  CHECK(shown.reason == "why");
  CHECK_FALSE(decode_record(good({"--hide-command"}).plan.claim.record).command);
}

TEST_CASE("the owner is fresh for each run") {
  CHECK_FALSE(good({}).plan.claim.owner == good({}).plan.claim.owner);
}
