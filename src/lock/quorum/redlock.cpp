#include "lock/quorum/redlock.hpp"

#include "lock/failed_reply.hpp"
#include "lock/quorum/redlock_acquire.hpp"

namespace rlock::lock {

InFlight<AcquireReply> RedlockStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return std::make_unique<FailedReply<AcquireReply>>(std::move(fit).error());
  }
  if (redlock_acquisition_ && redlock_acquisition_->owner == call.owner) {
    redlock_acquisition_->tried = Owner::fresh(sources_.random);
  } else {
    redlock_acquisition_ = RedlockAcquisition{call.owner, call.owner};
  }
  AcquireCall one = call;
  one.owner = redlock_acquisition_->tried;
  return std::make_unique<RedlockAcquire>(
      members_, quorum_, sources_.random,
      QuorumTry::Params{std::move(one), redlock_acquisition_->ties});
}

InFlight<CancelReply> RedlockStore::cancel(const CancelCall& call) {
  CancelCall tried = call;
  if (redlock_acquisition_ && redlock_acquisition_->owner == call.owner)
    tried.owner = redlock_acquisition_->tried;
  return QuorumStore::cancel(tried);
}

InFlight<std::vector<HistoryRow>> RedlockStore::history(const LockName& name, uint64_t rows) {
  return members_.front().store->history(name, rows);
}

InFlight<NamesPage> RedlockStore::list_names(const std::string& cursor) {
  return members_.front().store->list_names(cursor);
}

InFlight<Wake> RedlockStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return members_.front().store->wait_for_wake(name, owner, slice);
}

}  // namespace rlock::lock
