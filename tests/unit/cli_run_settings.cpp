#include "cli/settings/run_settings.hpp"

#include <doctest/doctest.h>

#include <map>

#include "cli/options/options.hpp"
#include "cli/output/record.hpp"
#include "run/requests.hpp"
#include "unit/cli_config.hpp"
#include "unit/cli_fixture.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

RunSettings run_with(const test::Words& options) {
  auto got =
      run_settings(test::run_call(options), [](const char*) -> const char* { return nullptr; });
  if (!got) FAIL(got.error().text);
  return *got;
}

}  // namespace

TEST_CASE("the defaults are the documented ones") {
  RunSettings got = run_with({});
  CHECK(got.plan.claim.ttl == Millis(60'000));
  CHECK(got.plan.kill_after == Millis(5'000));
  CHECK(got.plan.claim.queueing == lock::Queueing::wait);
  CHECK(got.plan.on_lost == run::OnLost::terminate);
  CHECK(got.plan.watchdog == lock::Watchdog::renew);
  CHECK_FALSE(got.plan.max_run);
  CHECK_FALSE(got.plan.stop_after);
  CHECK_FALSE(got.waiting.wait);
  CHECK(got.waiting.codes == ExitCodes{.busy = 75, .done = 0, .superseded = 75, .failures = 75});
  CHECK(run_with({"-t", "6s"}).plan.kill_after == Millis(1'000));
  CHECK(run_with({"--stop-after", "20s"}).plan.stop_after == Millis(20'000));
  CHECK_FALSE(run_with({"--stop-after", "0"}).plan.stop_after);
}

TEST_CASE(
    "the reason of a CI job is its address, unless the caller gives one or hides the command") {
  using Variables = std::map<std::string, std::string>;
  auto reason = [](const Variables& given, const test::Words& options = {}) {
    static Variables present;  // a Getenv is a plain function
    present = given;
    auto got = run_settings(test::run_call(options), [](const char* name) -> const char* {
      const auto found = present.find(name);
      return found == present.end() ? nullptr : found->second.c_str();
    });
    if (!got) FAIL(got.error().text);
    return decode_record(got->plan.claim.record).reason;
  };
  const std::string gitlab = "https://gitlab.example.com/shop/web/-/jobs/812";
  CHECK_FALSE(reason({}));
  CHECK(reason({{"CI_JOB_URL", gitlab}}) == gitlab);
  CHECK(reason({{"BUILD_URL", "http://jenkins:8080/job/web/7/"}}) ==
        "http://jenkins:8080/job/web/7/");
  for (const char* variable : {"BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL"}) {
    CHECK(reason({{variable, "https://ci/job/7"}}) == "https://ci/job/7");
  }
  Variables github{{"GITHUB_SERVER_URL", "https://github.com"}, {"GITHUB_REPOSITORY", "shop/web"}};
  CHECK_FALSE(reason(github));
  github["GITHUB_RUN_ID"] = "99";
  CHECK(reason(github) == "https://github.com/shop/web/actions/runs/99");
  CHECK(reason({{"CI_JOB_URL", gitlab}}, {"--reason", "release 7"}) == "release 7");
  CHECK(reason({{"CI_JOB_URL", gitlab}}, {"--reason", ""}) == "");
  CHECK_FALSE(reason({{"CI_JOB_URL", gitlab}}, {"--hide-command"}));
  CHECK(reason({{"BUILD_URL", "https://me:secret@ci/job/7?token=x#y"}}) == "https://ci/job/7");
  for (const std::string& bad :
       {std::string("ftp://ci/7"), std::string("https://"), std::string("https://ci/a b"),
        std::string("https://ci/\x1b[2J"), "https://ci/" + std::string(200, 'x')}) {
    CHECK_FALSE(reason({{"CI_JOB_URL", bad}}));
  }
}

TEST_CASE("the texts of --ttl and --no-renew state what its default, and 5m, survive") {
  auto settings = [](const test::Words& options) {
    const run::Plan plan = run_with(options).plan;
    return run::lease_settings(plan.claim.ttl, plan.claim.replicas, plan.kill_after, plan.watchdog);
  };
  auto survived = [&](const test::Words& options) {
    return util::format_duration(lock::survived_outage(settings(options)));
  };
  const std::string ttl(text_for(row_of(Opt::ttl), CommandId::run).manual);
  CAPTURE(ttl);
  CHECK(test::contains(ttl, "with 60s every outage of up to " + survived({})));
  CHECK(test::contains(ttl, "with 5m of up to " + survived({"-t", "5m"})));
  // A HOT STANDBY, OR LEADER in rlock-recipes(7) has a table of them.
  CHECK(survived({"-t", "15s"}) == "3s");
  CHECK(survived({}) == "40s");
  CHECK(survived({"-t", "5m"}) == "4m38s");
  CHECK(text_for(row_of(Opt::ttl), CommandId::run).fallback == "60s");
  const lock::LeaseMonitor lease(settings({"--no-renew"}), TimePoint(), TimePoint());
  const auto ends = std::chrono::floor<Millis>(lease.terminate_at().time_since_epoch());
  CHECK(test::contains(std::string(text_for(row_of(Opt::no_renew), CommandId::run).help),
                       util::format("(after {}s of 60s)", ends.count() / 1000)));
}

TEST_CASE("modes, --min-hold and --max-queue reach the claim") {
  CHECK(run_with({}).plan.claim.limit == lock::Limit::exclusive());
  CHECK(run_with({"--slots", "1"}).plan.claim.limit == lock::Limit::exclusive());
  CHECK(run_with({"--slots", "1024"}).plan.claim.limit == lock::Limit::slots(1024));
  CHECK(run_with({"-s"}).plan.claim.limit == lock::Limit::shared());
  CHECK(run_with({"--min-hold", "5m"}).plan.claim.min_hold == Millis(300'000));
  CHECK_FALSE(run_with({}).plan.claim.max_queue);
  CHECK(run_with({"--max-queue", "0"}).plan.claim.max_queue == 0U);
  CHECK(run_with({"--max-queue", "3", "-n"}).plan.claim.queueing == lock::Queueing::never);
}

TEST_CASE("--supersede takes a number behind an equals sign, and no other word") {
  CHECK_FALSE(run_with({}).plan.claim.supersede);
  REQUIRE(run_with({"--supersede"}).plan.claim.supersede);
  CHECK_FALSE(run_with({"--supersede"}).plan.claim.supersede->number);
  CHECK(run_with({"--supersede=0"}).plan.claim.supersede->number == 0U);
  CHECK(run_with({"--supersede=812"}).plan.claim.supersede->number == 812U);
  CHECK(run_with({"--reason", "--supersede"}).plan.claim.supersede == std::nullopt);
  CHECK(run_with({"--reason", "--supersede", "--wait", "9"}).plan.claim.supersede == std::nullopt);
}

TEST_CASE("work that is done once may have one slot, which is one holder") {
  CHECK(run_with({"--once", "k"}).plan.claim.once->key == "k");
  CHECK(run_with({"--once", "k", "--slots", "1"}).plan.claim.once->key == "k");
}

TEST_CASE("the KEY of --once may be a number, which is also a period in seconds") {
  CHECK(run_with({"--once", "3600"}).plan.claim.once->key == "3600");
}

TEST_CASE("--exit-code chooses the code of each reason why the command did not run") {
  auto codes = [](test::Words options) {
    const test::Words all{"--once", "k", "--supersede", "--max-failures", "2"};
    options.insert(options.end(), all.begin(), all.end());
    return run_with(options).waiting.codes;
  };
  CHECK(codes({}) == ExitCodes{});
  CHECK(codes({"-E", "7"}) == ExitCodes{.busy = 7});
  CHECK(codes({"--exit-code", "busy=1,done=2,superseded=3,failures=4"}) ==
        ExitCodes{.busy = 1, .done = 2, .superseded = 3, .failures = 4});
  CHECK(codes({"--exit-code", "unavailable=1,denied=0,config=255"}) ==
        ExitCodes{.unavailable = 1, .denied = 0, .config = 255});
  CHECK(codes({"--exit-code", "busy=1", "--exit-code=busy=0,done=255"}) ==
        ExitCodes{.busy = 0, .done = 255});
  CHECK(codes({"-E", "7", "--exit-code", "done=3"}) == ExitCodes{.busy = 7, .done = 3});
}

TEST_CASE("by default a run releases when the command ends, and is not contained") {
  CHECK(run_with({}).plan.until == run::ReleaseAfter::command);
  CHECK(run_with({}).plan.contain == run::Contain::no);
  CHECK(run_with({"--contain"}).plan.contain == run::Contain::with_rights);
  CHECK(run_with({"--contain=user"}).plan.contain == run::Contain::as_user);
  CHECK(run_with({"--wait-descendants"}).plan.until == run::ReleaseAfter::descendants);
}
