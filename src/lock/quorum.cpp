#include "lock/quorum.hpp"

#include "lock/quorum_acquire.hpp"
#include "lock/quorum_poll.hpp"
#include "lock/refused.hpp"

namespace rlock::lock {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

constexpr Millis kRelease{1000};
constexpr Millis kLook{2000};
// Servers that disagree about who waits would cut their pages at different places: one for all.
constexpr uint64_t kOnePage = 4096;

std::vector<Member> members_of(const std::vector<MakeStore>& makers) {
  std::vector<Member> members;
  for (const MakeStore& make : makers) members.push_back({make()});
  return members;
}

Electorate electorate_of(const std::vector<Member>& members) {
  Electorate electorate;
  for (const Member& member : members) electorate.servers.push_back(member.store->server());
  return electorate;
}

Error unfit(const char* verb, const LockName& name, const char* why) {
  return {ErrorKind::usage,
          std::string("cannot ") + verb + " \"" + name.text() + "\" over several servers: " + why};
}

constexpr const char* kTooLong = "a lease lasts 60s at most there";

}  // namespace

util::Status fits_quorum(const AcquireCall& call) {
  if (call.limit != Limit::exclusive()) {
    return unfit("acquire", call.name, "--slots and --shared would admit too many holders");
  }
  if (call.ttl > kLongestQuorumLease) return unfit("acquire", call.name, kTooLong);
  return util::Done{};
}

// Whoever holds the lock listens no more.
class QuorumStore::Acquiring final : public QuorumAcquire {
 public:
  Acquiring(QuorumStore& store, Try one)
      : QuorumAcquire(store.members_, store.electorate_, store.sources_.random, std::move(one)),
        ears_(store.ears_) {}

  Result<AcquireReply> take() override {
    auto reply = QuorumAcquire::take();
    if (reply && std::holds_alternative<Granted>(*reply)) ears_.close();
    return reply;
  }

 private:
  Ears& ears_;
};

QuorumStore::QuorumStore(std::vector<MakeStore> makers, QuorumSources sources)
    : makers_(std::move(makers)),
      sources_(std::move(sources)),
      members_(members_of(makers_)),
      electorate_(electorate_of(members_)),
      ears_(makers_, electorate_) {}

QuorumStore::Claim& QuorumStore::claim_of(const AcquireCall& call) {
  if (!claim_ || claim_->owner != call.owner) {
    claim_ = Claim{call.owner, {sources_.wall_micros()}};
  }
  if (call.ticket.value != 0) claim_->ticket = call.ticket;
  return *claim_;
}

InFlight<AcquireReply> QuorumStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return std::make_unique<Refused<AcquireReply>>(std::move(fit).error());
  }
  Claim& claim = claim_of(call);
  AcquireCall numbered = call;
  numbered.ticket = claim.ticket;
  numbered.attempt = ++claim.attempts;
  return std::make_unique<Acquiring>(*this, QuorumTry::Try{std::move(numbered), claim.splits});
}

InFlight<RenewReply> QuorumStore::renew(const RenewCall& call) {
  if (call.ttl > kLongestQuorumLease) {
    return std::make_unique<Refused<RenewReply>>(unfit("renew", call.name, kTooLong));
  }
  // A holder that may have lost the lock puts nothing back.
  auto ask = [call](LockStore& store, size_t, TimePoint now) {
    RenewCall one = call;
    if (now >= call.valid_until) one.token = {};
    one.ahead = kLongestClockGap;
    return store.renew(one);
  };
  return std::make_unique<Poll<RenewReply>>(members_, electorate_, ask,
                                            Poll<RenewReply>::Terms{server_limit(call.ttl)});
}

InFlight<ReleaseReply> QuorumStore::release(const ReleaseCall& call) {
  auto ask = [call](LockStore& store, size_t, TimePoint) { return store.release(call); };
  return std::make_unique<Poll<ReleaseReply>>(members_, electorate_, ask,
                                              Poll<ReleaseReply>::Terms{kRelease, Turn::instead});
}

InFlight<CancelReply> QuorumStore::cancel(const CancelCall& call) {
  auto ask = [call](LockStore& store, size_t, TimePoint) { return store.cancel(call); };
  return std::make_unique<Poll<CancelReply>>(
      members_, electorate_, ask,
      Poll<CancelReply>::Terms{kRelease, Turn::instead, Patience::everyone});
}

InFlight<ForceReply> QuorumStore::force_unlock(const ForceCall& call) {
  auto ask = [call](LockStore& store, size_t, TimePoint) { return store.force_unlock(call); };
  return std::make_unique<Poll<ForceReply>>(
      members_, electorate_, ask, Poll<ForceReply>::Terms{kLook, Turn::after, Patience::everyone});
}

InFlight<Snapshot> QuorumStore::inspect(const InspectCall& call) {
  InspectCall whole = call;
  whole.holders_page = kOnePage;
  if (whole.waiters_page > 0) whole.waiters_page = kOnePage;
  auto ask = [whole](LockStore& store, size_t, TimePoint) { return store.inspect(whole); };
  return std::make_unique<Poll<Snapshot>>(
      members_, electorate_, ask, Poll<Snapshot>::Terms{kLook, Turn::after, Patience::everyone});
}

InFlight<std::vector<Past>> QuorumStore::history(const LockName& name, uint64_t rows) {
  auto ask = [name, rows](LockStore& store, size_t, TimePoint) {
    return store.history(name, rows);
  };
  using Rows = std::vector<Past>;
  return std::make_unique<Poll<Rows>>(members_, electorate_, ask,
                                      Poll<Rows>::Terms{kLook, Turn::after, Patience::everyone});
}

InFlight<NamesPage> QuorumStore::list_names(const std::string& cursor) {
  auto ask = [cursor](LockStore& store, size_t member, TimePoint) -> InFlight<NamesPage> {
    auto own = cursor_at(cursor, member);
    return own ? store.list_names(*own) : nullptr;
  };
  return std::make_unique<Poll<NamesPage>>(
      members_, electorate_, ask, Poll<NamesPage>::Terms{kLook, Turn::after, Patience::everyone});
}

InFlight<Wake> QuorumStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return ears_.listen(name, owner, slice);
}

std::string QuorumStore::server() const {
  std::string text;
  for (const std::string& server : electorate_.servers) {
    text += (text.empty() ? "" : ",") + server;
  }
  return text;
}

}  // namespace rlock::lock
