#include <doctest/doctest.h>

#include "lock/types.hpp"

using namespace rlock::lock;

TEST_CASE("owners are 32 hexadecimal digits, fresh each time") {
  rlock::util::SystemRandom random;
  Owner one = Owner::fresh(random);
  CHECK_FALSE(one == Owner::fresh(random));
  auto again = Owner::parse(one.text());
  REQUIRE(again);
  CHECK(*again == one);
  for (const char* bad :
       {"", "0", "0123456789abcdef0123456789abcdeg", "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef0123456789abcdef0"}) {
    CHECK_FALSE(Owner::parse(bad));
  }
  CHECK(Owner::parse("").error().text.find("is its variable set") != std::string::npos);
}

TEST_CASE("the mode follows from the limit") {
  CHECK(Limit::exclusive().mode() == Mode::exclusive);
  CHECK(Limit::slots(1).mode() == Mode::exclusive);
  CHECK(Limit::slots(2).mode() == Mode::slots);
  CHECK(Limit::shared().mode() == Mode::shared);
}
