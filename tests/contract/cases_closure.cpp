// While a lock is closed nothing is granted but to those that may pass.
#include "contract/mutants.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::Busy;
using lock::ClosureReply;
using lock::HolderState;

Ask passing() {
  Ask ask;
  ask.while_closed = true;
  return ask;
}

Ask at_once(Ask ask = {}) {
  ask.queueing = lock::Queueing::never;
  return ask;
}

Ask shared(Ask ask = {}) {
  ask.limit = lock::Limit::slots(3);
  return ask;
}

void closed(Lab& lab, const std::string& id, Millis length,
            const std::optional<std::string>& seen = {}) {
  need(lab.close(id, length, seen) == ClosureReply::done, "not closed");
}

void opened(Lab& lab, const std::string& seen) {
  need(lab.open(seen) == ClosureReply::done, "not opened");
}

void nothing_is_granted(Lab& lab) {
  closed(lab, "c1", 1min);
  const auto busy = as<Busy>(lab.acquire('A', at_once()), "granted while it is closed");
  need(busy.holder && busy.holder->state == HolderState::closed && busy.holder->owner == "c1" &&
           busy.holder->record == "who closed it",
       "it is not said who closed it");
  const lock::Queued queued = lab.queued('B');
  need(queued.holder && queued.holder->state == HolderState::closed, "it waits for another reason");
  need(queued.look_again && *queued.look_again <= 1min, "it does not look when the closure ends");
  lab.queued('C');
  lab.pass(30s);
  lab.queued('B');
  lab.queued('C');
  need(lab.waiters() == "BC" && lab.holders().empty(), "a place is lost");
}

void first_is_granted_at_the_end(Lab& lab) {
  closed(lab, "c1", 10s);
  lab.queued('A');
  lab.queued('B');
  lab.pass(10s);
  lab.granted('A');
  lab.queued('B');
  need(!lab.inspect().closure, "it is still closed");
}

void opening_serves_the_queue(Lab& lab) {
  closed(lab, "c1", 1min);
  lab.queued('A');
  lab.queued('B');
  opened(lab, "c1");
  need(lab.holders() == "A" && lab.woken('A'), "the first one is not granted the lock");
  need(lab.open("c1") == ClosureReply::done, "to open what is open is no success");
}

void slots_are_served_at_the_end(Lab& lab) {
  lab.granted('A', shared());
  closed(lab, "c1", 10s);
  lab.queued('B', shared());
  lab.queued('C', shared());
  lab.queued('D', shared());
  lab.pass(10s);
  lab.granted('B', shared());
  need(lab.holders() == "ABC" && lab.waiters() == "D", "not all that fit");
}

void holders_go_on(Lab& lab) {
  const lock::Token token = lab.granted('A');
  closed(lab, "c1", 1h);
  lab.pass(20s);
  as<lock::Renewal>(lab.renew('A', token), "its renewal fails");
  util::SystemRandom random;
  as<lock::Renewal>(lab.renew('A', {}, {}, lock::Entry::fresh(random)), "a nested run is refused");
  const lock::Snapshot seen = lab.inspect();
  need(seen.live_holders == 1 && lab.holders() == "A", "the closure is counted as a holder");
  need(seen.closure && seen.closure->left == 1h - 20s, "the closure is not shown");
}

void granted_but_not_claimed(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.release('A');
  closed(lab, "c1", 1h);
  lab.granted('B');
}

// A live command must not be ended by a closure.
void lease_is_put_back(Lab& lab) {
  const lock::Token token = lab.granted('A');
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  closed(lab, "c1", 1h);
  need(as<lock::Renewal>(lab.renew('A', token), "lost") == lock::Renewal::put_back, "not put back");
  need(lab.holders() == "A", "it is no holder");
}

void others_decide_who_lost_it(Lab& lab) {
  lab.granted('A');
  closed(lab, "c1", 1h);
  lab.pass(31s);
  const auto lost = as<lock::Lost>(lab.renew('A', {}), "it still holds it");
  need(!lost.by, "the closure has taken the lock");
}

void who_may_pass(Lab& lab) {
  closed(lab, "c1", 1h);
  lab.queued('A');
  lab.granted('B', at_once(passing()));
  const lock::Queued first = lab.queued('C', passing());
  need(first.position == 1 && first.holder && first.holder->state == HolderState::held,
       "it does not wait for the holder alone");
  lab.queued('D', passing());
  need(lab.waiters() == "CDA", "another order");
  as<Busy>(lab.acquire('E', at_once(passing())), "two hold it");
  lab.release('B');
  need(lab.holders() == "C", "the next one that may pass does not");
  lab.granted('C', passing());
  lab.release('C');
  lab.granted('D', passing());
  lab.release('D');
  need(lab.holders().empty(), "one that may not pass was granted the lock");
  lab.queued('A');
}

void who_waited_before(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  const lock::Ticket before = lab.queued('C', passing()).ticket;
  need(lab.waiters() == "BC", "it stands before others although the lock is open");
  closed(lab, "c1", 1h);
  const lock::Ticket now = lab.queued('C', passing()).ticket;
  need(now < before && lab.waiters() == "CB", "it does not move");
  need(lab.queued('C', passing()).ticket == now, "it moves twice");
  lab.release('A');
  need(lab.holders() == "C", "it does not pass");
}

// The lease of the holder has ended, and another asks first.
void served_by_any_request(Lab& lab) {
  lab.granted('A');
  closed(lab, "c1", 1h);
  for (int i = 0; i < 3; ++i) {
    lab.queued('B', passing());
    lab.queued('C');
    lab.pass(10s);
  }
  lab.queued('C');
  need(lab.holders() == "B", "it was not granted the lock");
}

void place_of_one_that_passes_is_restored(Lab& lab) {
  lab.granted('A');
  closed(lab, "c1", 1h);
  Ask ask = passing();
  ask.ticket = lab.queued('B', ask).ticket;
  lab.queued('C', passing());
  lab.cli({"ZREM", lab.key("queue"), lab.owner('B').text()});
  need(lab.queued('B', ask).ticket == ask.ticket, "it has another ticket");
  need(lab.waiters() == "BC", "it has lost its place");
}

void cooldown_is_not_passed(Lab& lab) {
  Ask cools = passing();
  cools.min_hold = 1min;
  closed(lab, "c1", 1h);
  lab.granted('A', cools);
  lab.release('A');
  const auto busy = as<Busy>(lab.acquire('B', at_once(passing())), "the cool-down was passed");
  need(busy.holder && busy.holder->state == HolderState::cooldown, "not because of the cool-down");
  lab.pass(61s);
  lab.granted('B', passing());
}

void passes_into_a_free_slot(Lab& lab) {
  lab.granted('A', shared());
  lab.granted('B', shared());
  closed(lab, "c1", 1h);
  as<Busy>(lab.acquire('C', at_once(shared())), "granted while it is closed");
  as<lock::Granted>(lab.acquire('C', at_once(shared(passing()))), "it may not pass");
  as<Busy>(lab.acquire('D', at_once(shared(passing()))), "more than there are slots");
  as<Busy>(lab.acquire('E', at_once(passing())), "an exclusive one beside others");
}

void closing_again(Lab& lab) {
  closed(lab, "c1", 1h);
  lab.queued('A');
  need(lab.close("c2", 1min, "c0") == ClosureReply::changed, "one was replaced that nobody saw");
  need(lab.close("c2", 1min) == ClosureReply::changed, "one was replaced that nobody saw");
  need(lab.open("c0") == ClosureReply::changed, "one was opened that nobody saw");
  closed(lab, "c2", 1min, "c1");
  const lock::Snapshot seen = lab.inspect();
  need(seen.closure && seen.closure->owner == "c2" && seen.closure->left == 1min, "not replaced");
  need(lab.woken('A'), "the head does not learn that it may look sooner");
}

// The reply was lost, or the request is a late copy.
void repeats_change_nothing(Lab& lab) {
  closed(lab, "c1", 1h);
  closed(lab, "c1", 1h);
  opened(lab, "c1");
  need(lab.close("c1", 1h) == ClosureReply::changed, "a late copy closes it again");
  closed(lab, "c2", 1h);
  closed(lab, "c3", 1h, "c2");
  need(lab.close("c2", 1h, "c3") == ClosureReply::changed, "a late copy replaces a later one");
  need(lab.open("c2") == ClosureReply::changed, "a late copy opens a later one");
  need(lab.close("c4", 0ms, "c3") == ClosureReply::changed, "its end has come");
}

void history_lists_closings(Lab& lab) {
  closed(lab, "c1", 1h);
  lab.acquire('A', at_once());
  lab.pass(5s);
  opened(lab, "c1");
  const auto rows = lab.history();
  const auto& open = as<lock::Closing>(rows.at(0), "no row");
  need(open.until.ms == 0 && open.record == "who opened it", "another row");
  need(as<lock::Skips>(rows.at(1), "no skip").count == 1, "the refusal is no skip");
  const auto& close = as<lock::Closing>(rows.at(2), "no row");
  need(close.until.ms - close.at.ms == 3'600'000 && close.record == "who closed it", "another row");
  need(lab.inspect().counters.runs == 0, "it is counted as a run");
}

void memory_is_full(Lab& lab) {
  lab.granted('A');
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  const std::string before = lab.fingerprint();
  bool refused = false;
  try {
    lab.close("c1", 1h);
  } catch (const Broken&) {
    refused = true;
  }
  need(refused && lab.fingerprint() == before, "something was written");
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
  closed(lab, "c1", 1h);
  lab.queued('B');
  lab.release('A');
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  opened(lab, "c1");
  need(lab.holders() == "B", "it is not served");
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
}

void operators_do_not_break_it(Lab& lab) {
  closed(lab, "c1", 1h);
  as<lock::NotHeld>(lab.force('A'), "the closure is a holder");
  need(lab.inspect().closure.has_value(), "it is open");
}

void done_before_closed(Lab& lab) {
  Ask ask;
  ask.once = lock::Once{lock::OnceKind::key, "k"};
  const lock::Token token = lab.granted('A', ask);
  lock::OnceResult result{*ask.once};
  result.token = token;
  result.succeeded = true;
  closed(lab, "c1", 1h);
  need(lab.ends('A', result).marked == lock::Marked::yes, "not marked");
  as<lock::AlreadyDone>(lab.acquire('B', ask), "it waits for what is done");
}

// What runs now counts when it succeeds.
void forgotten_while_closed(Lab& lab) {
  Ask ask;
  ask.once = lock::Once{lock::OnceKind::key, "k"};
  lock::OnceResult result{*ask.once};
  result.token = lab.granted('A', ask);
  result.succeeded = true;
  closed(lab, "c1", 1h);
  lab.forget();
  need(lab.ends('A', result).marked == lock::Marked::yes, "the run that goes on is forgotten");
}

void keys_end(Lab& lab) {
  closed(lab, "c1", 24h * 30);
  lab.pass(24h * 29);
  need(lab.inspect().closure.has_value(), "it was open too early");
  lab.pass(24h);
  need(!lab.inspect().closure, "it is still closed");
  lab.pass(24h * 31);
  need(lab.cli({"KEYS", "rlock:*"}).empty(), "keys stay: " + lab.cli({"KEYS", "rlock:*"}));
}

}  // namespace

const std::vector<NamedCase>& closure_cases() {
  static const std::vector<NamedCase> cases{
      {"closed: nothing is granted, and nobody loses a place", nothing_is_granted},
      {"closed: at its end the first one is granted the lock", first_is_granted_at_the_end},
      {"closed: opening serves the queue", opening_serves_the_queue},
      {"closed: at its end all are served that fit", slots_are_served_at_the_end},
      {"closed: who holds it goes on, and is the only holder", holders_go_on},
      {"closed: who was granted it before claims it", granted_but_not_claimed},
      {"closed: a lease is put back beside the closure", lease_is_put_back},
      {"closed: a closure takes the lock from nobody", others_decide_who_lost_it},
      {"closed: who may pass waits for the holder alone", who_may_pass},
      {"closed: who may pass and waited before moves to the front", who_waited_before},
      {"closed: who may pass is served by any request", served_by_any_request},
      {"closed: who may pass keeps its place over a loss", place_of_one_that_passes_is_restored},
      {"closed: a cool-down is not passed", cooldown_is_not_passed},
      {"closed: who may pass takes a free slot only", passes_into_a_free_slot},
      {"closed: closing again replaces the closure that was seen", closing_again},
      {"closed: a repeated request changes nothing", repeats_change_nothing},
      {"closed: the history lists it", history_lists_closings},
      {"closed: with a full memory it can be opened but not closed", memory_is_full},
      {"closed: force-unlock does not open it", operators_do_not_break_it},
      {"closed: what is done is done", done_before_closed},
      {"closed: what runs is not forgotten", forgotten_while_closed},
      {"closed: its keys end", keys_end},
  };
  return cases;
}

}  // namespace rlock::contract
