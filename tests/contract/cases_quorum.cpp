// What a client of a quorum relies on at each of its servers. [docs/PROTOCOL.md, "Quorum"]
#include "contract/lab.hpp"

#include <cstdint>

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::CancelReply;
using lock::Lost;
using lock::LostHow;
using lock::OwnerEnded;

Ask attempt(uint64_t number, uint64_t ticket = 1000) {
  Ask ask;
  ask.attempt = number;
  ask.ticket = {ticket};
  return ask;
}

lock::Token confirmed(Lab& lab, char owner, uint64_t number) {
  lock::Token token = lab.granted(owner, attempt(number));
  as<lock::Renewal>(lab.renew(owner, token, attempt(number)), "the token is not written back");
  return token;
}

// A client reconnected: its acquire and release of attempt 1 lie unread while attempt 2 is granted.
void old_bytes(Lab& lab) {
  lock::Token token = confirmed(lab, 'A', 2);
  as<OwnerEnded>(lab.acquire('A', attempt(1)), "an older acquire is accepted");
  lab.cancel_attempt('A', 1, {});
  need(lab.holders() == "A", "an older give-back freed a newer grant");
  as<Lost>(lab.renew('A', token, attempt(1)), "an older write-back is accepted");
  // Another's request stores the hold in the form of several keys.
  lab.queued('B', attempt(1));
  lab.cancel_attempt('B', 1, {});
  as<OwnerEnded>(lab.acquire('A', attempt(1)), "an older acquire is accepted later");
  as<Lost>(lab.renew('A', token, attempt(1)), "an older write-back is accepted later");
  lab.cancel_attempt('A', 2, {});
  need(lab.holders().empty(), "the cancel of the grant itself is ignored");
}

void cancel_before_acquire(Lab& lab) {
  need(lab.cancel_attempt('A', 1, {1000}) == CancelReply::not_found, "A had something");
  as<OwnerEnded>(lab.acquire('A', attempt(1)),
                 "the acquire that was cancelled before takes the lock");
  need(lab.holders().empty() && lab.waiters().empty(), "an ended owner is back");
  lab.granted('A', attempt(2));
}

// What is known of its attempts outlives the tombstone of an earlier one.
void old_cancel_after_the_tombstone(Lab& lab) {
  lab.cancel_attempt('A', 1, {});
  Ask longer = attempt(2);
  longer.ttl = 60s;
  const lock::Token token = lab.granted('A', longer);
  as<lock::Renewal>(lab.renew('A', token, longer), "the token is not written back");
  for (int i = 0; i < 3; ++i) {
    lab.pass(30s);
    as<lock::Renewal>(lab.renew('A', token, longer), "not renewed");
  }
  lab.queued('B', attempt(1));
  lab.cancel_attempt('B', 1, {});  // sweeps the tombstone
  lab.cancel_attempt('A', 1, {});
  need(lab.holders() == "A", "a late cancel ended a confirmed hold");
}

void late_write_back(Lab& lab) {
  lock::Token token = lab.granted('A', attempt(1));
  lab.cancel_attempt('A', 1, {});
  confirmed(lab, 'B', 1);
  as<Lost>(lab.renew('A', token, attempt(1)), "written back though it was cancelled");
  need(lab.holders() == "B", "the write-back of another changed the holder");
  // Nor of one that never cancelled, where another holds it.
  Ask another = attempt(1);
  another.ahead = 60s;
  as<Lost>(lab.renew('C', {token.value + 5'000'000}, another), "written back over a holder");
  need(lab.holders() == "B", "the write-back of another changed the holder");
}

void token_grows(Lab& lab) {
  lock::Token own = lab.granted('A', attempt(1));
  lock::Token agreed{own.value + 60'000'000};  // of a server whose clock is ahead
  as<lock::Renewal>(lab.renew('A', agreed, attempt(1)), "not written back");
  need(lab.inspect().holders.front().token == agreed, "the holder shows another token");
  lab.release('A');
  need(lab.granted('B', attempt(1)) > agreed, "the next token is not greater than the majority's");
}

// A server that was stopped until the run was over gets the acquire and the release alone.
void unconfirmed_run(Lab& lab) {
  lab.granted('A', attempt(1));
  lab.release('A');
  need(lab.history().empty(), "a run is listed that began under no token of the majority");
  confirmed(lab, 'B', 1);
  lab.release('B');
  need(lab.history().size() == 1, "a run of the majority is not listed");
  lab.granted('C', attempt(1));
  lab.queued('D', attempt(1));
  lab.cancel('D');
  lab.release('C');
  need(lab.history().size() == 1, "a run is listed once another asked");
}

void missed_write_back(Lab& lab) {
  lock::Token own = lab.granted('A', attempt(1));
  lock::Token agreed{own.value + 60'000'000};
  Ask of_another;
  of_another.ahead = 60s;
  as<lock::Renewal>(lab.renew('A', agreed, of_another), "not renewed");
  need(lab.inspect().holders.front().token == agreed, "the holder shows another token");
  lab.release('A');
  need(as<lock::Run>(lab.history().at(0), "no run").token == agreed, "not under its token");
  need(lab.granted('B', attempt(1)) > agreed, "the next token is not greater than the majority's");
}

// It was issued by a server whose clock is ahead; this one was away when it was granted.
void completed_later(Lab& lab) {
  const lock::Token own = confirmed(lab, 'A', 1);
  lab.cli({"FLUSHALL"});
  lab.pass(0s);
  const lock::Token agreed{own.value + 60'000'000};
  as<Lost>(lab.renew('A', agreed), "a token of the future is put back");
  Ask of_another;
  of_another.ahead = 60s;
  need(as<lock::Renewal>(lab.renew('A', agreed, of_another), "lost") == lock::Renewal::put_back,
       "the grant is not completed");
  need(lab.holders() == "A", "A does not hold it");
}

void ticket_of_the_future(Lab& lab) {
  constexpr uint64_t kAhead = 9'000'000'000'000'000;
  lab.granted('A', attempt(1));
  const lock::Ticket place = lab.queued('B', attempt(1, kAhead)).ticket;
  need(place.value < kAhead, "a ticket of the future is believed");
  lab.pass(1s);
  lab.queued('C', attempt(1, place.value + 500'000));
  need(lab.waiters() == "BC", "who comes later is in front");
  lab.release('A');
  need(lab.holders() == "B", "B is not the next");
  lab.pass(1s);
  lab.cancel_attempt('B', 1, {kAhead});
  need(lab.holders() == "C" && lab.waiters() == "B", "C is not the next");
  lab.pass(1s);
  lab.queued('D', attempt(1, place.value + 2'500'000));
  need(lab.waiters() == "BD", "a later waiter is in front of one that cancelled");
}

void token_after_amnesia(Lab& lab) {
  lock::Token token = confirmed(lab, 'A', 1);
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  need(lab.granted('B', attempt(1)) > token, "the token fell after a loss of memory");
}

// A contender's cancelled grant must not keep the holder from coming back.
void contender_grant(Lab& lab) {
  lock::Token token = confirmed(lab, 'A', 1);
  lab.pass(31s);
  lab.granted('B', attempt(1));
  lab.cancel_attempt('B', 1, {2000});
  need(as<lock::Renewal>(lab.renew('A', token), "the holder does not get back what is free") ==
           lock::Renewal::put_back,
       "not put back");
  need(lab.holders() == "A" && lab.waiters() == "B", "A holds, B waits");
}

void confirmed_contender(Lab& lab) {
  lock::Token token = confirmed(lab, 'A', 1);
  lab.pass(31s);
  confirmed(lab, 'B', 1);
  lab.release('B');
  need(as<Lost>(lab.renew('A', token), "put back though B had it").how == LostHow::taken,
       "not reported as taken");
}

// Somebody deleted the first hold by hand.
void confirmed_after_deletion(Lab& lab) {
  lock::Token token = confirmed(lab, 'A', 1);
  lab.cli({"DEL", lab.key("holders")});
  confirmed(lab, 'B', 1);
  lab.release('B');
  need(as<Lost>(lab.renew('A', token), "put back though B had it").how == LostHow::taken,
       "not reported as taken");
  Ask shared;
  shared.limit = lock::Limit::shared();
  need(as<Lost>(lab.renew('A', token, shared), "put back though B had it").how == LostHow::taken,
       "not reported as taken to a shared one");
}

void write_back_with_memory_full(Lab& lab) {
  lock::Token token = lab.granted('A', attempt(1));
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  need(std::holds_alternative<lock::Renewal>(lab.renew('A', token, attempt(1))),
       "a write-back is refused");
  need(std::holds_alternative<lock::Renewal>(lab.renew('A', token)), "a renewal is refused");
  need(lab.release('A').ending == lock::OwnerEnd::released, "a release is refused");
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
}

void words_are_kept(Lab& lab) {
  const lock::Token token = lab.granted('A', attempt(1));
  if (lab.cli({"TYPE", lab.key("holders")}) != "string") return;
  std::string hold = lab.cli({"GET", lab.key("holders")});
  lab.cli({"SET", lab.key("holders"), hold.insert(hold.find('|'), "slot=3 kind=new "), "KEEPTTL"});
  as<lock::Renewal>(lab.renew('A', token, attempt(1)), "not written back");
  lab.queued('B', attempt(1));
  const std::string line = lab.cli({"HGET", lab.key("who"), "+" + Lab::owner('A').text()});
  need(line.ends_with(" 1 slot=3 kind=new"), "other words than those: " + line);
}

constexpr Millis kMonth = 720h;

lock::Once month(const std::string& label) {
  return {lock::OnceKind::period, "month:" + label, kMonth, {}};
}

Ask attempt_of(const lock::Once& once, uint64_t number = 1) {
  Ask ask = attempt(number);
  ask.once = once;
  return ask;
}

lock::Marked marked(Lab& lab, char owner, const lock::Once& once, lock::Token token) {
  return lab.ends(owner, {once, {}, token, true, {}}).marked;
}

lock::Token done(Lab& lab, char owner, const lock::Once& once) {
  return as<lock::AlreadyDone>(lab.acquire(owner, attempt_of(once)), "it is not done").token;
}

// Also at a server that never confirmed the grant, or never had it.
void mark_has_the_token(Lab& lab) {
  const lock::Once once = month("2026-11"), next = month("2026-12"), last = month("2027-01");
  const lock::Token own = lab.granted('A', attempt_of(once));
  const lock::Token agreed{own.value + 5'000'000};
  as<lock::Renewal>(lab.renew('A', agreed, attempt(1)), "not written back");
  need(marked(lab, 'A', once, agreed) == lock::Marked::yes, "not marked");
  need(done(lab, 'B', once) == agreed, "another token");
  const lock::Token higher{lab.granted('C', attempt_of(next)).value + 5'000'000};
  need(marked(lab, 'C', next, higher) == lock::Marked::yes, "not marked where unconfirmed");
  need(done(lab, 'D', next) == higher, "another token than the majority's");
  lab.pass(10s);
  const lock::Token highest{higher.value + 1'000'000};
  need(marked(lab, 'E', last, highest) == lock::Marked::yes, "not marked where never granted");
  need(done(lab, 'F', last) == highest, "another token where never granted");
}

// A server that was stopped carries out the acquire and the release long after the others.
void marked_late(Lab& lab) {
  const lock::Once once{lock::OnceKind::within, "", 5min, {}};
  const lock::Token here = lab.granted('A', attempt_of(once));
  const lock::Token agreed{here.value - 600'000'000};
  need(marked(lab, 'A', once, agreed) == lock::Marked::yes, "not marked");
  lab.granted('B', attempt_of(once));
  lab.cancel('B');
  Ask earlier = attempt_of({lock::OnceKind::within, "", 1min, {}});
  earlier.asked = 8min;
  lab.granted('C', earlier);
  lab.cancel('C');
  lab.granted('D', attempt_of(once));
  lab.ends('D', {once, 0ms, {agreed.value + 420'000'000}, true, {}, 3min});
  lab.granted('E', attempt_of(once));
}

// The others granted B the lock; here it waits, since the release of A got lost.
void marked_while_it_waits(Lab& lab) {
  const lock::Once once = month("2026-11"), next = month("2026-12");
  const lock::Token before = confirmed(lab, 'A', 1);
  as<lock::Queued>(lab.acquire('B', attempt_of(once)), "not queued");
  need(marked(lab, 'B', once, {before.value + 1000}) == lock::Marked::yes, "not marked");
  need(marked(lab, 'B', once, {before.value + 1000}) == lock::Marked::yes, "not when resent");
  done(lab, 'C', once);
  as<lock::Queued>(lab.acquire('D', attempt_of(next)), "not queued");
  need(marked(lab, 'D', next, {before.value - 1000}) == lock::Marked::no,
       "marked though another was granted since");
}

// One that has the lock by one attempt, whose majority has not confirmed it, learns at the next.
void done_before_the_write_back(Lab& lab) {
  const lock::Once once = month("2026-11");
  const lock::Token token = confirmed(lab, 'A', 1);
  lab.pass(31s);
  lab.granted('B', attempt_of(once));
  lab.cancel_attempt('B', 1, {1000});
  need(marked(lab, 'A', once, token) == lock::Marked::yes, "not marked");
  done(lab, 'B', once);
  need(lab.waiters().empty(), "B still waits");
}

// Two of three forgot it; this server was down.
void forgotten_elsewhere(Lab& lab) {
  const lock::Once once = month("2026-11");
  const lock::Token token = lab.granted('A', attempt_of(once));
  as<lock::Renewal>(lab.renew('A', token, attempt(1)), "not written back");
  need(marked(lab, 'A', once, token) == lock::Marked::yes, "not marked");
  Ask earlier = attempt_of(once), later = attempt_of(once, 2);
  earlier.forgotten = {token.value - 1};
  later.forgotten = {token.value};
  as<lock::AlreadyDone>(lab.acquire('B', earlier), "what came before was forgotten");
  lab.granted('B', later);
  need(as<lock::Queued>(lab.acquire('C', attempt_of(once)), "not forgotten for others").forgotten ==
           token,
       "others do not learn of it");
}

void forgets_what_is_agreed(Lab& lab) {
  std::vector<lock::Token> tokens;
  for (char owner : std::string("AB")) {
    const lock::Once once{lock::OnceKind::key, std::string(1, owner), {}, {}};
    tokens.push_back(lab.granted(owner, attempt_of(once)));
    as<lock::Renewal>(lab.renew(owner, tokens.back(), attempt(1)), "not written back");
    need(marked(lab, owner, once, tokens.back()) == lock::Marked::yes, "not marked");
    lab.pass(1s);
  }
  need(lab.forget("B", tokens[0]).marks == 0 && lab.forget({}, tokens[0]).marks == 1,
       "not what is agreed");
  done(lab, 'C', {lock::OnceKind::key, "B", {}, {}});
  need(lab.forget({}, {tokens[1].value + 3600'000'000}).marks == 1, "not forgotten");
  const lock::Token next = lab.granted('D');
  need(next.value < tokens[1].value + 3600'000'000, "a token of the future is believed");
}

void place_is_kept(Lab& lab) {
  lab.granted('A', attempt(1, 1000));
  lab.queued('B', attempt(1, 500));
  lab.queued('C', attempt(1, 2000));
  need(lab.cancel_attempt('A', 1, {1000}) == CancelReply::was_granted, "A had the lock");
  need(lab.holders() == "B" && lab.waiters() == "AC", "A does not wait where its ticket says");
  need(lab.woken('B'), "B is not woken");
  lab.cancel_attempt('B', 1, {500});
  need(lab.holders().empty() && lab.waiters() == "BAC", "B, which cancelled, is granted again");
  lab.granted('B', attempt(2, 500));
}

void common_ticket(Lab& lab) {
  Ask longer = attempt(1);
  longer.ttl = 60s;
  const lock::Token token = lab.granted('A', longer);
  lab.queued('B', attempt(1, 7000));
  lab.queued('C', attempt(1, 6000));
  need(lab.waiters() == "CB", "the order is the server's own");
  lab.pass(16s);  // both miss their heartbeat
  lab.renew('A', token, longer);
  lab.queued('B', attempt(2, 7000));
  lab.pass(16s);
  lab.renew('A', token, longer);
  lab.queued('B', attempt(3, 7000));
  lab.queued('C', attempt(2, 8000));
  need(lab.waiters() == "BC", "a second miss changed the client's ticket");
}

void nothing_stays(Lab& lab) {
  lab.granted('A', attempt(1));
  Ask ask = attempt(1);
  ask.queueing = lock::Queueing::never;
  as<lock::Busy>(lab.acquire('B', ask), "not busy");
  lab.cancel_attempt('B', 1, {});
  lab.cancel_attempt('A', 1, {});
  need(lab.holders().empty() && lab.waiters().empty(), "something stays");
  lab.pass(76s);
  lab.granted('C');
  lab.release('C');
  const std::string fields = lab.cli({"HKEYS", lab.key("who")});
  need(fields.find('#') == std::string::npos, "the number of an attempt is kept for ever");
}

}  // namespace

const std::vector<NamedCase>& quorum_cases() {
  static const std::vector<NamedCase> list{
      {"the bytes of an older attempt, read after a newer one, change nothing", old_bytes},
      {"an acquire that arrives after its cancel takes nothing", cancel_before_acquire},
      {"a late write-back changes nothing", late_write_back},
      {"the token of the majority is written back", token_grows},
      {"a run that was never confirmed here is not listed", unconfirmed_run},
      {"a renewal brings the token where the write-back was missed", missed_write_back},
      {"a server that was away is given the lease, also by a client whose clock is ahead",
       completed_later},
      {"a ticket in the future becomes the server's own time", ticket_of_the_future},
      {"the token grows after data loss", token_after_amnesia},
      {"a cancelled grant does not count as a grant", contender_grant},
      {"a later confirmed grant counts as a grant", confirmed_contender},
      {"a confirmed grant counts, also where the one before was deleted", confirmed_after_deletion},
      {"a grant is confirmed and released with memory full", write_back_with_memory_full},
      {"a grant that is confirmed keeps words that are not known", words_are_kept},
      {"the mark of a run has the majority's token", mark_has_the_token},
      {"a late cancel ends no confirmed hold, also after its tombstone",
       old_cancel_after_the_tombstone},
      {"a mark that a server writes late is as old as its token", marked_late},
      {"a success is marked where the run still waits", marked_while_it_waits},
      {"one that never confirmed its grant learns that it is done", done_before_the_write_back},
      {"what other servers have forgotten is forgotten here, too", forgotten_elsewhere},
      {"a server forgets what the servers have agreed on", forgets_what_is_agreed},
      {"after a cancel the waiter keeps its position and is not granted the lock again at once",
       place_is_kept},
      {"the client's ticket decides the order, whatever claims it missed", common_ticket},
      {"a failed attempt leaves nothing without expiry", nothing_stays},
  };
  return list;
}

}  // namespace rlock::contract
