#include "lock/quorum/quorum.hpp"

#include <algorithm>

#include "lock/poller.hpp"
#include "lock/quorum/try.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

// The listing is one page, because servers that disagree about the waiters would split pages at
// different positions.
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

Error unsupported(const char* verb, const LockName& name, const char* why) {
  return {ErrorKind::usage,
          util::format("cannot {} \"{}\" with several servers: {}", verb, name.text(), why)};
}

InspectCall whole_listing(InspectCall call) {
  call.holders_page = kWholeListing;
  if (call.waiters_page > 0) call.waiters_page = kWholeListing;
  return call;
}

template <class T>
typename QuorumRequest<T>::Merge merged_by(const Quorum& quorum) {
  return [&quorum](const Replies<T>& replies, Collecting collecting) {
    return merge_replies(replies, quorum, collecting);
  };
}

std::optional<std::string> id_in(const std::optional<Closure>& closure) {
  return closure ? std::optional(closure->id) : std::nullopt;
}

bool is_done(const std::optional<Result<ClosureReply>>& reply) {
  return reply && *reply && **reply == ClosureReply::done;
}

bool is_changed(const std::optional<Result<ClosureReply>>& reply) {
  return reply && *reply && **reply == ClosureReply::changed;
}

size_t count_done(const Replies<ClosureReply>& set) {
  return static_cast<size_t>(std::count_if(set.begin(), set.end(), is_done));
}

Error too_few_set(const Quorum& quorum, const ClosureCall& call, const Replies<ClosureReply>& set) {
  Error error = too_few_servers(quorum, errors_of(set));
  error.text = util::format("\"{}\" was {} on only {} of {} servers, {} required: {}",
                            call.name.text(), call.id ? "closed" : "opened", count_done(set),
                            quorum.size(), quorum.majority(), error.text);
  return error;
}

// The error after undoing a closure that too few servers have carried out.
Error not_closed(const Quorum& quorum, const ClosureCall& call, const Replies<ClosureReply>& set,
                 const Replies<ClosureReply>& opened) {
  std::vector<std::string> open, closed;
  for (size_t i = 0; i < set.size(); ++i) {
    if (is_done(set[i])) (is_done(opened[i]) ? open : closed).push_back(quorum.servers[i]);
  }
  Error error = too_few_set(quorum, call, set);
  if (!open.empty()) error.text += "; opened again: " + util::joined(open, ", ");
  if (!closed.empty()) error.text += "; still closed: " + util::joined(closed, ", ");
  error.retry = Retry::never;  // its id has ended
  return error;
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

template <class T, class R>
InFlight<R> QuorumStore::ask_all(RequestMaker<T> ask, Millis limit, OnPending on_pending,
                                 WaitFor wait_for, typename QuorumRequest<T, R>::Merge merge) {
  auto broadcast = std::make_unique<Broadcast<T>>(members(), std::move(ask), limit, on_pending);
  return std::make_unique<QuorumRequest<T, R>>(std::move(broadcast), quorum_.majority(), wait_for,
                                               std::move(merge));
}

template <class T, class R>
InFlight<R> QuorumStore::inspect_with(RequestMaker<T> ask,
                                      typename QuorumRequest<T, R>::Merge merge) {
  return ask_all<T, R>(std::move(ask), timing::kQuorumInspectLimit, OnPending::finish,
                       WaitFor::majority, std::move(merge));
}

template <class T>
InFlight<T> QuorumStore::inspect_with(RequestMaker<T> ask) {
  return inspect_with<T, T>(std::move(ask), merged_by<T>(quorum_));
}

QuorumStore::QuorumStore(std::vector<MakeServer> makers, QuorumSources sources)
    : makers_(std::move(makers)),
      sources_(std::move(sources)),
      members_(members_of(makers_)),
      quorum_(quorum_of(members_)),
      listeners_(makers_, quorum_) {}

// The open confirmations of the last grant become earlier requests, like any others.
std::vector<Member>& QuorumStore::members() {
  confirming_.reset();
  return members_;
}

InFlight<GrantReach> QuorumStore::complete_grant() {
  if (!confirming_) return nullptr;
  confirming_->ask_rest();
  auto merge = [](const Replies<RenewReply>& replies,
                  Collecting collecting) -> std::optional<Result<GrantReach>> {
    if (collecting == Collecting::open) return std::nullopt;
    const bool all = count_renewed(replies) == replies.size();
    return all ? GrantReach::everywhere : GrantReach::majority;
  };
  return std::make_unique<QuorumRequest<RenewReply, GrantReach>>(
      std::move(confirming_), quorum_.majority(), WaitFor::nobody, merge);
}

QuorumStore::Acquisition& QuorumStore::acquisition_of(const AcquireCall& call) {
  if (!acquisition_ || acquisition_->owner != call.owner) {
    const auto earlier = static_cast<uint64_t>(std::chrono::microseconds(call.urgent).count());
    const uint64_t now = sources_.wall_micros();
    acquisition_ = Acquisition{call.owner, call.owner, {now - std::min(earlier, now - 1)}};
  }
  if (call.ticket.value != 0) acquisition_->ticket = call.ticket;
  return *acquisition_;
}

InFlight<AcquireReply> QuorumStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return ready<AcquireReply>(std::move(fit).error());
  }
  Acquisition& acquisition = acquisition_of(call);
  AcquireCall numbered = call;
  numbered.ticket = acquisition.ticket;
  numbered.attempt = ++acquisition.attempts;
  numbered.forgotten = acquisition.forgotten;
  numbered.urgent = Millis(0);  // its ticket contains that
  // A holder of the lock no longer listens.
  auto on_held = [this](QuorumTry::Confirmations confirming) {
    listeners_.close();
    confirming_ = std::move(confirming);
  };
  return std::make_unique<QuorumAcquire>(
      members(), quorum_, sources_.random,
      QuorumTry::Params{std::move(numbered), acquisition.ties, &acquisition.forgotten, on_held});
}

InFlight<RenewReply> QuorumStore::renew(const RenewCall& call) {
  if (call.ttl > timing::kLongestQuorumLease) {
    return ready<RenewReply>(unsupported("renew", call.name, kTooLong));
  }
  // A holder that may have lost the lock does not restore it.
  auto make_request = [call](LockStore& store, size_t, TimePoint now) {
    RenewCall one = call;
    const bool may_restore = one.restore && one.restore->lease_end > now;
    if (may_restore) {
      one.restore->ahead = timing::kLongestClockGap;
    } else {
      one.restore.reset();
    }
    return store.renew(one);
  };
  return ask_all<RenewReply>(make_request, timing::server_limit(call.ttl), OnPending::finish,
                             WaitFor::certainty, merged_by<RenewReply>(quorum_));
}

InFlight<ReleaseReply> QuorumStore::release(const ReleaseCall& call) {
  auto make_request = [call, own = acquired_here(call.owner), begun = std::optional<TimePoint>()](
                          LockServer& store, size_t, TimePoint now) mutable {
    if (!begun) begun = now;
    ReleaseCall late = call;
    late.run = {};
    if (late.once) late.once->asked += std::chrono::duration_cast<Millis>(now - *begun);
    // A server that this process did not reach may be available again, and each mark counts.
    if (!own || late.once) return store.release(late);
    return where_reached<ReleaseReply>(store, [&](auto& one) { return one.release(late); });
  };
  return ask_all<ReleaseReply>(make_request, timing::kQuorumReleaseLimit, OnPending::abandon,
                               WaitFor::certainty, merged_by<ReleaseReply>(quorum_));
}

InFlight<CancelReply> QuorumStore::cancel(const CancelCall& call) {
  auto make_request = [call, own = acquired_here(call.owner)](LockServer& store, size_t,
                                                              TimePoint) {
    if (!own) return store.cancel(call);
    return where_reached<CancelReply>(store, [&](auto& one) { return one.cancel(call); });
  };
  return ask_all<CancelReply>(make_request, timing::kQuorumReleaseLimit, OnPending::abandon,
                              WaitFor::majority, merged_by<CancelReply>(quorum_));
}

// A server that received the majority's token late has its own token.
InFlight<ForceReply> QuorumStore::force_unlock(const ForceCall& call) {
  ForceCall unchecked = call;
  for (ForceTarget& target : unchecked.targets) target.token = {};
  return inspect_with<ForceReply>(
      [unchecked](LockServer& store, size_t, TimePoint) { return store.force_unlock(unchecked); });
}

InFlight<Snapshot> QuorumStore::inspect(const InspectCall& call) {
  return inspect_with<Snapshot>(
      [whole = whole_listing(call)](LockServer& store, size_t, TimePoint) {
        return store.inspect(whole);
      });
}

InFlight<Snapshots> QuorumStore::inspect_all(const std::vector<InspectCall>& calls) {
  std::vector<InspectCall> whole;
  for (const InspectCall& call : calls) whole.push_back(whole_listing(call));
  return inspect_with<Snapshots>(
      [whole](LockServer& store, size_t, TimePoint) { return store.inspect_all(whole); });
}

InFlight<HistoryRows> QuorumStore::history(const LockName& name, uint64_t rows) {
  return inspect_with<HistoryRows>(
      [=](LockServer& store, size_t, TimePoint) { return store.history(name, rows); });
}

InFlight<Histories> QuorumStore::histories(const std::vector<LockName>& names, uint64_t rows) {
  return inspect_with<Histories>(
      [=](LockServer& store, size_t, TimePoint) { return store.histories(names, rows); });
}

InFlight<NamesPage> QuorumStore::list_names(const std::string& cursor) {
  return inspect_with<NamesPage>([cursor](LockServer& store, size_t member, TimePoint) {
    auto own = cursor_at(cursor, member);
    return own ? store.list_names(*own) : nullptr;
  });
}

// ---- changes that depend on the state of the servers: it is read first ----

// The state of each server, and their merged state.
struct QuorumStore::Look {
  Replies<Snapshot> seen;
  Snapshot all;
};

template <class T>
InFlight<T> QuorumStore::look_then(const LockName& name,
                                   std::function<InFlight<T>(const Look&)> change) {
  InspectCall call{name};
  call.waiters_page = 0;
  auto look = inspect_with<Snapshot, Look>(
      [call](LockServer& store, size_t, TimePoint) { return store.inspect(call); },
      [this](const Replies<Snapshot>& seen, Collecting collecting) -> std::optional<Result<Look>> {
        auto all = merge_replies(seen, quorum_, collecting);
        if (!all) return std::nullopt;
        if (!*all) return std::move(*all).error();
        return Look{seen, **std::move(all)};
      });
  return then<T>(std::move(look), [change = std::move(change)](Result<Look> seen, Nanos) {
    return seen ? change(*seen) : ready<T>(std::move(seen).error());
  });
}

// The token of the last run that any server granted, or the one before it while that run is active.
// A grant that no majority has confirmed runs nothing: a late request may have left it.
Token QuorumStore::last_ended(const Look& look) {
  for (const Holder& holder : look.all.holders) {
    const bool runs = holder.state == HolderState::held || holder.state == HolderState::revoked;
    if (runs && holder.token.value > 0) return {holder.token.value - 1};
  }
  Token last{};
  for (const Snapshot* one : answers(look.seen)) last = std::max(last, one->last_grant);
  return last;
}

// The servers first agree on what has ended: up to the token of the last run. If each used its own
// time instead, a server whose clock is ahead would make the mark of a later run void.
InFlight<Forgotten> QuorumStore::forget(const ForgetCall& call) {
  return look_then<Forgotten>(call.name, [this, call](const Look& look) {
    ForgetCall one = call;
    one.through = last_ended(look);
    return inspect_with<Forgotten>(
        [one](LockServer& store, size_t, TimePoint) { return store.forget(one); });
  });
}

// A server that was unavailable may have an older closure, or none. Each server counts the time
// from its own reading, because its clock is its own.
InFlight<ClosureReply> QuorumStore::set_closure(const ClosureCall& call) {
  return look_then<ClosureReply>(call.name, [this, call](const Look& look) {
    const auto present = id_in(look.all.closure);
    if (present && present != call.id && present != call.seen) {
      return ready<ClosureReply>(ClosureReply::changed);
    }
    auto set = [call, seen = look.seen](LockServer& store, size_t i, TimePoint) {
      if (!seen[i]) return ready<ClosureReply>(no_answer(store.server()));
      if (!*seen[i]) return ready<ClosureReply>(seen[i]->error());
      ClosureCall one = call;
      one.seen = id_in((*seen[i])->closure);
      one.looked = (*seen[i])->now;
      return store.set_closure(one);
    };
    auto all = [](const Replies<ClosureReply>& replies,
                  Collecting collecting) -> std::optional<Result<Replies<ClosureReply>>> {
      if (collecting == Collecting::open) return std::nullopt;
      return replies;
    };
    return then<ClosureReply>(
        inspect_with<ClosureReply, Replies<ClosureReply>>(set, all),
        [this, call](auto replies, Nanos) { return check_closure(call, *replies); });
  });
}

// If too few servers could be closed, opens those that were closed, and those that did not answer,
// because they may be closed.
InFlight<ClosureReply> QuorumStore::check_closure(const ClosureCall& call,
                                                  const Replies<ClosureReply>& set) {
  const bool any_changed = std::any_of(set.begin(), set.end(), is_changed);
  if (count_done(set) >= quorum_.majority()) return ready<ClosureReply>(ClosureReply::done);
  if (!call.id) {
    if (any_changed) return ready<ClosureReply>(ClosureReply::changed);
    return ready<ClosureReply>(too_few_set(quorum_, call, set));
  }
  auto open = [call, set](LockServer& store, size_t i, TimePoint) -> InFlight<ClosureReply> {
    if (is_changed(set[i])) return nullptr;
    ClosureCall one{call.name};
    one.seen = call.id;
    one.record = call.record;
    return store.set_closure(one);
  };
  // If a server did not answer the closure, its answer to the opening is not awaited either.
  auto undone = [=, this](const Replies<ClosureReply>& opened,
                          Collecting) -> std::optional<Result<ClosureReply>> {
    for (size_t i = 0; i < set.size(); ++i) {
      if (is_done(set[i]) && !opened[i]) return std::nullopt;
    }
    if (any_changed) return ClosureReply::changed;
    return not_closed(quorum_, call, set, opened);
  };
  return ask_all<ClosureReply>(open, timing::kQuorumInspectLimit, OnPending::finish,
                               WaitFor::certainty, undone);
}

// ---- waiting ----

class WakeListeners::WakeWait final : public Reply<Wake> {
 public:
  WakeWait(WakeListeners& listeners, LockName name, Millis slice)
      : listeners_(listeners),
        name_(std::move(name)),
        slice_(slice),
        replies_(listeners.entries_.size()) {}

  void wants(std::vector<pollfd>& out) const override {
    for (const Listener& listener : listeners_.entries_) {
      if (listener.request) listener.request->wants(out);
    }
  }

  TimePoint due() const override {
    TimePoint earliest = until_;
    for (const Listener& listener : listeners_.entries_) {
      if (listener.request) earliest = std::min(earliest, listener.request->due());
    }
    return earliest;
  }

  bool advance(TimePoint now) override {
    if (until_ == TimePoint::min()) until_ = now + slice_;
    for (size_t i = 0; i < replies_.size(); ++i) poll_listener(i, now);
    const size_t woken = count_answers(replies_);
    return woken >= listeners_.quorum_.majority() || (woken == 0 && too_few_listen()) ||
           now >= until_;
  }

  Result<Wake> take() override {
    if (count_answers(replies_) > 0) return Wake::woken;
    if (too_few_listen()) return too_few_servers(listeners_.quorum_, errors_of(replies_));
    return Wake::slept;
  }

 private:
  bool too_few_listen() const {
    const size_t failed = count_errors(errors_of(replies_));
    return replies_.size() - failed < listeners_.quorum_.majority();
  }

  // If a wait at a server ends in the middle of rlock's wait, another one follows, so that every
  // server can wake rlock at any time.
  void poll_listener(size_t i, TimePoint now) {
    Listener& listener = listeners_.entries_[i];
    while (!replies_[i]) {
      if (!listener.request) {
        listener.request = listener.store->wait_for_wake(name_, *listeners_.owner_,
                                                         std::max(slice_, timing::kLeastBlockTime));
      }
      if (!listener.request->advance(now)) return;
      auto wake = listener.request->take();
      listener.request.reset();
      if (wake && *wake == Wake::slept) continue;
      if (wake) until_ = std::min(until_, now + timing::kMoreWakesTime);
      replies_[i] = std::move(wake);
    }
  }

  WakeListeners& listeners_;
  LockName name_;
  Millis slice_;
  Replies<Wake> replies_;  // wakes and failures
  TimePoint until_ = TimePoint::min();
};

InFlight<Wake> WakeListeners::listen(const LockName& name, const Owner& owner, Millis slice) {
  if (owner_ != owner) entries_.clear();
  owner_ = owner;
  while (entries_.size() < makers_.size()) entries_.push_back({makers_[entries_.size()]()});
  return std::make_unique<WakeWait>(*this, name, slice);
}

InFlight<Wake> QuorumStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return listeners_.listen(name, owner, slice);
}

std::string QuorumStore::server() const {
  return util::joined(quorum_.servers, ",");
}

}  // namespace rlock::lock
