#pragma once

#include "lock/quorum_ears.hpp"
#include "lock/quorum_member.hpp"
#include "util/random.hpp"

namespace rlock::lock {

// The longest lease over a quorum: for so long a server that lost its memory does not vote.
inline constexpr Millis kLongestQuorumLease{60'000};
// By how much a server's clock may be ahead of another's before that one doubts its tokens.
inline constexpr Millis kLongestClockGap{60'000};

// Whether a quorum can hold what `call` wants; ErrorKind::usage says why not.
util::Status fits_quorum(const AcquireCall& call);

// Where chance and the clock of this host enter. Both may be called from several threads.
struct QuorumSources {
  util::Random& random;
  std::function<uint64_t()> wall_micros;
};

// Three and more independent servers as one: what a majority of them says is so. Exclusive mode
// only, leases of at most kLongestQuorumLease; ErrorKind::usage otherwise. [DESIGN, Servers:
// Quorum; PROTOCOL, Quorum]
class QuorumStore : public LockStore {
 public:
  // A maker for each server; they are called when a server is first needed.
  QuorumStore(std::vector<MakeStore> makers, QuorumSources sources);
  QuorumStore(const QuorumStore&) = delete;
  QuorumStore& operator=(const QuorumStore&) = delete;

  InFlight<AcquireReply> acquire(const AcquireCall& call) override;
  InFlight<RenewReply> renew(const RenewCall& call) override;
  InFlight<ReleaseReply> release(const ReleaseCall& call) override;
  InFlight<CancelReply> cancel(const CancelCall& call) override;
  InFlight<ForceReply> force_unlock(const ForceCall& call) override;
  InFlight<Snapshot> inspect(const InspectCall& call) override;
  InFlight<std::vector<Past>> history(const LockName& name, uint64_t rows) override;
  InFlight<NamesPage> list_names(const std::string& cursor) override;
  InFlight<Wake> wait_for_wake(const LockName& name, const Owner& owner, Millis slice) override;
  std::string server() const override;

 protected:
  std::vector<MakeStore> makers_;
  QuorumSources sources_;
  std::vector<Member> members_;
  Electorate electorate_;

 private:
  // One acquisition: its place in the line and its tries.
  struct Claim {
    Owner owner;
    Ticket ticket;
    uint64_t attempts = 0;
    uint64_t splits = 0;  // in a row
  };
  class Acquiring;

  Claim& claim_of(const AcquireCall& call);

  Ears ears_;
  std::optional<Claim> claim_;
};

}  // namespace rlock::lock
