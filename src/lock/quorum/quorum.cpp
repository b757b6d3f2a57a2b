#include "lock/quorum/quorum.hpp"

#include <algorithm>
#include <cstdint>

#include "lock/quorum/acquire.hpp"
#include "lock/quorum/closure.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

// Servers that disagree about the waiters would cut their pages at different positions: one page.
constexpr uint64_t kWholeListing = 4096;

std::vector<Member> members_of(const std::vector<MakeServer>& makers) {
  std::vector<Member> members;
  for (const MakeServer& make : makers) members.push_back({make()});
  return members;
}

Quorum quorum_of(const std::vector<Member>& members) {
  Quorum quorum;
  for (const Member& member : members) quorum.servers.push_back(member.store->server());
  return quorum;
}

// Whether the result counts as soon as it is certain, or the servers that reply soon are waited
// for.
enum class WaitFor { majority, everyone };

// A request to all servers, whose replies are merged into one.
template <class T>
class QuorumRequest final : public Reply<T> {
 public:
  QuorumRequest(std::vector<Member>& members, const Quorum& quorum, RequestMaker<T> make_request,
                Millis limit, OnPending on_pending, WaitFor wait_for)
      : broadcast_(members, std::move(make_request), limit, on_pending),
        quorum_(quorum),
        wait_for_(wait_for) {}

  void wants(std::vector<pollfd>& out) const override { broadcast_.wants(out); }
  TimePoint due() const override {
    return result_ ? broadcast_.due() : std::min(broadcast_.due(), close_at_);
  }

  bool advance(TimePoint now) override {
    broadcast_.advance(now);
    if (result_) return true;
    bool enough = count_answers(broadcast_.replies()) >= quorum_.majority();
    if (wait_for_ == WaitFor::everyone && enough) {
      close_at_ = std::min(close_at_, now + timing::kStragglerTime);
    }
    bool closed = broadcast_.open() == 0 || now >= close_at_;
    result_ = merge_replies(broadcast_.replies(), quorum_,
                            closed ? Collecting::closed : Collecting::open);
    return result_.has_value();
  }

  bool has_stragglers() const override { return broadcast_.open() > 0; }
  Answered answered() const override { return broadcast_.answered(); }
  Result<T> take() override { return *std::move(result_); }

 private:
  Broadcast<T> broadcast_;
  const Quorum& quorum_;
  WaitFor wait_for_;
  TimePoint close_at_ = TimePoint::max();
  std::optional<Result<T>> result_;
};

// An inspector's request: a server that replies soon is waited for.
template <class T>
InFlight<T> inspect_everywhere(std::vector<Member>& members, const Quorum& quorum,
                               std::function<InFlight<T>(LockInspector& store, size_t)> ask) {
  auto make_request = [ask = std::move(ask)](LockInspector& store, size_t member, TimePoint) {
    return ask(store, member);
  };
  return std::make_unique<QuorumRequest<T>>(members, quorum, make_request,
                                            timing::kQuorumInspectLimit, OnPending::finish,
                                            WaitFor::everyone);
}

// The confirmations of a grant for which it did not wait.
class GrantCompletion final : public Reply<GrantReach> {
 public:
  explicit GrantCompletion(std::unique_ptr<Broadcast<RenewReply>> confirming)
      : confirming_(std::move(confirming)) {
    confirming_->ask_rest();
  }

  void wants(std::vector<pollfd>& out) const override { confirming_->wants(out); }
  TimePoint due() const override { return std::min(confirming_->due(), close_at_); }
  bool advance(TimePoint now) override {
    close_at_ = std::min(close_at_, now + timing::kStragglerTime);
    confirming_->advance(now);
    return confirming_->open() == 0 || now >= close_at_;
  }
  Result<GrantReach> take() override {
    const auto& replies = confirming_->replies();
    return count_renewed(replies) == replies.size() ? GrantReach::everywhere : GrantReach::majority;
  }

 private:
  std::unique_ptr<Broadcast<RenewReply>> confirming_;
  TimePoint close_at_ = TimePoint::max();
};

Error unsupported(const char* verb, const LockName& name, const char* why) {
  return {ErrorKind::usage,
          std::string("cannot ") + verb + " \"" + name.text() + "\" with several servers: " + why};
}

InspectCall whole_listing(InspectCall call) {
  call.holders_page = kWholeListing;
  if (call.waiters_page > 0) call.waiters_page = kWholeListing;
  return call;
}

constexpr const char* kTooLong = "--ttl must be at most 60s";

}  // namespace

Status fits_quorum(const AcquireCall& call) {
  if (call.limit != Limit::exclusive()) {
    return unsupported("acquire", call.name, "--slots and --shared work with one server only");
  }
  if (call.supersede) {
    return unsupported("acquire", call.name, "--supersede works with one server only");
  }
  if (call.while_closed) {
    return unsupported("acquire", call.name, "--while-closed works with one server only");
  }
  if (call.ttl > timing::kLongestQuorumLease) return unsupported("acquire", call.name, kTooLong);
  return Done{};
}

// A holder of the lock listens no more.
class QuorumStore::Acquiring final : public QuorumAcquire {
 public:
  Acquiring(QuorumStore& store, Params one)
      : QuorumAcquire(store.members(), store.quorum_, store.sources_.random, std::move(one)),
        store_(store) {}

  Result<AcquireReply> take() override {
    auto reply = QuorumAcquire::take();
    if (reply && std::holds_alternative<Granted>(*reply)) {
      store_.listeners_.close();
      store_.confirming_ = take_confirmations();
    }
    return reply;
  }

 private:
  QuorumStore& store_;
};

QuorumStore::QuorumStore(std::vector<MakeServer> makers, QuorumSources sources)
    : makers_(std::move(makers)),
      sources_(std::move(sources)),
      members_(members_of(makers_)),
      quorum_(quorum_of(members_)),
      listeners_(makers_, quorum_) {}

// The open confirmations of the last grant become earlier requests like any others.
std::vector<Member>& QuorumStore::members() {
  confirming_.reset();
  return members_;
}

InFlight<GrantReach> QuorumStore::complete_grant() {
  if (!confirming_) return nullptr;
  return std::make_unique<GrantCompletion>(std::move(confirming_));
}

QuorumStore::Acquisition& QuorumStore::acquisition_of(const AcquireCall& call) {
  if (!acquisition_ || acquisition_->owner != call.owner) {
    const auto earlier = static_cast<uint64_t>(std::chrono::microseconds(call.urgent).count());
    const uint64_t now = sources_.wall_micros();
    acquisition_ = Acquisition{call.owner, {now - std::min(earlier, now - 1)}};
  }
  if (call.ticket.value != 0) acquisition_->ticket = call.ticket;
  return *acquisition_;
}

InFlight<AcquireReply> QuorumStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return std::make_unique<ReadyReply<AcquireReply>>(std::move(fit).error());
  }
  Acquisition& acquisition = acquisition_of(call);
  AcquireCall numbered = call;
  numbered.ticket = acquisition.ticket;
  numbered.attempt = ++acquisition.attempts;
  numbered.forgotten = acquisition.forgotten;
  numbered.urgent = Millis(0);  // its ticket has it
  return std::make_unique<Acquiring>(
      *this, QuorumTry::Params{std::move(numbered), acquisition.ties, &acquisition.forgotten});
}

InFlight<RenewReply> QuorumStore::renew(const RenewCall& call) {
  if (call.ttl > timing::kLongestQuorumLease) {
    return std::make_unique<ReadyReply<RenewReply>>(unsupported("renew", call.name, kTooLong));
  }
  // A holder that may have lost the lock puts nothing back.
  auto make_request = [call](LockStore& store, size_t, TimePoint now) {
    RenewCall one = call;
    if (now >= call.valid_until) one.token = {};
    one.ahead = timing::kLongestClockGap;
    return store.renew(one);
  };
  return std::make_unique<QuorumRequest<RenewReply>>(members(), quorum_, make_request,
                                                     timing::server_limit(call.ttl),
                                                     OnPending::finish, WaitFor::majority);
}

InFlight<ReleaseReply> QuorumStore::release(const ReleaseCall& call) {
  auto make_request = [call, own = acquired_here(call.owner), begun = std::optional<TimePoint>()](
                          LockServer& store, size_t, TimePoint now) mutable {
    if (!begun) begun = now;
    ReleaseCall late = call;
    if (late.once) late.once->asked += std::chrono::duration_cast<Millis>(now - *begun);
    // A server that this process did not reach may be there again: each mark counts.
    if (!own || late.once) return store.release(late);
    return where_reached<ReleaseReply>(store, [&](auto& one) { return one.release(late); });
  };
  return std::make_unique<QuorumRequest<ReleaseReply>>(members(), quorum_, make_request,
                                                       timing::kQuorumReleaseLimit,
                                                       OnPending::abandon, WaitFor::majority);
}

InFlight<CancelReply> QuorumStore::cancel(const CancelCall& call) {
  auto make_request = [call, own = acquired_here(call.owner)](LockServer& store, size_t,
                                                              TimePoint) {
    if (!own) return store.cancel(call);
    return where_reached<CancelReply>(store, [&](auto& one) { return one.cancel(call); });
  };
  return std::make_unique<QuorumRequest<CancelReply>>(members(), quorum_, make_request,
                                                      timing::kQuorumReleaseLimit,
                                                      OnPending::abandon, WaitFor::everyone);
}

// A server that got the majority's token late has one of its own.
InFlight<ForceReply> QuorumStore::force_unlock(const ForceCall& call) {
  ForceCall unchecked = call;
  for (ForceTarget& target : unchecked.targets) target.token = {};
  return inspect_everywhere<ForceReply>(members(), quorum_, [unchecked](auto& store, size_t) {
    return store.force_unlock(unchecked);
  });
}

InFlight<Snapshot> QuorumStore::inspect(const InspectCall& call) {
  return inspect_everywhere<Snapshot>(
      members(), quorum_,
      [whole = whole_listing(call)](auto& store, size_t) { return store.inspect(whole); });
}

InFlight<ClosureReply> QuorumStore::set_closure(const ClosureCall& call) {
  return set_closure_at_all(members(), quorum_, call);
}

InFlight<Forgotten> QuorumStore::forget(const ForgetCall& call) {
  return forget_at_all(members(), quorum_, call);
}

InFlight<std::vector<Result<Snapshot>>> QuorumStore::inspect_all(
    const std::vector<InspectCall>& calls) {
  std::vector<InspectCall> whole;
  for (const InspectCall& call : calls) whole.push_back(whole_listing(call));
  return inspect_everywhere<std::vector<Result<Snapshot>>>(
      members(), quorum_, [whole](auto& store, size_t) { return store.inspect_all(whole); });
}

InFlight<HistoryRows> QuorumStore::history(const LockName& name, uint64_t rows) {
  return inspect_everywhere<HistoryRows>(
      members(), quorum_, [=](auto& store, size_t) { return store.history(name, rows); });
}

InFlight<std::vector<Result<HistoryRows>>> QuorumStore::histories(
    const std::vector<LockName>& names, uint64_t rows) {
  return inspect_everywhere<std::vector<Result<HistoryRows>>>(
      members(), quorum_, [=](auto& store, size_t) { return store.histories(names, rows); });
}

InFlight<NamesPage> QuorumStore::list_names(const std::string& cursor) {
  return inspect_everywhere<NamesPage>(members(), quorum_, [cursor](auto& store, size_t member) {
    auto own = cursor_at(cursor, member);
    return own ? store.list_names(*own) : nullptr;
  });
}

InFlight<Wake> QuorumStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return listeners_.listen(name, owner, slice);
}

std::string QuorumStore::server() const {
  std::string text;
  for (const std::string& server : quorum_.servers) {
    text += (text.empty() ? "" : ",") + server;
  }
  return text;
}

}  // namespace rlock::lock
