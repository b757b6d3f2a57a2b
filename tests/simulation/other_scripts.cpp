#include "simulation/other_scripts.hpp"

// The build embeds scripts in the namespace lua, where those of today's version are.
#define lua other_lua
#include OTHER_SCRIPTS

namespace rlock::sim {

std::array<ScriptText, 9> other_scripts() {
  const auto text_of = [](const other_lua::Script& script) {
    return ScriptText{script.sha1, script.text};
  };
  using namespace other_lua;
  return {text_of(acquire), text_of(heartbeat),    text_of(renew),
          text_of(release), text_of(force_unlock), text_of(inspect),
          text_of(forget),  text_of(closure),      text_of(first)};
}

}  // namespace rlock::sim
