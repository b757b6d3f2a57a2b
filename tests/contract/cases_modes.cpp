// Modes, entries and min-hold: the least limit rules.
#include <algorithm>
#include <cstdint>

#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

using lock::Entry;
using lock::Limit;
using lock::Lost;
using lock::LostHow;
using lock::Renewal;

Ask with(Limit limit) {
  Ask ask;
  ask.limit = limit;
  return ask;
}

Ask holding(Millis min_hold) {
  Ask ask;
  ask.min_hold = min_hold;
  return ask;
}

Entry inner() {
  struct Fixed final : util::Random {
    uint64_t next() override { return 0x1234; }
  } fixed;
  return Entry::fresh(fixed);
}

void slots_fill_up(Lab& lab) {
  for (char owner : {'A', 'B', 'C'}) lab.granted(owner, with(Limit::slots(3)));
  need(lab.queued('D', with(Limit::slots(3))).position == 1, "not the head");
  lab.release('B');
  lab.granted('D', with(Limit::slots(3)));
  need(lab.holders() == "ACD", "not three hold it");
  lab.release('A');
  lab.release('C');
  lab.granted('E', with(Limit::slots(3)));
}

void least_limit_rules(Lab& lab) {
  lab.granted('A', with(Limit::slots(3)));
  lab.granted('B', with(Limit::slots(2)));
  lab.queued('C', with(Limit::slots(5)));
  lab.release('B');
  lab.granted('C', with(Limit::slots(5)));
  lab.queued('D', with(Limit::exclusive()));
}

void shared_behind_exclusive_waits(Lab& lab) {
  lab.granted('A', with(Limit::shared()));
  lab.granted('B', with(Limit::shared()));
  lab.queued('C');
  lab.queued('D', with(Limit::shared()));
  need(lab.waiters() == "CD", "not in order");
  lab.release('A');
  lab.queued('C');
  lab.release('B');
  lab.granted('C');
  lab.queued('D', with(Limit::shared()));
  lab.release('C');
  lab.granted('D', with(Limit::shared()));
}

void late_renewal_of_released_slot(Lab& lab) {
  Ask three = with(Limit::slots(3));
  lab.granted('A', three);
  lock::Token token = lab.granted('B', three);
  lab.release('B');
  lab.release('A');
  need(as<Lost>(lab.renew('B', token, three), "renewed").how == LostHow::released, "not reported");
  need(lab.holders().empty(), "an ended owner is back");
}

void flushed_slots(Lab& lab) {
  Ask three = with(Limit::slots(3));
  lock::Token a = lab.granted('A', three);
  lock::Token b = lab.granted('B', three);
  lock::Token c = lab.granted('C', three);
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  for (auto [owner, token] : {std::pair{'C', c}, {'A', a}, {'B', b}}) {
    need(as<Renewal>(lab.renew(owner, token, three), "lost") == Renewal::put_back, "not put back");
  }
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  lab.granted('D', three);
  int lost = 0;
  for (auto [owner, token] : {std::pair{'C', c}, {'A', a}, {'B', b}}) {
    lost += std::holds_alternative<Lost>(lab.renew(owner, token, three));
  }
  need(lost == 1, "not exactly one is lost beside a newcomer");
}

void flushed_nested(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  need(as<Renewal>(lab.renew('A', token, {}, inner()), "lost") == Renewal::put_back, "not back");
  lab.release('A', inner());
  need(lab.holders() == "A", "the outer run lost it with the inner one");
  need(as<Renewal>(lab.renew('A', token), "lost") == Renewal::extended, "not extended");
}

void outer_released_inner_crashed(Lab& lab) {
  lock::Token token = lab.granted('A');
  as<Renewal>(lab.renew('A', token, {}, inner()), "not entered");
  lab.release('A');
  need(lab.holders() == "A", "the inner run does not keep it");
  as<Lost>(lab.renew('A', token), "a released entry is renewed");
  as<lock::OwnerEnded>(lab.acquire('A'), "a released entry is acquired");
  lab.pass(31s);
  as<lock::OwnerEnded>(lab.acquire('A'), "an ended owner by acquire");
  as<Lost>(lab.renew('A', token), "an ended owner by renew");
  need(lab.holders().empty(), "an ended owner is back");
}

// An inner run that is killed keeps a lock of a long ttl for 30 s at most.
// The long lease of the outer run ends with it.
void outer_ends_inner_goes_on(Lab& lab) {
  Ask longer;
  longer.ttl = 10min;
  const lock::Token token = lab.granted('A', longer);
  as<Renewal>(lab.renew('A', token, {}, inner()), "not entered");
  lab.release('A');
  need(lab.holders() == "A", "freed though a nested run goes on");
  lab.pass(31s);
  lab.granted('B');
}

void inner_lease_is_short(Lab& lab) {
  Ask hour;
  hour.ttl = 1h;
  lock::Token token = lab.granted('A');
  as<Renewal>(lab.renew('A', token, hour, inner()), "not entered");
  lab.release('A');
  lab.pass(30s);
  lab.granted('B');
}

// An inner run that releases before the outer one has restored its flushed lease.
void inner_released_after_a_flush(Lab& lab) {
  lock::Token token = lab.granted('A');
  as<Renewal>(lab.renew('A', token, {}, inner()), "not entered");
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  lab.release('A', inner());
  need(as<Renewal>(lab.renew('A', token), "lost") == Renewal::put_back, "not put back");
}

// The lock counts as held until the last of those who run under it has confirmed.
void revoked_with_an_inner_run(Lab& lab) {
  for (auto [first, last] : {std::pair{inner(), Entry::outer()}, {Entry::outer(), inner()}}) {
    lock::Token token = lab.granted('A');
    as<Renewal>(lab.renew('A', token, {}, inner()), "not entered");
    as<lock::Forced>(lab.force(), "not forced");
    need(lab.woken('A'), "nobody is woken");
    need(lab.release('A', first).ending == lock::OwnerEnd::forced, "not reported as forced");
    need(lab.holders() == "A" && lab.woken('A'), "the other one is not waited for, or not woken");
    need(as<Lost>(lab.renew('A', token, {}, last), "renewed").how == LostHow::forced,
         "not reported");
    need(lab.release('A', last).ending == lock::OwnerEnd::forced, "not reported as forced");
    need(lab.holders().empty(), "not freed");
    lab.cli({"FLUSHALL"});
    lab.pass(1s);
  }
}

// The longest --min-hold of all who run under it counts.
void inner_min_hold(Lab& lab) {
  lock::Token token = lab.granted('A', holding(5s));
  as<Renewal>(lab.renew('A', token, holding(60s), inner()), "not entered");
  lab.release('A', inner());
  lab.renew('A', token, holding(5s));
  lab.release('A');
  lab.pass(59s);
  lab.queued('B');
  lab.pass(1s);
  lab.granted('B');
}

void exclusive_inside_shared(Lab& lab) {
  lock::Token token = lab.granted('A', with(Limit::shared()));
  as<lock::Upgrade>(lab.renew('A', token, {}, inner()), "an upgrade is let in");
}

void long_lease_beside_short(Lab& lab) {
  Ask longer = with(Limit::shared());
  longer.ttl = 40 * 24h;
  Ask shorter = with(Limit::shared());
  shorter.ttl = 1s;
  lab.granted('A', longer);
  lab.granted('B', shorter);
  for (const char* suffix : {"holders", "limits", "who"}) {
    long long left = std::stoll(lab.cli({"PTTL", lab.key(suffix)}));
    need(left > Millis(39 * 24h).count(), std::string(suffix) + " expires with the shorter lease");
  }
}

void min_hold_keeps_it(Lab& lab) {
  lab.granted('A', holding(60s));
  lab.queued('B');
  lab.pass(1s);
  lab.release('A');
  const auto waiting = lab.queued('B');
  need(waiting.look_again && *waiting.look_again <= 59s, "the head does not know when it ends");
  need(lab.inspect().holders.at(0).state == lock::HolderState::cooldown, "no cooldown");
  lab.pass(59s);
  lab.granted('B');
}

// The reply was lost, and the request came again when another held the lock already.
void min_hold_broken_twice(Lab& lab) {
  lab.granted('A', holding(60s));
  lab.release('A');
  lab.queued('B');
  const auto first = as<lock::Forced>(lab.force('A'), "not forced");
  need(first.broken.size() == 1 && first.next == Lab::owner('B').text(), "B is not the next");
  const auto again = as<lock::Forced>(lab.force('A'), "denied");
  need(again.broken.empty() && lab.holders() == "B", "B was broken for A");
}

void min_hold_after_a_crash(Lab& lab) {
  Ask slots = with(Limit::slots(2));
  slots.min_hold = 60s;
  lab.granted('A', slots);
  lab.pass(31s);
  lab.granted('B', slots);
  lab.queued('C', slots);
  lab.pass(20s);
  lab.renew('B', {}, slots);
  lab.queued('C', slots);
  lab.pass(9s);
  lab.granted('C', slots);
}

// Longer than the keys outlive the lease: a holder that crashes leaves it all the same.
void keys_outlive_min_hold(Lab& lab) {
  lab.granted('A', holding(40 * 24h));
  for (const char* suffix : {"holders", "limits", "who"}) {
    long long left = std::stoll(lab.cli({"PTTL", lab.key(suffix)}));
    need(left > Millis(39 * 24h).count(),
         std::string(suffix) + " expires before the min-hold is over");
  }
}

void min_hold_and_a_clock_set_back(Lab& lab) {
  lab.granted('A');
  lab.pass(-60s);
  lab.release('A');
  need(lab.holders().empty(), "a run without min-hold keeps the lock after its end");
  lab.granted('B', holding(1s));
  lab.pass(-60s);
  lab.release('B');
  lab.pass(1s);
  lab.granted('C');
}

void no_min_hold_for_what_never_started(Lab& lab) {
  lab.granted('A', holding(60s));
  lab.release('A', lock::Entry::outer(), "exit:127", lock::ReleaseHow::unused);
  need(lab.holders().empty(), "a command that never started keeps the lock");
  need(as<lock::Run>(lab.history().at(0), "no run").result == "exit:127",
       "it is not in the history");
}

void no_min_hold_for_an_unclaimed_grant(Lab& lab) {
  lab.granted('A');
  lab.queued('B', holding(60s));
  lab.queued('C');
  lab.release('A');
  lab.pass(2001ms);
  lab.granted('C');
}

}  // namespace

const std::vector<NamedCase>& mode_cases() {
  static const std::vector<NamedCase> cases{
      {"slots fill up and are handed over", slots_fill_up},
      {"the least limit rules", least_limit_rules},
      {"a shared waiter behind an exclusive one waits", shared_behind_exclusive_waits},
      {"the late renewal of a released slot is lost", late_renewal_of_released_slot},
      {"flushed slots come back, newest first; one newcomer costs one", flushed_slots},
      {"a nested run puts its outer run back too", flushed_nested},
      {"released outside, crashed inside: no entry remains", outer_released_inner_crashed},
      {"when the outer run ends, the inner one's lease is left", outer_ends_inner_goes_on},
      {"an inner run's lease is short", inner_lease_is_short},
      {"an inner run ends its own entry alone", inner_released_after_a_flush},
      {"a revoked lock is held until the inner and the outer run confirmed",
       revoked_with_an_inner_run},
      {"an inner run's min-hold counts", inner_min_hold},
      {"exclusive inside shared is an upgrade", exclusive_inside_shared},
      {"a short lease does not shorten the keys of a long one", long_lease_beside_short},
      {"min-hold keeps the lock, and the head starts on time", min_hold_keeps_it},
      {"a cool-down is broken by its owner, once", min_hold_broken_twice},
      {"min-hold survives a crash and takes one slot", min_hold_after_a_crash},
      {"the keys live as long as a min-hold", keys_outlive_min_hold},
      {"min-hold is no longer where the server's clock is set back", min_hold_and_a_clock_set_back},
      {"a command that never started has no min-hold", no_min_hold_for_what_never_started},
      {"a grant nobody claimed has no min-hold", no_min_hold_for_an_unclaimed_grant},
  };
  return cases;
}

}  // namespace rlock::contract
