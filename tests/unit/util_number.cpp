#include <doctest/doctest.h>

#include <cstdint>

#include "util/text.hpp"

using rlock::util::leading_digits;
using rlock::util::parse_number;

TEST_CASE("a number is all of a text, and fits its type") {
  CHECK(parse_number<int>("-7") == -7);
  CHECK(parse_number<uint64_t>("18446744073709551615") == UINT64_MAX);
  CHECK(parse_number<unsigned>("fF", 16) == 255U);
  for (const char* text : {"", " 7", "7 ", "+7", "0x7", "7.0", "--7", "-"}) {
    CHECK_FALSE(parse_number<int>(text));
  }
  CHECK_FALSE(parse_number<uint64_t>("-7"));
  CHECK_FALSE(parse_number<uint64_t>("18446744073709551616"));
  CHECK_FALSE(parse_number<uint8_t>("256"));
}

TEST_CASE("the digits at the front of a text") {
  CHECK(leading_digits("7.2.4") == "7");
  CHECK(leading_digits("20-rc1") == "20");
  CHECK(leading_digits("42") == "42");
  CHECK(leading_digits("-1").empty());
}
