#pragma once

#include <cstdint>

#include "lock/quorum/quorum.hpp"
#include "lock/quorum/try.hpp"

namespace rlock::lock {

// A try of Redlock: the lock is held if a majority has granted it and some of the lease is left.
// Otherwise it is cancelled at every server.
class RedlockAcquire final : public QuorumTry {
 public:
  using QuorumTry::QuorumTry;

 private:
  void on_granted(const Summary& totals, TimePoint now) override;
  void on_not_granted(const Summary& totals, TimePoint now) override;
  void try_again(const Summary& totals, TimePoint now);
  void cancel_try(Result<AcquireReply> then, TimePoint now, Millis pause = Millis(0));
};

// Locks that other clients hold on three or more independent servers: Redlock. There is no queue,
// no token and no record of earlier owners. Therefore each try has its own owner, and a renewal
// only extends: it acquires nothing if the lease is gone. Its members are stores of the plain
// format. [docs/PROTOCOL.md, "Other clients' formats"]
class RedlockStore final : public QuorumStore {
 public:
  using QuorumStore::QuorumStore;

  // Granted contains the owner: the first try has the caller's owner, and each further try a fresh
  // one.
  InFlight<AcquireReply> acquire(const AcquireCall& call) override;
  // Cancels the owner of the last try if `call` names the caller's owner.
  InFlight<CancelReply> cancel(const CancelCall& call) override;
  InFlight<GrantReach> complete_grant() override;
  // ErrorKind::usage, from the members.
  InFlight<HistoryRows> history(const LockName& name, uint64_t rows) override;
  InFlight<NamesPage> list_names(const std::string& cursor) override;
  InFlight<Wake> wait_for_wake(const LockName& name, const Owner& owner, Millis slice) override;
};

}  // namespace rlock::lock
