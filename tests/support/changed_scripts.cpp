#include "support/changed_scripts.hpp"

namespace rlock::test {
namespace {

uint64_t scripts_changed = 0;

// Whether there was a place for it.
bool apply(const TextChange& change, std::string& text) {
  const auto& [from, to] = change;
  bool applied = false;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
    applied = true;
  }
  return applied;
}

}  // namespace

ScriptSet::ScriptSet(const std::vector<TextChange>& changes,
                     const std::vector<TextChange>& always) {
  std::vector<bool> applied(changes.size(), false);
  for (lua::Script* script : {&for_stores_.acquire, &for_stores_.heartbeat, &for_stores_.renew,
                              &for_stores_.release, &for_stores_.force_unlock, &for_stores_.inspect,
                              &for_stores_.forget, &for_stores_.closure, &for_stores_.first}) {
    std::string text(script->text);
    for (size_t i = 0; i < changes.size(); ++i) {
      if (apply(changes[i], text)) applied[i] = true;
    }
    for (const TextChange& change : always) apply(change, text);
    *script = kept(*script, std::move(text));
    for_servers_.push_back(*script);
  }
  for_servers_.push_back(lua::wake);
  for (const bool one : applied) all_applied_ = all_applied_ && one;
}

lua::Script ScriptSet::kept(const lua::Script& script, std::string text) {
  if (text == script.text) return script;
  const std::string& digest = texts_.emplace_back("changed-" + std::to_string(++scripts_changed));
  return {digest, texts_.emplace_back(std::move(text))};
}

}  // namespace rlock::test
