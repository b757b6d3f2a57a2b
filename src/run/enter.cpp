#include "run/enter.hpp"

#include <algorithm>

#include "util/duration.hpp"

namespace rlock::run {
namespace {

constexpr Millis kPause{20};
constexpr Millis kGiveBack{500};
constexpr Millis kLookAgain{250};  // while an outer run may put its lease back

Use entry_of(const Plan& plan, const Outer& outer) {
  util::SystemRandom random;
  Use use = outer.use;
  use.entry = lock::Entry::fresh(random);
  use.min_hold = std::max(use.min_hold, plan.claim.min_hold);
  return use;
}

lock::RenewCall enter_call(const Plan& plan, const Outer& outer, const Use& use) {
  lock::RenewCall call = renew_call(plan.claim, use);
  if (!outer.may_put_back) call.token = {};
  // Narrower than it is held: that can only be refused, and must put nothing back in that mode.
  if (plan.claim.limit.value() < use.limit.value()) {
    call.limit = plan.claim.limit;
    call.token = {};
  }
  return call;
}

util::Error silent(const Plan& plan, const lock::LockStore& store) {
  return {
      util::ErrorKind::unavailable,
      "cannot enter \"" + plan.claim.name.text() + "\": " + store.server() + ": no answer in time",
      util::Retry::later};
}

// Who answered before has answered, though it is gone by now.
util::Error heard_more(const util::Error& before, util::Error error) {
  error.answered = std::max(error.answered, before.answered);
  return error;
}

// What one outer run is to the server; Lost: it does not hold the lock there.
using Answer = std::variant<Entered, lock::Lost, lock::Upgrade, lock::Interrupted>;

Answer read(lock::RenewReply& reply, const Entered& entered) {
  if (std::holds_alternative<lock::Upgrade>(reply)) return lock::Upgrade{};
  if (auto* lost = std::get_if<lock::Lost>(&reply)) return std::move(*lost);
  return entered;
}

EnterResult result_of(Answer answer) {
  if (auto* entered = std::get_if<Entered>(&answer)) return std::move(*entered);
  if (std::holds_alternative<lock::Upgrade>(answer)) return lock::Upgrade{};
  if (std::holds_alternative<lock::Interrupted>(answer)) return lock::Interrupted{};
  return Outdated{};
}

util::Result<Answer> ask(const Plan& plan, const Outer& outer, lock::LockStore& store,
                         lock::Poller& poller, TimePoint until) {
  const Use use = entry_of(plan, outer);
  const lock::RenewCall call = enter_call(plan, outer, use);
  util::Error trouble = silent(plan, store);
  while (true) {
    TimePoint sent_at = poller.now();
    auto request = store.renew(call);
    lock::Drive driven = poller.drive(*request, until);
    if (driven == lock::Drive::done) {
      auto reply = request->take();
      // An answer that took half the lease is asked for again.
      bool fresh = poller.now() - sent_at < plan.claim.ttl / 2;
      if (reply && fresh) return read(*reply, {use, sent_at});
      if (!reply) trouble = heard_more(trouble, std::move(reply).error());
    }
    trouble.answered = std::max(trouble.answered, request->answered());
    request.reset();
    if (driven != lock::Drive::interrupted) driven = poller.pause(poller.now() + kPause);
    bool over = trouble.retry == util::Retry::never || poller.now() >= until;
    if (driven != lock::Drive::interrupted && !over) continue;
    leave(plan, use, store, poller);  // a request may have been carried out all the same
    if (driven == lock::Drive::interrupted) return Answer(lock::Interrupted{});
    return trouble;
  }
}

// Whether the outer run may yet put back what the server has lost: not beside another holder.
bool may_come_back(const Outer& outer, const lock::Lost& lost) {
  return outer.patience > Millis(0) && lost.how == lock::LostHow::deleted && !lost.by;
}

// Whether the server has forgotten the outer run's grant: else it refuses that run, too. No answer
// is no sign.
bool forgotten(const Plan& plan, const Outer& outer, lock::LockStore& store, lock::Poller& poller,
               TimePoint until) {
  lock::InspectCall call{plan.claim.name};
  call.holders_page = call.waiters_page = 0;
  auto seen = lock::finish(poller, store.inspect(call), until, store.server());
  return !seen || seen->last_grant < outer.use.token;
}

util::Error awaited(const lock::LockStore& store, const Outer& outer) {
  return {util::ErrorKind::unavailable,
          store.server() + ": lost the lease of the run around this one, which is given " +
              util::format_duration(outer.patience) + " to put it back",
          util::Retry::later, util::Answered::yes};
}

// An acquisition of our own would have the outer run lose the lock at its next renewal.
util::Result<EnterResult> await_put_back(const Plan& plan, const Outer& outer,
                                         lock::LockStore& store, lock::Poller& poller) {
  const TimePoint end = poller.now() + outer.patience;
  while (true) {
    const bool last = poller.now() >= end;
    auto answer = ask(plan, outer, store, poller, poller.now() + plan.limits.first_contact);
    if (!answer) return std::move(answer).error();
    const auto* lost = std::get_if<lock::Lost>(&*answer);
    if (lost == nullptr || last || !may_come_back(outer, *lost))
      return result_of(*std::move(answer));
    const TimePoint next = std::min(end, poller.now() + kLookAgain);
    if (poller.pause(next) == lock::Drive::interrupted) return EnterResult(lock::Interrupted{});
  }
}

}  // namespace

lock::RenewCall renew_call(const lock::AcquireCall& claim, const Use& use) {
  lock::RenewCall call{claim.name, use.owner, use.entry};
  call.token = use.token;
  call.limit = use.limit;
  call.ttl = claim.ttl;
  call.min_hold = use.min_hold;
  call.attended = claim.attended;
  call.record = claim.record;
  return call;
}

void leave(const Plan& plan, const Use& use, lock::LockStore& store, lock::Poller& poller) {
  auto request = store.release({plan.claim.name, use.owner, use.entry});
  poller.drive(*request, poller.now() + kGiveBack, lock::Heed::nothing);
}

util::Result<EnterResult> enter(const Plan& plan, lock::LockStore& store, lock::Poller& poller,
                                lock::WaitObserver& observer) {
  const TimePoint until = poller.now() + plan.limits.first_contact;
  const Outer* missed = nullptr;
  for (const Outer& outer : plan.around) {
    auto answer = ask(plan, outer, store, poller, until);
    if (!answer) return std::move(answer).error();
    const auto* lost = std::get_if<lock::Lost>(&*answer);
    if (lost == nullptr) return result_of(*std::move(answer));
    if (missed == nullptr && may_come_back(outer, *lost)) missed = &outer;
  }
  if (missed == nullptr || !forgotten(plan, *missed, store, poller, until)) {
    return EnterResult(Outdated{});
  }
  observer.trouble(awaited(store, *missed));
  return await_put_back(plan, *missed, store, poller);
}

}  // namespace rlock::run
