#pragma once

#include <vector>

#include "fake_redis/scripts.hpp"
#include "model/world.hpp"
#include "support/changed_scripts.hpp"

namespace rlock::model {

struct Done {
  Memory memory;
  Reply reply;
};

// The real scripts over keys in memory.
class Server {
 public:
  explicit Server(const std::vector<test::TextChange>& changes) : scripts_(changes) {}
  // A request on the memory of a world, at its time.
  Done run(const World& world, const Request& request);
  bool changes_applied() const { return scripts_.all_applied(); }

 private:
  test::ScriptSet scripts_;
  fake::ScriptEngine engine_;
};

}  // namespace rlock::model
