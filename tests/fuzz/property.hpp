#pragma once

#include <cstdint>
#include <string_view>

// What every target asserts about what it made of hostile bytes. A property that does not hold ends
// the program, as a fuzzer wants it.
namespace rlock::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void require(bool holds, const char* what);

// It has no control characters and no bidirectional marks, except ends of lines. Not by the code
// under test.
bool harmless(std::string_view text);

// One harmless line.
bool harmless_line(std::string_view text);

// One line of ASCII that is JSON.
bool is_json_line(std::string_view text);

}  // namespace rlock::fuzz
