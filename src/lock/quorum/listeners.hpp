#pragma once

#include "lock/quorum/merge.hpp"

namespace rlock::lock {

// What an owner listens on at every server, over connections of their own that stay blocked from
// one wait to the next. A wake is a hint: enough of them make another try worth it at once, one
// alone after a moment.
class WakeListeners {
 public:
  WakeListeners(const std::vector<MakeServer>& makers, const Quorum& quorum)
      : makers_(makers), quorum_(quorum) {}

  InFlight<Wake> listen(const LockName& name, const Owner& owner, Millis slice);
  // Closes the connections: this owner is blocked at no server any more.
  void close() { entries_.clear(); }

 private:
  class WakeWait;
  struct Listener {
    std::unique_ptr<LockStore> store;
    InFlight<Wake> request{};
    bool failed = false;  // failed in this wait
  };

  const std::vector<MakeServer>& makers_;
  const Quorum& quorum_;
  std::vector<Listener> entries_;
  std::optional<Owner> owner_;
};

}  // namespace rlock::lock
