#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text from servers and users is hostile until it went through here.
namespace rlock::util {

// Length in bytes of the well-formed UTF-8 character at the front of text; 0 when there is none.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// Valid UTF-8: each byte that is not part of a well-formed character becomes U+FFFD.
std::string to_utf8(std::string_view text);

// Safe on a terminal: control characters (C0, DEL, C1), line and paragraph separators, bidi marks
// and stray bytes are written as \xHH or \u{HEX}.
std::string printable(std::string_view text);

// ASCII letters in lower case, all other bytes as they are.
std::string lower_case(std::string_view text);

// At most `width` characters of text, the last one an ellipsis where something was cut.
std::string shortened(std::string_view text, size_t width);

// Whether all of `text` fits a pattern in which `*` stands for anything and `?` for one character.
bool matches(std::string_view pattern, std::string_view text);

// Characters (code points), not bytes.
size_t character_count(std::string_view text);

}  // namespace rlock::util
