#include <doctest/doctest.h>

#include <string>

#include "lock/types.hpp"

using namespace rlock::lock;

TEST_CASE("names are 1-200 bytes of UTF-8 without control characters or braces") {
  for (const std::string good : {"a", "nightly backup", "db/eu-1", "\xC3\xBC", "-x", "."}) {
    CHECK_MESSAGE(LockName::parse(good), good);
  }
  CHECK(LockName::parse(std::string(200, 'x')));
  for (const std::string& bad :
       {std::string(), std::string(201, 'x'), std::string("a\nb"), std::string("a\x7F"),
        std::string("a{b"), std::string("}"), std::string("\xC2\x85"), std::string("\xFF"),
        std::string("nul\0", 4)}) {
    auto name = LockName::parse(bad);
    REQUIRE(!name);
    CHECK(name.error().kind == rlock::ErrorKind::usage);
    CHECK(name.error().text.find('\n') == std::string::npos);
  }
}

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
}

TEST_CASE("the mode follows from the limit") {
  CHECK(Limit::exclusive().mode() == Mode::exclusive);
  CHECK(Limit::slots(1).mode() == Mode::exclusive);
  CHECK(Limit::slots(2).mode() == Mode::slots);
  CHECK(Limit::shared().mode() == Mode::shared);
}
