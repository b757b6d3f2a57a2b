#pragma once

#include "lock/store.hpp"

namespace rlock::lock {

// Nobody's lock: grants all and asks no server. Under it a command runs unprotected, but
// supervised like any other.
class NoStore final : public LockStore {
 public:
  InFlight<AcquireReply> acquire(const AcquireCall& call) override;
  InFlight<RenewReply> renew(const RenewCall& call) override;
  InFlight<ReleaseReply> release(const ReleaseCall& call) override;
  InFlight<CancelReply> cancel(const CancelCall& call) override;
  // Never done: nobody wakes.
  InFlight<Wake> wait_for_wake(const LockName& name, const Owner& owner, Millis slice) override;
  std::string server() const override { return "no server"; }
};

}  // namespace rlock::lock
