#pragma once

#include <cstdint>

#include "lock/quorum/merge.hpp"
#include "util/random.hpp"

namespace rlock::lock {

// Whether a quorum can provide what `call` asks for; ErrorKind::usage with the reason if not.
Status fits_quorum(const AcquireCall& call);

// The sources of randomness and of this host's time. Several threads may call both.
struct QuorumSources {
  util::Random& random;
  std::function<uint64_t()> wall_micros;
};

// The wake lists of an owner at all servers, over separate connections that stay blocked from one
// wait to the next. A wake is a hint: enough wakes start another try immediately, a single wake
// after a moment.
class WakeListeners {
 public:
  WakeListeners(const std::vector<MakeServer>& makers, const Quorum& quorum)
      : makers_(makers), quorum_(quorum) {}

  InFlight<Wake> listen(const LockName& name, const Owner& owner, Millis slice);
  // Closes the connections, so that this owner is no longer blocked at any server.
  void close() { entries_.clear(); }

 private:
  class WakeWait;
  struct Listener {
    std::unique_ptr<LockStore> store;
    InFlight<Wake> request{};
  };

  const std::vector<MakeServer>& makers_;
  const Quorum& quorum_;
  std::vector<Listener> entries_;
  std::optional<Owner> owner_;
};

// Combines three or more independent servers: a majority of them decides. Exclusive mode only,
// leases of at most timing::kLongestQuorumLease; ErrorKind::usage otherwise. [docs/PROTOCOL.md,
// "Quorum"]
class QuorumStore : public LockServer {
 public:
  // Takes a maker for each server; a maker is called when its server is first needed.
  QuorumStore(std::vector<MakeServer> makers, QuorumSources sources);
  QuorumStore(const QuorumStore&) = delete;
  QuorumStore& operator=(const QuorumStore&) = delete;

  InFlight<AcquireReply> acquire(const AcquireCall& call) override;
  InFlight<RenewReply> renew(const RenewCall& call) override;
  InFlight<ReleaseReply> release(const ReleaseCall& call) override;
  InFlight<CancelReply> cancel(const CancelCall& call) override;
  InFlight<ForceReply> force_unlock(const ForceCall& call) override;
  InFlight<Snapshot> inspect(const InspectCall& call) override;
  InFlight<ClosureReply> set_closure(const ClosureCall& call) override;
  InFlight<Forgotten> forget(const ForgetCall& call) override;
  InFlight<Snapshots> inspect_all(const std::vector<InspectCall>& calls) override;
  InFlight<HistoryRows> history(const LockName& name, uint64_t rows) override;
  InFlight<Histories> histories(const std::vector<LockName>& names, uint64_t rows) override;
  InFlight<NamesPage> list_names(const std::string& cursor) override;
  InFlight<Wake> wait_for_wake(const LockName& name, const Owner& owner, Millis slice) override;
  std::string server() const override;
  InFlight<GrantReach> complete_grant() override;

 protected:
  // One acquisition: its position in the queue and its tries.
  struct Acquisition {
    Owner owner;
    Owner tried;  // of the last try: with Redlock each further try has its own owner
    Ticket ticket{};
    uint64_t attempts = 0;
    uint64_t ties = 0;  // in a row
    Token forgotten{};  // the token up to which marks of `once` are forgotten
  };

  std::vector<MakeServer> makers_;
  QuorumSources sources_;
  std::vector<Member> members_;
  Quorum quorum_;
  std::optional<Acquisition> acquisition_;

 private:
  bool acquired_here(const Owner& owner) const {
    return acquisition_ && (acquisition_->owner == owner || acquisition_->tried == owner);
  }

  struct Look;

  Acquisition& acquisition_of(const AcquireCall& call);
  std::vector<Member>& members();
  template <class T, class R = T>
  InFlight<R> ask_all(RequestMaker<T> ask, Millis limit, OnPending on_pending, WaitFor wait_for,
                      typename QuorumRequest<T, R>::Merge merge);
  // An operator's request: waits for servers that reply soon.
  template <class T, class R = T>
  InFlight<R> inspect_with(RequestMaker<T> ask, typename QuorumRequest<T, R>::Merge merge);
  template <class T>
  InFlight<T> inspect_with(RequestMaker<T> ask);
  // The change that `change` derives from what the servers store; their error if too few servers
  // report it.
  template <class T>
  InFlight<T> look_then(const LockName& name, std::function<InFlight<T>(const Look&)> change);
  static Token last_ended(const Look& look);
  InFlight<ClosureReply> check_closure(const ClosureCall& call, const Replies<ClosureReply>& set);

  WakeListeners listeners_;
  // Completes the last grant, until it is complete or the next request is made.
  std::unique_ptr<Broadcast<RenewReply>> confirming_;
};

}  // namespace rlock::lock
