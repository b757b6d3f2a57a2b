#pragma once

#include <deque>
#include <string>
#include <vector>

#include "redis/store/redis_store.hpp"

namespace rlock::test {

// A change in the text of the scripts, to see that a check notices it.
struct TextChange {
  std::string from;
  std::string to;
};

// The native scripts as the stores send them and the servers know them.
class ScriptSet {
 public:
  // With `changes`; and with `always`, which need no place in them.
  explicit ScriptSet(const std::vector<TextChange>& changes = {},
                     const std::vector<TextChange>& always = {});
  ScriptSet(const ScriptSet&) = delete;
  ScriptSet& operator=(const ScriptSet&) = delete;

  const redis::Scripts& for_stores() const { return for_stores_; }
  const std::vector<lua::Script>& for_servers() const { return for_servers_; }
  // Whether every one of `changes` was applied: one that was not would prove nothing.
  bool all_applied() const { return all_applied_; }

 private:
  // Under a digest that no server knows, if it was changed.
  lua::Script kept(const lua::Script& script, std::string text);

  std::deque<std::string> texts_;  // stay where they are
  redis::Scripts for_stores_;
  std::vector<lua::Script> for_servers_;
  bool all_applied_ = true;
};

}  // namespace rlock::test
