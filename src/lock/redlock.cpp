#include "lock/redlock.hpp"

#include "lock/redlock_acquire.hpp"
#include "lock/refused.hpp"

namespace rlock::lock {

InFlight<AcquireReply> RedlockStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return std::make_unique<Refused<AcquireReply>>(std::move(fit).error());
  }
  if (claim_ && claim_->owner == call.owner) {
    claim_->tried = Owner::fresh(sources_.random);
  } else {
    claim_ = Claim{call.owner, call.owner};
  }
  AcquireCall one = call;
  one.owner = claim_->tried;
  return std::make_unique<RedlockAcquire>(members_, electorate_, sources_.random,
                                          QuorumTry::Try{std::move(one), claim_->splits});
}

InFlight<CancelReply> RedlockStore::cancel(const CancelCall& call) {
  CancelCall tried = call;
  if (claim_ && claim_->owner == call.owner) tried.owner = claim_->tried;
  return QuorumStore::cancel(tried);
}

InFlight<std::vector<Past>> RedlockStore::history(const LockName& name, uint64_t rows) {
  return members_.front().store->history(name, rows);
}

InFlight<NamesPage> RedlockStore::list_names(const std::string& cursor) {
  return members_.front().store->list_names(cursor);
}

InFlight<Wake> RedlockStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return members_.front().store->wait_for_wake(name, owner, slice);
}

}  // namespace rlock::lock
