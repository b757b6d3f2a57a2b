// How an owner ends, and what late or repeated requests may still do.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::CancelHow;
using lock::CancelReply;
using lock::ForceWhen;
using lock::Lost;
using lock::LostHow;
using lock::OwnerEnd;
using lock::OwnerEnded;

void expect_ended(Lab& lab, char owner, OwnerEnd ending) {
  need(as<OwnerEnded>(lab.acquire(owner), "a late acquire brings the owner back").ending == ending,
       "the late acquire is answered with another end");
  need(lab.holders().find(owner) == std::string::npos, "an ended owner holds the lock");
  need(lab.waiters().find(owner) == std::string::npos, "an ended owner waits");
}

void late_acquire(Lab& lab) {
  lab.granted('Y');
  lab.release('Y');
  expect_ended(lab, 'Y', OwnerEnd::released);
  lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  lab.release('A');
  expect_ended(lab, 'A', OwnerEnd::released);
  need(lab.cancel('B') == CancelReply::was_granted, "B had been granted");
  expect_ended(lab, 'B', OwnerEnd::cancelled);
  lab.granted('C');
  lab.queued('D');
  need(lab.cancel('D', CancelHow::removed) == CancelReply::was_queued, "D waited");
  need(lab.woken('D'), "a removed waiter is not woken");
  need(as<OwnerEnded>(lab.acquire('D'), "D is back").note == "by the operator",
       "D does not learn by whom");
  lab.force(ForceWhen::now);
  expect_ended(lab, 'C', OwnerEnd::forced);
  lab.cancel('E');
  expect_ended(lab, 'E', OwnerEnd::cancelled);
}

void repeated_release(Lab& lab) {
  lab.granted('A');
  lab.release('A');
  lab.granted('B');
  lab.release('B');
  need(lab.release('A').ending == OwnerEnd::released, "a repeated release is refused");
  lab.granted('C');
  need(lab.release('A').ending == OwnerEnd::released, "a repeated release is refused");
  need(lab.holders() == "C", "a repeated release freed another's lock");
}

void forced_holder(Lab& lab) {
  lock::Token token = lab.granted('A');
  as<lock::Forced>(lab.force(), "not forced");
  need(lab.woken('A'), "the holder is not woken");
  const auto lost = as<Lost>(lab.renew('A', token), "the revoked holder renews");
  need(lost.how == LostHow::forced && lost.note == "by the operator", "who and why is missing");
  need(lab.release('A').ending == OwnerEnd::forced, "the confirmation does not say forced");
  need(as<Lost>(lab.renew('A', token), "put back").how == LostHow::forced,
       "not reported as forced");

  token = lab.granted('B');
  lab.force();
  lab.pass(40s);
  need(
      as<Lost>(lab.renew('B', token), "a revoked holder that lapsed renews").how == LostHow::forced,
      "a revoked holder that slept is not reported as forced");
  expect_ended(lab, 'B', OwnerEnd::forced);
}

void expired_lease(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.pass(31s);
  need(as<lock::Renewal>(lab.renew('A', token), "not restored") == lock::Renewal::put_back,
       "an ended lease that nobody had since is not put back");
  need(lab.holders() == "A", "A does not hold it");
  lab.pass(31s);
  lab.granted('B');
  need(as<Lost>(lab.renew('A', token), "renewed though B has it").by.has_value(), "by nobody");
  lab.release('B');
  need(as<Lost>(lab.renew('A', token), "renewed though B had it").how == LostHow::taken,
       "not reported as taken");
}

void put_back_and_deleted(Lab& lab) {
  const lock::Token token = lab.granted('A');
  lab.pass(31s);
  lab.renew('A', token);
  lab.cli({"DEL", lab.key("holders")});
  need(as<Lost>(lab.renew('A', token), "put back though it was deleted").how == LostHow::deleted,
       "not reported as deleted");
}

// It had asked again since it lost the lock with the server's data.
void put_back_while_it_waits(Lab& lab) {
  Ask slots, shorter;
  slots.limit = shorter.limit = lock::Limit::slots(2);
  shorter.ttl = 5s;
  const lock::Token token = lab.granted('A', slots);
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  lab.granted('B', shorter);
  lab.granted('C', shorter);
  lab.queued('A', slots);
  lab.pass(6s);
  need(as<lock::Renewal>(lab.renew('A', token, slots), "lost") == lock::Renewal::put_back,
       "not put back");
  need(lab.holders() == "A" && lab.waiters().empty(), "it waits although it holds the lock");
  need(lab.inspect().holders.front().token == token, "it was granted the lock once more");
}

// A holder that renews rarely learns by its next renewal who broke its lock.
void forced_long_lease(Lab& lab) {
  Ask ask;
  ask.ttl = 1h;
  const lock::Token token = lab.granted('A', ask);
  as<lock::Forced>(lab.force(ForceWhen::now), "not forced");
  lab.pass(20min);
  lab.granted('B');
  lab.release('B');
  const auto lost = as<Lost>(lab.renew('A', token, ask), "renewed");
  need(lost.how == LostHow::forced && lost.note == "by the operator", "who and why is forgotten");
}

void deleted_by_hand(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.cli({"DEL", lab.key("holders")});
  need(as<Lost>(lab.renew('A', token), "renewed").how == LostHow::deleted,
       "not reported as deleted");
}

// What nobody knows any more counts as a live run: only its owner, or an operator who does not
// wait, ends it.
void line_deleted(Lab& lab) {
  const auto held_without_line = [&lab] {
    const lock::Token token = lab.granted('A');
    lab.queued('B');
    lab.cli({"DEL", lab.key("who")});
    return token;
  };
  const lock::Token token = held_without_line();
  need(lab.release('A', lock::Entry::outer(), "-", lock::ReleaseHow::by_id).run.has_value(),
       "it is released by its id");
  need(as<lock::Renewal>(lab.renew('A', token), "lost") == lock::Renewal::extended, "not extended");
  const lock::Holder holder = lab.inspect().holders.at(0);
  need(holder.token == token && holder.record == "record of A", "its line is not as before");
  lab.release('A');
  need(as<lock::Run>(lab.history().at(0), "not listed").token == token, "another token is listed");
  lab.granted('B');
  lab.release('B');

  lab.cli({"FLUSHALL"});
  lab.pass(0s);
  held_without_line();
  const auto forced = as<lock::Forced>(lab.force(), "not forced");
  need(forced.unconfirmed.size() == 1 && lab.holders() == "A", "freed although it may run");
  need(as<Lost>(lab.renew('A', token), "renewed").how == LostHow::forced, "not reported");
  lab.release('A');
  need(lab.holders() == "B" || lab.woken('B'), "B waits on");

  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  held_without_line();
  lab.force(ForceWhen::now);
  need(lab.holders() != "A", "it is not freed at once");
}

void flushed_while_held(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.cli({"FLUSHALL"});
  lab.pass(0s);
  need(as<lock::Renewal>(lab.renew('A', token), "lost") == lock::Renewal::put_back, "not put back");
  need(lab.holders() == "A", "A does not hold it");
  lab.release('A');
  lock::Token next = lab.granted('B');
  need(next > token, "the token does not grow over a flush");
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  lock::Token newcomer = lab.granted('C');
  need(newcomer > next, "the token does not grow over a flush");
  need(as<Lost>(lab.renew('B', next), "two hold it").how == LostHow::taken,
       "not reported as taken");
}

// An eviction takes one key at a time. Where the server lost all its data before, its memory is
// younger than the token and says nothing of it.
void broken_and_the_tombstones_evicted(Lab& lab) {
  const lock::Token token = lab.granted('A');
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  need(as<lock::Renewal>(lab.renew('A', token), "lost") == lock::Renewal::put_back, "not put back");
  lab.force(ForceWhen::now);
  lab.cli({"UNLINK", lab.key("released")});
  const auto lost = as<Lost>(lab.renew('A', token), "whom an operator broke is back");
  need(lost.how == LostHow::forced && lost.note == "by the operator", "who and why is missing");
  need(lab.holders().empty(), "it holds the lock");
  lab.cli({"FLUSHALL"});
  lab.pass(0s);
  need(as<lock::Renewal>(lab.renew('A', token), "lost") == lock::Renewal::put_back,
       "nothing is left that could remember the end");
}

// A renewal without the token (`rlock renew --owner`) never puts back.
void no_token_no_put_back(Lab& lab) {
  lab.granted('A');
  lab.pass(31s);
  need(as<Lost>(lab.renew('A', {}), "put back without a token").how == LostHow::expired,
       "not reported as expired");
}

// A caller that sends it has it from elsewhere, or mistyped it.
void unissued_token(Lab& lab) {
  constexpr lock::Token kWrong{9'007'199'254'740'991};
  need(as<Lost>(lab.renew('A', kWrong), "put back").how == LostHow::unissued,
       "not for that reason");
  lock::Token before{};
  for (char owner : {'B', 'C', 'D'}) {
    const lock::Token token = lab.granted(owner);
    need(token > before && token < kWrong, "tokens do not grow any more");
    need(as<lock::Renewal>(lab.renew(owner, kWrong), "lost") == lock::Renewal::extended,
         "a holder that brings another token is not renewed");
    lab.release(owner);
    before = token;
  }
  lab.granted('E');
  lab.pass(31s);
  lab.acquire('F');
  need(as<Lost>(lab.renew('E', kWrong), "put back").how == LostHow::unissued,
       "not for that reason");
}

void taken_after_it_was_deleted(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.cli({"DEL", lab.key("holders")});
  const auto alone = as<Lost>(lab.renew('A', token), "renewed");
  need(alone.how == LostHow::deleted && alone.later_holder == lock::LaterHolder::nobody,
       "not deleted alone");
  token = lab.granted('B');
  lab.cli({"DEL", lab.key("holders")});
  need(lab.inspect().last_grant == token, "the last grant is not shown");
  lab.granted('C');
  const auto lost = as<Lost>(lab.renew('B', token), "two hold it");
  need(lost.how == LostHow::taken && lost.by && lost.later_holder == lock::LaterHolder::unknown,
       "B does not learn that C has it");
  lab.release('C');
  need(as<Lost>(lab.renew('B', token), "put back").how == LostHow::taken,
       "B does not learn that C had it");
}

void live_run_by_its_id(Lab& lab) {
  const auto by_id = [&lab](char owner) {
    return lab.release(owner, lock::Entry::outer(), "-", lock::ReleaseHow::by_id);
  };
  Ask run;
  run.responsive = lock::Responsive::run;
  lab.granted('A', run);
  const std::string before = lab.fingerprint();
  const auto refused = by_id('A');
  need(refused.run && refused.run->owner == Lab::owner('A').text(), "a live run is released");
  need(lab.fingerprint() == before, "a refused release wrote something");
  lab.force();
  need(by_id('A').run.has_value() && lab.holders() == "A", "a revoked run is confirmed for it");
  need(lab.release('A').ending == OwnerEnd::forced && lab.holders().empty(), "the run cannot end");
  need(!by_id('A').run, "a run that has ended is taken for a live one");
  lab.granted('B');
  need(by_id('B').ending == OwnerEnd::released && lab.holders().empty(),
       "steps cannot be released");
  need(by_id('B').ending == OwnerEnd::released, "a repeated release is refused");
}

// The lease of a revoked holder lapsed, and its release came late.
void tombstone_of_a_late_release(Lab& lab) {
  lab.granted('A');
  lab.force();
  lab.pass(31s);
  lab.cancel('Z');  // sweeps
  lab.pass(50s);
  need(lab.release('A').ending == OwnerEnd::forced, "the late release does not show the force");
  lab.pass(11s);
  lab.cancel('Y');  // sweeps
  expect_ended(lab, 'A', OwnerEnd::forced);
}

void changed_record(Lab& lab) {
  const lock::Token token = lab.granted('A');
  Ask changed;
  changed.record = "A cannot end";
  as<lock::Renewal>(lab.renew('A', token), "not extended");
  need(lab.inspect().holders.front().record == "record of A", "the record changed by itself");
  as<lock::Renewal>(lab.renew('A', token, changed), "not extended");
  need(lab.inspect().holders.front().record == "A cannot end", "others see the old record");
  lab.pass(31s);
  as<lock::Renewal>(lab.renew('A', token, changed), "not put back");
  need(lab.inspect().holders.front().record == "A cannot end", "put back with the old record");
}

// Nobody starts beside the revoked holder until it confirmed or its lease ended.
void revocation_without_overlap(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.queued('B');
  const auto forced = as<lock::Forced>(lab.force(), "not forced");
  need(forced.broken.size() == 1 && forced.unconfirmed.size() == 1 && !forced.next,
       "freed at once");
  lab.woken('A');  // the wake is lost
  lab.pass(8s);
  lab.queued('B');
  as<lock::Forced>(lab.force(), "not forced again");
  lab.queued('B');
  need(lab.holders() == "A", "a second force-unlock freed the holder");
  lab.pass(8s);
  lab.queued('B');
  as<Lost>(lab.renew('A', token), "the revoked holder renews");
  lab.pass(8s);
  lab.queued('B');
  lab.pass(7s);
  lab.granted('B');
}

// The grant was revoked while the claim's reply was under way: the claim does not stand.
void revoked_before_the_claim(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.release('A');
  as<lock::Forced>(lab.force(), "not forced");
  need(as<OwnerEnded>(lab.acquire('B'), "a revoked grant is claimed").ending == OwnerEnd::forced,
       "why");
  lab.queued('C');
  lab.cancel('B');
  need(lab.holders() == "C", "its confirmation does not free the lock");
}

// Its lease ends in the very acquire that comes to claim it.
void revoked_and_lapsed_at_once(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.release('A');
  as<lock::Forced>(lab.force(), "not forced");
  lab.pass(2s);
  need(
      as<OwnerEnded>(lab.acquire('B'), "a forced owner is granted anew").ending == OwnerEnd::forced,
      "not reported as forced");
  need(lab.holders().empty() && lab.waiters().empty(), "it is back");
}

void unrenewed_is_free_at_once(Lab& lab) {
  Ask unrenewed;
  unrenewed.responsive = lock::Responsive::no;
  lab.granted('A', unrenewed);
  lab.queued('B');
  const auto forced = as<lock::Forced>(lab.force(), "not forced");
  need(forced.unconfirmed.empty(), "a holder without renewal counts on");
  need(forced.next == Lab::owner('B').text(), "the next is not granted");
  lab.granted('B');
}

void force_targets(Lab& lab) {
  as<lock::NotHeld>(lab.force(), "a free lock is forced");
  lock::Token token = lab.granted('A');
  as<lock::NoMatch>(lab.force('B'), "another's lock is forced");
  as<lock::NoMatch>(lab.force('A', {token.value + 1}), "another token is forced");
  need(lab.holders() == "A", "a refused force changed something");
  as<lock::Forced>(lab.force('A', token), "its token is refused");
  lab.release('A');
  Ask shared;
  shared.limit = lock::Limit::shared();
  lab.granted('B', shared);
  lab.granted('C', shared);
  need(as<lock::Forced>(lab.force('B'), "not forced").broken.size() == 1, "not one");
}

// The reply was lost, the request came again: the reply says what it did, and it is done to nobody
// else.
void repeated_by_an_operator(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  for (int time = 1; time <= 2; ++time) {
    need(lab.cancel('C', CancelHow::removed) == CancelReply::was_queued, "C was not removed");
  }
  const auto first = as<lock::Forced>(lab.force('A', {}, ForceWhen::now), "not forced");
  need(first.broken.size() == 1 && first.next == Lab::owner('B').text(), "B is not the next");
  lab.granted('B');
  const auto again = as<lock::Forced>(lab.force('A', {}, ForceWhen::now), "denied");
  need(again.broken.empty() && !again.next && lab.holders() == "B", "B was broken for A");
}

}  // namespace

const std::vector<NamedCase>& end_cases() {
  static const std::vector<NamedCase> cases{
      {"a late acquire after release, cancel, remove or force-unlock does not acquire",
       late_acquire},
      {"a repeated release succeeds and frees nobody else", repeated_release},
      {"a holder that was forced out cannot renew, nor after its lease lapsed", forced_holder},
      {"an ended lease comes back only where nobody had it since", expired_lease},
      {"a holder whose line was deleted counts as a live run", line_deleted},
      {"a lease that was put back and then deleted is lost", put_back_and_deleted},
      {"a lease is put back in the place of a position in the queue", put_back_while_it_waits},
      {"a holder with a long lease learns late that it was forced out", forced_long_lease},
      {"a lock deleted by hand is lost", deleted_by_hand},
      {"a flushed lock is put back unless another was granted", flushed_while_held},
      {"a broken lock stays broken when its tombstone is evicted",
       broken_and_the_tombstones_evicted},
      {"without a token nothing is put back", no_token_no_put_back},
      {"a holder changes what others see of it", changed_record},
      {"a token that was never issued is not put back", unissued_token},
      {"a lock deleted and then taken is reported as taken", taken_after_it_was_deleted},
      {"a live run is not released by its id", live_run_by_its_id},
      {"of two ends of an owner the later time stays", tombstone_of_a_late_release},
      {"a revoked holder counts until it confirms or its lease ends", revocation_without_overlap},
      {"a grant revoked before the claim is gone", revoked_before_the_claim},
      {"a revoked grant that lapsed is gone for the acquire that finds it",
       revoked_and_lapsed_at_once},
      {"a holder that no process renews is freed at once", unrenewed_is_free_at_once},
      {"force-unlock breaks only the owner that was named", force_targets},
      {"a repeated force-unlock or removal succeeds and hits nobody else", repeated_by_an_operator},
  };
  return cases;
}

}  // namespace rlock::contract
