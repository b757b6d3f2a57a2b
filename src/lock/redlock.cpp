#include "lock/redlock.hpp"

#include "lock/redlock_acquire.hpp"
#include "lock/refused.hpp"

namespace rlock::lock {

class RedlockStore::Acquiring final : public Reply<AcquireReply> {
 public:
  Acquiring(RedlockStore& store, Claim& claim, QuorumAcquire::Try one)
      : claim_(claim),
        request_(store.members_, store.electorate_, store.sources_.random, std::move(one)) {}

  void wants(std::vector<pollfd>& out) const override { request_.wants(out); }
  TimePoint due() const override { return request_.due(); }
  bool advance(TimePoint now) override { return request_.advance(now); }
  util::Answered answered() const override { return request_.answered(); }
  util::Result<AcquireReply> take() override {
    claim_.splits = request_.split() ? claim_.splits + 1 : 0;
    return request_.take();
  }

 private:
  Claim& claim_;
  RedlockAcquire request_;
};

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
  return std::make_unique<Acquiring>(*this, *claim_,
                                     QuorumAcquire::Try{std::move(one), claim_->splits});
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
