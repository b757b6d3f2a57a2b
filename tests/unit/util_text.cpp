#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "util/text.hpp"

using namespace std::string_literals;
using namespace rlock::util;

TEST_CASE("hostile bytes become valid UTF-8") {
  CHECK(to_utf8("plain") == "plain");
  CHECK(to_utf8("gr\xC3\xBC\xC3\x9F") == "gr\xC3\xBC\xC3\x9F");
  for (const char* bad :
       {"\xFF", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    CHECK_FALSE(is_utf8(bad));
    CHECK(is_utf8(to_utf8("a"s + bad + "b")));
  }
}

TEST_CASE("no control sequence of a terminal gets through") {
  CHECK(printable("a\x1B[31mb\n") == "a\\x1b[31mb\\x0a");
  CHECK(printable("nul\0byte"s) == "nul\\x00byte");
  CHECK(printable("\x7F\xC2\x9B") == "\\x7f\\u{9b}");
  CHECK(printable("\xE2\x80\xAE"
                  "evil") == "\\u{202e}evil");
  CHECK(printable("\xFF\xC3") == "\\xff\\xc3");
  CHECK(printable("f\xC3\xBC\xE2\x82\xAC") == "f\xC3\xBC\xE2\x82\xAC");
}

TEST_CASE("text is cut and filled by the columns that it takes, never inside a character") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcd", 3) == "ab\xE2\x80\xA6");
  CHECK(shortened("\xC3\xBC\xC3\xBC\xC3\xBC", 2) == "\xC3\xBC\xE2\x80\xA6");
  CHECK(shortened("abc", 0).empty());
  CHECK(display_width("\u65e5\u672c") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(shortened("\u65e5\u672c\u8a9e", 4) == "\u65e5\u2026");
  CHECK(padded("ab", 4) == "ab  ");
}

TEST_CASE("a text is split at a separator, and every separator counts") {
  using Pieces = std::vector<std::string_view>;
  CHECK(split("", ',') == Pieces{""});
  CHECK(split("a", ',') == Pieces{"a"});
  CHECK(split("a,,b,", ',') == Pieces{"a", "", "b", ""});
  std::string_view rest = "a  b";
  CHECK(take_until(rest, ' ') == "a");
  CHECK(take_until(rest, ' ').empty());
  CHECK(rest == "b");
  CHECK(take_until(rest, ' ') == "b");
  CHECK(rest.empty());
  CHECK(take_until(rest, ' ').empty());
}

TEST_CASE("in a pattern * stands for any text, ? for one character") {
  for (auto [pattern, text] : {std::pair{"team-1/*", "team-1/deploy"},
                               {"*", ""},
                               {"*", "a/b"},
                               {"a*b*c", "a-b-b-c"},
                               {"a*b*c", "abbc"},
                               {"f?x", "f\xC3\xBCx"},
                               {"??", "ab"},
                               {"*.sql", "x.sql.sql"},
                               {"a*b", "a*b"}}) {
    CAPTURE(pattern);
    CHECK(matches(pattern, text));
  }
  for (auto [pattern, text] : {std::pair{"team-1/*", "team-2/deploy"},
                               {"", "a"},
                               {"a", ""},
                               {"?", ""},
                               {"a*b", "abc"},
                               {"*x", "y"},
                               {"f?x", "fx"}}) {
    CAPTURE(pattern);
    CHECK_FALSE(matches(pattern, text));
  }
}

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

TEST_CASE("the digits at the front of a text are read as a number") {
  CHECK(leading_digits("7.2.4") == "7");
  CHECK(leading_digits("20-rc1") == "20");
  CHECK(leading_digits("42") == "42");
  CHECK(leading_digits("-1").empty());
}
