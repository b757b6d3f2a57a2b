#pragma once

#include <optional>
#include <string>
#include <string_view>

// Percent-encoding: a byte is written as `%` and two hexadecimal digits.
namespace rlock::util {

// Letters, digits and the characters of `kept` stay as they are.
std::string percent_encoded(std::string_view text, std::string_view kept = {});

// nullopt for a '%' without two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace rlock::util
