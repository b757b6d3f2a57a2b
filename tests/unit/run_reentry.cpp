#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "run/requests.hpp"
#include "support/scripted_store.hpp"
#include "util/fd.hpp"
#include "util/random.hpp"

TEST_CASE("a renewal says what a restored lease has; a nested run knows that only of itself") {
  using namespace rlock;
  const auto owner = *lock::Owner::parse("0123456789abcdef0123456789abcdef");
  lock::Claim claim{*lock::LockName::parse("job"), owner};
  claim.once = lock::Once{lock::OnceKind::key, "v17", {}, 3};
  claim.supersede = lock::Supersede{7};
  claim.history_rows = 5;
  const lock::RenewCall outer = run::renew_call(claim, {owner, {42}}, std::nullopt);
  CHECK(outer.once == claim.once);
  CHECK((outer.supersede && outer.supersede->number == 7u));
  CHECK(outer.history_rows == 5u);
  lock::HeldLock inside{owner, {42}};
  util::SystemRandom random;
  inside.entry = lock::Entry::fresh(random);
  const lock::RenewCall nested = run::renew_call(claim, inside, std::nullopt);
  CHECK((!nested.once && !nested.supersede && !nested.history_rows));
}

// Over Sentinel, with a signal that comes while rlock asks whether a failover may lose the release.
TEST_CASE("a signal after a release neither repeats it nor is taken for a silent server") {
  using namespace rlock;
  using namespace std::chrono_literals;
  const lock::SystemPoller poller;
  test::ScriptedStore store(poller);
  store.replies(0ms, lock::ReleaseReply{});
  const util::Fd signals(eventfd(1, EFD_CLOEXEC));
  const lock::ReleaseCall call{*lock::LockName::parse("job"),
                               *lock::Owner::parse("0123456789abcdef0123456789abcdef")};
  int asked = 0;
  SUBCASE("the first of them changes nothing") {
    store.failover_checks.push_back({500ms, Result<Done>(Done{})});
    const auto reply = run::release_until(store, call, poller.now() + 60s,
                                          {signals.get(), [&] {
                                             uint64_t count = 0;
                                             (void)!read(signals.get(), &count, sizeof count);
                                             return ++asked > 1;
                                           }});
    CHECK(reply);
  }
  SUBCASE("one that ends the attempts is named") {
    store.failover_checks.emplace_back();  // no answer
    const auto reply = run::release_until(store, call, poller.now() + 60s, {signals.get(), [&] {
                                                                              ++asked;
                                                                              return true;
                                                                            }});
    REQUIRE_FALSE(reply);
    CHECK(reply.error().text.find("stopped the attempts") != std::string::npos);
  }
  CHECK(asked == 1);
  CHECK(store.released == 1);
}
