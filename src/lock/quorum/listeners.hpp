#pragma once

#include "lock/quorum/merge.hpp"

namespace rlock::lock {

// The wake lists of an owner at all servers, over separate connections that stay blocked from one
// wait to the next. A wake is a hint: enough of them start another try at once, a single one after
// a moment.
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
