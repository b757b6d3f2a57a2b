#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lock/inspector.hpp"
#include "redis/store/redis_store.hpp"

// What can be broken on purpose, to see that the checks notice it.
namespace rlock::sim {

// A rule of the client that is left out.
enum class ClientRule {
  none,  // all are kept
  renews,
  ends_the_command_in_time,
  has_a_guard,
  allows_for_drift,
  writes_the_token_back,
  passes_over_members_that_restarted,
  needs_a_majority,
  starts_when_confirmed,
  believes_confirmed_renewals_alone,
};

// A change in the text of a script.
struct TextChange {
  std::string from;
  std::string to;
};

struct Broken {
  ClientRule client = ClientRule::none;
  std::vector<TextChange> scripts{};
};

// The scripts as the stores send them and the servers know them.
class ScriptSet {
 public:
  explicit ScriptSet(const std::vector<TextChange>& changes);
  ScriptSet(const ScriptSet&) = delete;
  ScriptSet& operator=(const ScriptSet&) = delete;

  const redis::Scripts& for_stores() const { return for_stores_; }
  const std::vector<lua::Script>& for_servers() const { return for_servers_; }
  bool all_applied() const { return all_applied_; }

 private:
  lua::Script changed(const lua::Script& script, const std::vector<TextChange>& changes,
                      std::vector<bool>& applied);

  std::deque<std::string> texts_;  // stay where they are
  redis::Scripts for_stores_;
  std::vector<lua::Script> for_servers_;
  bool all_applied_ = true;
};

// A store that breaks a rule; `store` itself where that is kept elsewhere.
std::unique_ptr<lock::LockServer> break_member(std::unique_ptr<lock::LockServer> store,
                                               ClientRule rule);
std::unique_ptr<lock::LockServer> break_store(std::unique_ptr<lock::LockServer> store,
                                              ClientRule rule);

}  // namespace rlock::sim
