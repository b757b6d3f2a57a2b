// While a lock is closed nothing is granted but to those that may pass.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::Busy;
using lock::ClosureReply;
using lock::HolderState;

Ask passing() {
  return asking("while-closed");
}

CASE("closed: nothing is granted, and waiters keep their positions") {
  lab.play("c1 closed 1m");
  const auto busy = as<Busy>(lab.acquire('A', asking("at-once")), "granted while it is closed");
  need(lock::is_closure(busy.obstacle) && lock::id_of(*busy.obstacle) == "c1" &&
           std::get<lock::Closure>(*busy.obstacle).record == "who closed it",
       "it is not said who closed it");
  const lock::Queued queued = lab.queued('B');
  need(lock::is_closure(queued.obstacle), "it waits for another reason");
  need(queued.look_again && *queued.look_again <= 1min, "it does not look when the closure ends");
  lab.play("C queued; 30s pass; BC queued; BC wait; nobody holds");
}

CASE("closed: at the end of the closure the first waiter is granted the lock") {
  lab.play("c1 closed 10s; AB queued; 10s pass; A granted; B queued");
  need(!lab.inspect().closure, "it is still closed");
}

CASE("closed: opening the lock serves the queue") {
  lab.play("c1 closed 1m; AB queued; c1 opened; A holds; A woken");
  need(lab.open("c1") == ClosureReply::done, "to open what is open is no success");
}
MUTANT("opening the lock grants it to no waiter",
       {"{kind = 'open', at = now, record = record})",
        "{kind = 'open', at = now, record = record}) M.admit.exclude(M.queue.head())"});

CASE("closed: at the end of the closure all waiters that fit are served") {
  lab.play(
      "A granted slots=3; c1 closed 10s; BCD queued slots=3; 10s pass; B granted slots=3; "
      "ABC hold; D waits");
}

CASE("closed: the holder renews and stays the only holder") {
  lab.play("A granted; c1 closed 1h; 20s pass; A renewed; A inner renewed");
  const lock::Snapshot seen = lab.inspect();
  need(seen.live_holders == 1 && lab.holders() == "A", "the closure is counted as a holder");
  need(seen.closure && seen.closure->left == 1h - 20s, "the closure is not shown");
}
MUTANT("inspect counts the closure as a holder", {" - (closed and 1 or 0)", ""});

CASE("closed: a grant from before the closure can be claimed") {
  lab.play("A granted; B queued; A released; c1 closed 1h; B granted");
}

// A live command must not be ended by a closure.
CASE("closed: a lease is restored during the closure") {
  lab.play("A granted; data lost; 1s pass; c1 closed 1h; A restored; A holds");
}
MUTANT("the closure prevents a lease from being restored", {"fits(limit, true)", "fits(limit)"});

CASE("closed: a closure takes the lock from nobody") {
  lab.play("A granted; c1 closed 1h; 31s pass");
  const auto lost = as<lock::Lost>(lab.renew('A', {}), "it still holds it");
  need(!lost.by, "the closure has taken the lock");
}
MUTANT("force-unlock names the closure as the next holder",
       {"local at = two[1] == '~closed' and 3 or 1", "local at = 1"});

CASE("closed: an exempt run waits only for the holder") {
  lab.play("c1 closed 1h; A queued; B granted at-once while-closed");
  const lock::Queued first = lab.queued('C', passing());
  const lock::Holder* holder = lock::holder_in(first.obstacle);
  need(first.position == 1 && holder != nullptr && holder->state == HolderState::held,
       "it does not wait for the holder alone");
  lab.play(
      "D queued while-closed; CDA wait; E busy while-closed; B released; C holds; "
      "C granted while-closed; C released; D granted while-closed; D released; "
      "nobody holds; A queued");
}
MUTANT("an exempt run joins the queue behind the others",
       {"passes and math.max(1, ticket - 31536000000000) or ticket", "ticket"});
MUTANT("an exempt newcomer waits for ordinary waiters",
       {"if waiters > 0 and request.may_pass and M.holders.closed_until() then", "if false then"});
MUTANT("admit grants a closed lock to no exempt waiter",
       {"fits(line.limit, line.while_closed)", "fits(line.limit)"});

CASE("closed: an exempt waiter moves to the front") {
  lab.play("A granted; B queued");
  const lock::Ticket before = lab.queued('C', passing()).ticket;
  lab.play("BC wait; c1 closed 1h");
  const lock::Ticket now = lab.queued('C', passing()).ticket;
  need(now < before && lab.waiters() == "CB", "it does not move");
  need(lab.queued('C', passing()).ticket == now, "it moves twice");
  lab.play("A released; C holds");
}
MUTANT("an exempt waiter moves forward with each request", {" and not is_ahead(ticket)", ""});
MUTANT("a waiter that was there before the closure does not move",
       {"if M.tickets.placed(ticket) ~= ticket then", "if false then"});

// The lease of the holder has ended, and another asks first.
CASE("closed: any request serves an exempt waiter") {
  lab.play("A granted; c1 closed 1h");
  for (int i = 0; i < 3; ++i) lab.play("B queued while-closed; C queued; 10s pass");
  lab.play("C queued; B holds");
}
MUTANT("admit grants a closed lock only to the caller",
       {"fits(line.limit, line.while_closed)",
        "fits(line.limit, head == args.owner and line.while_closed)"});

CASE("closed: an exempt waiter keeps its position if its entry is lost") {
  lab.play("A granted; c1 closed 1h");
  Ask ask = passing();
  ask.ticket = lab.queued('B', ask).ticket;
  lab.play("C queued while-closed");
  lab.cli({"ZREM", lab.key("queue"), lab.owner('B').text()});
  need(lab.queued('B', ask).ticket == ask.ticket, "it has another ticket");
  lab.play("BC wait");
}

CASE("closed: an exempt run waits for the end of a cool-down") {
  lab.play("c1 closed 1h; A granted while-closed min-hold=1m; A released");
  const auto busy =
      as<Busy>(lab.acquire('B', asking("while-closed at-once")), "the cool-down was passed");
  const lock::Holder* holder = lock::holder_in(busy.obstacle);
  need(holder != nullptr && holder->state == HolderState::cooldown, "not because of the cool-down");
  lab.play("61s pass; B granted while-closed");
}
MUTANT("an exempt run ignores a cool-down", {"    others = others - 1\n", "    others = 0\n"});

CASE("closed: an exempt run takes only a free slot") {
  lab.play(
      "AB granted slots=3; c1 closed 1h; C busy slots=3; C granted slots=3 while-closed at-once; "
      "D busy slots=3 while-closed; E busy while-closed");
}

CASE("closed: a second closing replaces the closure that it saw") {
  lab.play("c1 closed 1h; A queued");
  need(lab.close("c2", 1min, "c0") == ClosureReply::changed, "one was replaced that nobody saw");
  need(lab.close("c2", 1min) == ClosureReply::changed, "one was replaced that nobody saw");
  need(lab.open("c0") == ClosureReply::changed, "one was opened that nobody saw");
  lab.play("c2 closed 1m over c1");
  const lock::Snapshot seen = lab.inspect();
  need(seen.closure && seen.closure->id == "c2" && seen.closure->left == 1min, "not replaced");
  lab.play("A woken");
}
MUTANT("closing replaces a closure that the operator did not see", {"present_id ~= seen or ", ""});

// The reply was lost, or the request is a late copy.
CASE("closed: a repeated request changes nothing") {
  lab.play("c1 closed 1h; c1 closed 1h; c1 opened");
  need(lab.close("c1", 1h) == ClosureReply::changed, "a late copy closes it again");
  lab.play("c2 closed 1h; c3 closed 1h over c2");
  need(lab.close("c2", 1h, "c3") == ClosureReply::changed, "a late copy replaces a later one");
  need(lab.open("c2") == ClosureReply::changed, "a late copy opens a later one");
  need(lab.close("c4", 0ms, "c3") == ClosureReply::changed, "its end has come");
}
MUTANT("closing refuses a repeated request", {"if id and present_id == id then", "if false then"});
MUTANT("a late copy of a request closes an opened lock", {" or M.tombstones.kind(id))", ")"});
MUTANT("closing stores an end in the past", {"(ends <= now or ", "("});

// The closing was given up before its request arrived.
CASE("closed: a request to close that arrives after its cancel changes nothing") {
  lab.play("c1 opened");
  need(lab.close("c1", 1h) == ClosureReply::changed, "it is closed");
  lab.play("c2 closed 1h");
}
MUTANT("a closing that arrives after its cancel closes the lock",
       {"if seen then M.tombstones.add(seen, 2) end", ""});

CASE("closed: the history lists the closure") {
  lab.play("c1 closed 1h");
  lab.acquire('A', asking("at-once"));
  lab.play("5s pass; c1 opened");
  const auto rows = lab.history();
  const auto open = as<lock::Closing>(rows.at(0), "no row");
  need(open.until.ms == 0 && open.record == "who opened it", "another row");
  need(as<lock::Skips>(rows.at(1), "no skip").count == 1, "the refusal is no skip");
  const auto close = as<lock::Closing>(rows.at(2), "no row");
  need(close.until.ms - close.at.ms == 3'600'000 && close.record == "who closed it", "another row");
  need(lab.inspect().counters.runs == 0, "it is counted as a run");
}

CASE("closed: with memory full a lock can be opened but not closed") {
  lab.play("A granted; memory full");
  const std::string before = lab.fingerprint();
  bool refused = false;
  try {
    lab.close("c1", 1h);
  } catch (const Broken&) {
    refused = true;
  }
  need(refused && lab.fingerprint() == before, "something was written");
  lab.play(
      "memory free; c1 closed 1h; B queued; A released; memory full; c1 opened; B holds; "
      "memory free");
}

CASE("closed: force-unlock does not open the lock") {
  lab.play("c1 closed 1h");
  as<lock::NotHeld>(lab.force('A'), "the closure is a holder");
  need(lab.inspect().closure.has_value(), "it is open");
}
MUTANT("force-unlock takes the closure for a holder",
       {"{}, not M.views.some_holder()", "{}, M.holders.count() == 0"});

CASE("closed: finished work counts as done") {
  lab.play("A granted once=k; c1 closed 1h; A marked once=k; B done once=k");
}

// What runs now counts when it succeeds.
CASE("closed: forget does not remove the success of a current run") {
  lab.play(
      "A granted once=k; c1 closed 5s; all forgotten; A marked once=k; "
      "B granted at-once while-closed once=l");
  lab.play("5s pass; all forgotten; B marked once=l");
}
MUTANT("forget forgets the success of a current run",
       {" - (M.holders.closed_until() and 1 or 0)", ""});
MUTANT("forget counts an expired closure as a run",
       {"(M.holders.closed_until() and 1", "(M.holders.held_until('~closed') and 1"});

CASE("closed: the keys of a closure expire") {
  lab.play("c1 closed 30d; 29d pass");
  need(lab.inspect().closure.has_value(), "it was open too early");
  lab.pass(24h);
  need(!lab.inspect().closure, "it is still closed");
  lab.pass(24h * 31);
  need(lab.cli({"KEYS", "rlock:*"}).empty(), "keys stay: " + lab.cli({"KEYS", "rlock:*"}));
}

CASE("closed: an ordinary waiter does not overtake an exempt one") {
  lab.play(
      "c1 closed 1h; A queued; B granted while-closed; C queued supersede=1 while-closed; "
      "D queued supersede=2; E queued while-closed; EAD wait; B released; E holds; "
      "E granted while-closed; E released; AD queued; c1 opened; A holds; D waits");
}

// Its reply was lost.
CASE("closed: with memory full a lock can be opened twice") {
  lab.play("c1 closed 1h; memory full; c1 opened; c1 opened; memory free");
}

CASE("closed: closing serves an exempt waiter if a lease has expired") {
  lab.play("A granted ttl=10s; B queued while-closed; 10s pass; c1 closed 1h; B holds; B woken");
}

}  // namespace
}  // namespace rlock::contract
