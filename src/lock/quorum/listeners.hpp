#pragma once

#include "lock/quorum/merge.hpp"

namespace rlock::lock {

// What an owner listens on at every server, over connections of their own that stay blocked from
// one wait to the next. A wake is a hint: enough of them say that another try is worth it, one
// alone says so after a moment.
class WakeListeners {
 public:
  WakeListeners(const std::vector<MakeServer>& makers, const Quorum& quorum)
      : makers_(makers), quorum_(quorum) {}

  InFlight<Wake> listen(const LockName& name, const Owner& owner, Millis slice);
  // Hangs up: nobody is blocked at a server any more.
  void close() { listeners_.clear(); }

 private:
  class WakeWait;
  struct Listener {
    std::unique_ptr<LockStore> store;
    InFlight<Wake> request{};
    bool failed = false;  // failed in this wait
  };

  const std::vector<MakeServer>& makers_;
  const Quorum& quorum_;
  std::vector<Listener> listeners_;
  std::optional<Owner> owner_;
};

}  // namespace rlock::lock
