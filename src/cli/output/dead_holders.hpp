#pragma once

#include <set>
#include <span>
#include <string>

#include "lock/store.hpp"

namespace rlock::cli {

// Finds holders of this host that have died. A process that has exited may have released its lock
// after the server sent the listing, so a holder has died if a later request still finds it.
class DeadHolders {
 public:
  // Sets Holder::died of the holders in a reply whose processes had exited before the request was
  // sent. `holders`: of one lock. Returns whether another process has exited, so that only a
  // further request shows whether it released the lock.
  bool mark(std::span<lock::Holder> holders);

 private:
  std::set<std::string> exited_;  // the owners of the last reply whose processes had exited
};

}  // namespace rlock::cli
