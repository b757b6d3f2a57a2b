#include "run/enter.hpp"

#include <algorithm>

namespace rlock::run {
namespace {

constexpr Millis kPause{20};
constexpr Millis kGiveBack{500};

Use entry_of(const Plan& plan) {
  util::SystemRandom random;
  Use use = *plan.around;
  use.entry = lock::Entry::fresh(random);
  use.min_hold = std::max(use.min_hold, plan.claim.min_hold);
  return use;
}

lock::RenewCall enter_call(const Plan& plan, const Use& use) {
  lock::RenewCall call = renew_call(plan.claim, use);
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

EnterResult read(const lock::RenewReply& reply, const Entered& entered) {
  if (std::holds_alternative<lock::Upgrade>(reply)) return lock::Upgrade{};
  if (std::holds_alternative<lock::Lost>(reply)) return Outdated{};
  return entered;
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

util::Result<EnterResult> enter(const Plan& plan, lock::LockStore& store, lock::Poller& poller) {
  const Use use = entry_of(plan);
  const lock::RenewCall call = enter_call(plan, use);
  const TimePoint until = poller.now() + plan.limits.first_contact;
  util::Error trouble = silent(plan, store);
  while (true) {
    TimePoint sent_at = poller.now();
    auto request = store.renew(call);
    lock::Drive driven = poller.drive(*request, until);
    if (driven == lock::Drive::done) {
      auto reply = request->take();
      // An answer that took half the lease is asked for again. [LESSONS L07]
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
    if (driven == lock::Drive::interrupted) return EnterResult(lock::Interrupted{});
    return trouble;
  }
}

}  // namespace rlock::run
