#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::cli {

// Texts by the names of the holes that they fill.
using Holes = std::map<std::string, std::string, std::less<>>;

// `source` with each `@NAME@` replaced by the text of that hole, without the text's last newline; a
// NAME is made of letters and spaces. Nothing when a hole has no text.
std::optional<std::string> fill_template(std::string_view source, const Holes& holes);

}  // namespace rlock::cli
