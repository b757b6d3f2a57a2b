#include "redis/store/mutated.hpp"

#include <array>
#include <cstdlib>
#include <string>

#include "util/mutant.hpp"

namespace rlock::redis {
namespace {

struct ScriptMutant {
  std::string_view name;
  std::string_view from;
  std::string_view to;
};

constexpr std::array<ScriptMutant, 5> kScriptMutants{{
    {"blind_release", "local reply\nlocal line = stamp > 0",
     "call('DEL', HOLDERS, LIMITS)\nlocal reply\nlocal line = stamp > 0"},
    {"token_reset", "math.max(meta.last + 1, now_us)", "meta.last + 1"},
    {"last_come_first_served",
     "call('ZRANGE', QUEUE, 0, 0)[1]\n    if not head then return end\n    local line",
     "call('ZRANGE', QUEUE, -1, -1)[1]\n    if not head then return end\n    local line"},
    {"unclaimed_grant_runs", "if not newcomer then touch() end",
     "if tombstone(owner) == EXPIRED then return {'granted', issue()} end"},
    {"forced_out_put_back",
     "if end_kind and end_kind > REQUEUED then return KINDS[end_kind] end\n"
     "  if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end\n",
     ""},
}};

// A digest that no script has: the text is sent each time.
constexpr std::string_view kUnknownDigest = "0000000000000000000000000000000000000000";

// Replaced texts live as long as the program, as the embedded ones do.
bool replace(lua::Script& script, const ScriptMutant& mutant, std::string& memory) {
  size_t at = script.text.find(mutant.from);
  if (at == std::string_view::npos) return false;
  memory = std::string(script.text).replace(at, mutant.from.size(), mutant.to);
  script = {kUnknownDigest, memory};
  return true;
}

}  // namespace

Scripts mutated(Scripts scripts) {
  static std::array<std::string, 5> memory;
  for (const ScriptMutant& mutant : kScriptMutants) {
    if (util::kLiveMutant == nullptr || mutant.name != util::kLiveMutant) continue;
    bool found = false;
    std::array<lua::Script*, 5> all{&scripts.acquire, &scripts.renew, &scripts.release,
                                    &scripts.force_unlock, &scripts.inspect};
    for (size_t i = 0; i < all.size(); ++i) {
      found = replace(*all[i], mutant, memory[i]) || found;
    }
    if (!found) std::abort();  // the rule has changed its words: a mutant that shows nothing
  }
  return scripts;
}

}  // namespace rlock::redis
