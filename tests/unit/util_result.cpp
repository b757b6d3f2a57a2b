#include "util/result.hpp"

#include <doctest/doctest.h>

TEST_CASE("a Result throws if what it does not have is read") {
  rlock::Result<int> good = 7;
  rlock::Result<int> bad = rlock::Error{rlock::ErrorKind::busy, "busy"};
  CHECK(*good == 7);
  CHECK(bad.error().text == "busy");
  CHECK_THROWS_AS(good.error(), std::bad_variant_access);
  CHECK_THROWS_AS(*bad, std::bad_variant_access);
  CHECK_THROWS_AS(bad.operator->(), std::bad_variant_access);
}
