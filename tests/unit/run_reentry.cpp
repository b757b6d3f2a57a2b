#include <doctest/doctest.h>

#include "run/requests.hpp"
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
