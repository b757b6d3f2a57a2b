#pragma once

#include <array>
#include <string_view>

namespace rlock::sim {

struct ScriptText {
  std::string_view sha1;
  std::string_view text;
};

// The scripts of another version of rlock, in the order of redis::Scripts.
std::array<ScriptText, 9> other_scripts();

}  // namespace rlock::sim
