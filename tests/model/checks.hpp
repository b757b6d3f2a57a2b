#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/world.hpp"

// The invariants, as a perfect observer checks them. Each returns the one that is broken, or "".
namespace rlock::model {

// One script: the world before and after it, what was asked, and what it answered.
class ScriptCheck {
 public:
  ScriptCheck(const World& before, World& after, const Request& request, const Reply& reply)
      : before_(before),
        after_(after),
        was_(*before.memory),
        is_(*after.memory),
        request_(request),
        reply_(reply),
        now_(before.now) {}

 protected:
  static bool contains(const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }

  const World& before_;
  World& after_;
  const Memory& was_;
  const Memory& is_;
  const Request& request_;
  const Reply& reply_;
  Moment now_;
};

// What a script did to `before`; fills in what `after` is to remember of it.
std::string check_script(const World& before, World& after, const Request& request,
                         const Reply& reply);

// The same for what is done once (D), and for what supersedes others (P).
std::string check_work(const World& before, World& after, const Request& request,
                       const Reply& reply);

// M: an owner that believes to hold the lock holds it.
std::string check_exclusion(const World& world);

}  // namespace rlock::model
