// What a client of a quorum relies on at each of its servers. [docs/PROTOCOL.md, "Quorum"]
#include <cstdint>

#include "contract/lab.hpp"

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

// A client reconnected: its acquire and release of attempt 1 lie unread while attempt 2 is granted.
CASE("the bytes of an older attempt, read after a newer one, change nothing") {
  lab.play(
      "A confirmed attempt=2; A ended attempt=1; A withdraws attempt=1 ticket=0; A holds; "
      "A lost attempt=1");
  // Another's request stores the hold in the form of several keys.
  lab.play(
      "B queued attempt=1; B withdraws attempt=1 ticket=0; A ended attempt=1; "
      "A lost attempt=1; A withdraws attempt=2 ticket=0; nobody holds");
}
MUTANT("the scripts accept an older attempt",
       {"if stamp > 0 and stamp < M.stamps.of(owner) then", "if false then"},
       {"2 * args.attempt + 1 <= M.stamps.of(owner) then", "false then"});
MUTANT("the scripts do not store the number of an attempt",
       {"M.keys.put_text(WHO, '#' .. owner, stamp)", ""});
MUTANT("the scripts do not read the number of an attempt",
       {"tonumber(call('HGET', WHO, '#' .. owner) or 0)", "0"});
MUTANT("a renewal accepts an older write-back",
       {"if stamp > 0 and stamp < M.stamps.of(owner) then return", "if false then return"});

CASE("an acquire that arrives after its cancel takes nothing") {
  need(lab.cancel_attempt('A', 1, {1000}) == CancelReply::not_found, "A had something");
  lab.play("A ended attempt=1; nobody holds; nobody waits; A granted attempt=2");
}
MUTANT("the cancel of an unknown owner leaves no stamp",
       {"  M.stamps.store(owner, 2 * args.attempt + 1)\n", ""});

// What is known of its attempts outlives the tombstone of an earlier one.
CASE("a late cancel ends no confirmed lease, even after its tombstone") {
  lab.play(
      "A withdraws attempt=1 ticket=0; A granted attempt=2 ttl=60s; "
      "A renewed attempt=2 ttl=60s");
  for (int i = 0; i < 3; ++i) lab.play("30s pass; A renewed ttl=60s");
  lab.play("B queued attempt=1");
  lab.play("B withdraws attempt=1 ticket=0");  // sweeps the tombstone
  lab.play("A withdraws attempt=1 ticket=0; A holds");
}
MUTANT("the sweep removes the stamps of live owners",
       {"if not (M.holders.held_until(owner) or M.queue.ticket(owner)) then call('HDEL'",
        "if true then call('HDEL'"});

CASE("a late write-back changes nothing") {
  lab.granted('A', attempt(1));
  lab.play("A withdraws attempt=1 ticket=0; B confirmed attempt=1; A lost attempt=1; B holds");
  // Nor of one that never cancelled, where another holds it.
  as<Lost>(lab.renew('C', {lab.token('A').value + 5'000'000}, asking("attempt=1 ahead=1m")),
           "written back over a holder");
  lab.play("B holds");
}
MUTANT("a write-back restores a lease next to another holder",
       {"if not M.slots.fits(limit, true) then return 'full', forgot end", ""});

CASE("the token of the majority is written back") {
  lock::Token own = lab.granted('A', attempt(1));
  lock::Token agreed{own.value + 60'000'000};  // of a server whose clock is ahead
  as<lock::Renewal>(lab.renew('A', agreed, attempt(1)), "not written back");
  need(lab.inspect().holders.front().token == agreed, "the holder shows another token");
  lab.release('A');
  need(lab.granted('B', attempt(1)) > agreed, "the next token is not greater than the majority's");
}
MUTANT("a write-back does not store the token",
       {"    line.token = token\n    memory.last = math.max(memory.last, token)\n",
        "    line.token = token\n"});
MUTANT("a write-back does not store the token", {"    line.token = token\n", ""});

// A server that was stopped until the run was over gets the acquire and the release alone.
CASE("a run that was never confirmed here is not listed") {
  lab.play("A granted attempt=1; A released");
  need(lab.history().empty(), "a run is listed that began under no token of the majority");
  lab.play("B confirmed attempt=1; B released");
  need(lab.history().size() == 1, "a run of the majority is not listed");
  lab.play("C granted attempt=1; D queued attempt=1; D cancelled; C released");
  need(lab.history().size() == 1, "a run is listed once another asked");
}
MUTANT("the history lists the run of an unconfirmed grant",
       {"request.stamp == 0 and 'held' or 'granted'", "'held'"});
MUTANT("the history lists the run of an unconfirmed grant",
       {"line.state == 'granted' or line.unclaimed", "line.unclaimed"});

CASE("a renewal brings the token where the write-back was missed") {
  lock::Token own = lab.granted('A', attempt(1));
  lock::Token agreed{own.value + 60'000'000};
  as<lock::Renewal>(lab.renew('A', agreed, asking("ahead=1m")), "not renewed");
  need(lab.inspect().holders.front().token == agreed, "the holder shows another token");
  lab.release('A');
  need(as<lock::Run>(lab.history().at(0), "no run").token == agreed, "not under its token");
  need(lab.granted('B', attempt(1)) > agreed, "the next token is not greater than the majority's");
}
MUTANT("a renewal does not repeat a missed write-back",
       {"if stamp > 0 or missed then", "if stamp > 0 then"});

// It was issued by a server whose clock is ahead; this one was away when it was granted.
CASE("a server that was away gets the lease, even from a client whose clock is ahead") {
  lab.play("A confirmed attempt=1; data lost; 0s pass");
  const lock::Token agreed{lab.token('A').value + 60'000'000};
  as<Lost>(lab.renew('A', agreed), "a token of the future is put back");
  need(as<lock::Renewal>(lab.renew('A', agreed, asking("ahead=1m")), "lost") ==
           lock::Renewal::restored,
       "the grant is not completed");
  lab.play("A holds");
}
MUTANT("a renewal rejects the token of a client whose clock is ahead",
       {"now_us + 1000 * (args.ahead or 0)", "now_us"});

CASE("a ticket in the future becomes the server's own time") {
  constexpr uint64_t kAhead = 9'000'000'000'000'000;
  lab.play("A granted attempt=1");
  const lock::Ticket place = lab.queued('B', attempt(1, kAhead)).ticket;
  need(place.value < kAhead, "a ticket of the future is believed");
  lab.play("1s pass; C queued; BC wait; A released; B holds; 1s pass",
           attempt(1, place.value + 500'000));
  lab.cancel_attempt('B', 1, {kAhead});
  lab.play("C holds; B waits; 1s pass; D queued; BD wait", attempt(1, place.value + 2'500'000));
}
MUTANT("acquire accepts a ticket in the future",
       {"return math.min(request.given_ticket, now_us)", "return request.given_ticket"});
MUTANT("a cancel accepts a ticket in the future",
       {"set_place(owner, math.min(ticket, now_us))", "set_place(owner, ticket)"});

CASE("a cancel with the ticket 0 keeps no position") {
  lab.play("A granted attempt=1; B queued attempt=1");
  lab.raw(&redis::Scripts::release, {"owner", Lab::owner('A').text(), "entry", "0", "how",
                                     "yielded", "note", "", "attempt", "1", "ticket", "0"});
  lab.play("nobody waits; B holds");
}
MUTANT("a cancel with the ticket 0 puts the owner at the head of the queue",
       {"if ticket == 0 or not line then", "if not line then"});

CASE("a client that cancelled its grant waits like any other") {
  lab.play("A granted attempt=1; A withdraws attempt=1 ticket=1000; A waits");
  const std::string line = lab.cli({"HGET", lab.key("who"), Lab::owner('A').text()});
  need((" " + line).find(" token=0 ") != line.npos, "it has a token: " + line);
}
MUTANT("a client that cancelled its grant keeps the token",
       {"line.state, line.token, line.entries, line.slot = 'waiting', 0, nil, nil",
        "line.state, line.entries = 'waiting', nil"});

CASE("the token grows after data loss") {
  lab.play("A confirmed attempt=1; data lost; 1s pass");
  need(lab.granted('B', asking("attempt=1")) > lab.token('A'),
       "the token fell after a loss of memory");
}

// A contender's cancelled grant must not keep the holder from coming back.
CASE("a cancelled grant does not count as a grant") {
  lab.play(
      "A confirmed attempt=1; 31s pass; B granted attempt=1; "
      "B withdraws attempt=1 ticket=2000; A restored; A holds; B waits");
}
MUTANT("the grant of a single server counts",
       {"if stamp == 0 then note(line.token, line) end", "note(line.token, line)"});
MUTANT("the grant of a single server counts", {"if stamp == 0 then note(", "if true then note("});

CASE("a later confirmed grant counts as a grant") {
  lab.play("A confirmed attempt=1; 31s pass; B confirmed attempt=1; B released; A lost: taken");
}

// Somebody deleted the first hold by hand.
CASE("a confirmed grant counts even if the earlier one was deleted") {
  lab.play(
      "A confirmed attempt=1; holders deleted; B confirmed attempt=1; B released; "
      "A lost: taken; A lost: taken shared");
}
MUTANT("a confirmed grant does not count as a grant",
       {"memory.grant = math.max(memory.grant, token)", ""});
MUTANT("a confirmed grant does not count as an exclusive one",
       {"if line.limit == 1 then memory.exclusive = math.max(memory.exclusive, token) end", ""});

CASE("a grant is confirmed and released with memory full") {
  lab.play(
      "A granted attempt=1; memory full; A renewed attempt=1; A renewed; "
      "A released: released; memory free");
}
MUTANT("the first write of a write-back needs memory",
       {"M.keys.touch()\nlocal held = M.holders.held_until(owner)",
        "local held = M.holders.held_until(owner)"});

CASE("a grant that is confirmed keeps words that are not known") {
  lab.play("A granted attempt=1");
  const auto line = [&] { return lab.cli({"HGET", lab.key("who"), Lab::owner('A').text()}); };
  lab.cli({"HSET", lab.key("who"), Lab::owner('A').text(), "slot=3 shade=new " + line()});
  lab.play("A renewed attempt=1; B queued attempt=1");
  need(
      line().find("slot=3 ") != std::string::npos && line().find("shade=new ") != std::string::npos,
      "other words than those: " + line());
}
MUTANT("a write-back drops unknown words of a grant",
       {"if name ~= 'record' then list", "if name ~= 'record' and name ~= 'shade' then list"});

constexpr Millis kThirtyDays = 720h;

lock::Once month(const std::string& label) {
  return {lock::OnceKind::period, "month:" + label, kThirtyDays, {}};
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
CASE("the mark of a run has the majority's token") {
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
MUTANT("a mark has the server's own token",
       {"if token == 0 and line then token", "if line then token"});

// A server that was stopped carries out the acquire and the release long after the others.
CASE("a mark that a server writes late is as old as its token") {
  const lock::Once once{lock::OnceKind::within, "", 5min, {}};
  const lock::Token here = lab.granted('A', attempt_of(once));
  const lock::Token agreed{here.value - 600'000'000};
  need(marked(lab, 'A', once, agreed) == lock::Marked::yes, "not marked");
  lab.play("B granted; B cancelled", attempt_of(once));
  Ask earlier = attempt_of({lock::OnceKind::within, "", 1min, {}});
  earlier.asked = 8min;
  lab.play("C granted; C cancelled", earlier);
  lab.granted('D', attempt_of(once));
  lab.ends('D', {once, 0ms, {agreed.value + 420'000'000}, true, 3min});
  lab.granted('E', attempt_of(once));
}
MUTANT("a late mark is as old as the request", {"known and known.asked or asked, asked))",
                                                "known and known.asked or request.work.asked))"});
MUTANT("a late mark ignores how long the run waited",
       {"granted_at - (args.waited or 0)", "granted_at"});
MUTANT("a late mark has a later grant than its token",
       {"if line and line.since <= issued then", "if line then"}, {"math.min(issued, now)", "now"});

// The others granted B the lock; here it waits, since the release of A got lost.
CASE("a success is recorded even on a server where the run still waits") {
  const lock::Once once = month("2026-11"), next = month("2026-12");
  lab.play("A confirmed attempt=1; B queued attempt=1 month=2026-11");
  need(marked(lab, 'B', once, {lab.token('A').value + 1000}) == lock::Marked::yes, "not marked");
  need(marked(lab, 'B', once, {lab.token('A').value + 1000}) == lock::Marked::yes,
       "not when resent");
  lab.play("C done attempt=1 month=2026-11; D queued attempt=1 month=2026-12");
  need(marked(lab, 'D', next, {lab.token('A').value - 1000}) == lock::Marked::no,
       "marked though another was granted since");
}
MUTANT("a success leaves no mark where the run still waits",
       {"local mark = M.outcome.note_late_success(M.tombstones.kind(owner))\n",
        "local mark = ''\n"});
MUTANT("an older holder prevents the mark",
       {"if why and not (why == 'full' and (not other or other.token <= number)) then",
        "if why then"});

// One that has the lock by one attempt, whose majority has not confirmed it, learns at the next.
CASE("a client that never confirmed its grant learns that the work is done") {
  const lock::Once once = month("2026-11");
  lab.play(
      "A confirmed attempt=1; 31s pass; B granted attempt=1 month=2026-11; "
      "B withdraws attempt=1");
  need(marked(lab, 'A', once, lab.token('A')) == lock::Marked::yes, "not marked");
  lab.play("B done attempt=1 month=2026-11; nobody waits");
}

// Two of three forgot it; this server was down.
CASE("a server forgets what other servers have forgotten") {
  const lock::Once once = month("2026-11");
  const lock::Token token = lab.granted('A', attempt_of(once));
  lab.play("A renewed attempt=1");
  need(marked(lab, 'A', once, token) == lock::Marked::yes, "not marked");
  Ask earlier = attempt_of(once), later = attempt_of(once, 2);
  earlier.forgotten = {token.value - 1};
  later.forgotten = {token.value};
  lab.play("B done", earlier);
  lab.granted('B', later);
  need(as<lock::Queued>(lab.acquire('C', attempt_of(once)), "not forgotten for others").forgotten ==
           token,
       "others do not learn of it");
}
MUTANT("acquire does not forget what other servers have forgotten",
       {"if work and args.forgotten then", "if false then"});
MUTANT("acquire forgets more than other servers have forgotten",
       {"if last and last <= through then", "if last then"});

CASE("a server forgets what the servers have agreed on") {
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
MUTANT("forget of all marks ignores the token that the servers agreed on",
       {"all[i] ~= 'waits' and mark.token <= through then", "all[i] ~= 'waits' then"});
MUTANT("forget of a key ignores the token that the servers agreed on",
       {"if mark.ended == 0 or mark.token <= through then", "if true then"});
MUTANT("forget accepts a token of the far future",
       {"math.min(tonumber(token), math.max(memory.last, now_us + 60000000))", "tonumber(token)"});

CASE("after a cancel the waiter keeps its position and is not granted the lock again immediately") {
  lab.play(
      "A granted attempt=1 ticket=1000; B queued attempt=1 ticket=500; "
      "C queued attempt=1 ticket=2000");
  need(lab.cancel_attempt('A', 1, {1000}) == CancelReply::was_granted, "A had the lock");
  lab.play(
      "B holds; AC wait; B woken; B withdraws attempt=1 ticket=500; nobody holds; BAC wait; "
      "B granted attempt=2 ticket=500");
}
MUTANT("a cancel grants the lock to its own waiter again", {"head == excluded or ", ""});

CASE("the client's ticket decides the order, even after missed claims") {
  lab.play(
      "A granted attempt=1 ttl=60s; B queued attempt=1 ticket=7000; "
      "C queued attempt=1 ticket=6000; CB wait");
  lab.pass(16s);  // both miss their heartbeat
  lab.play(
      "A renewed attempt=1 ttl=60s; B queued attempt=2 ticket=7000; 16s pass; "
      "A renewed attempt=1 ttl=60s; B queued attempt=3 ticket=7000; "
      "C queued attempt=2 ticket=8000; BC wait");
}
MUTANT("the server replaces the client's ticket by its own",
       {"if request.stamp > 0 then return math.min", "if false then return math.min"},
       {"request.given_ticket > 0 and request.stamp == 0 and not taken",
        "request.given_ticket > 0 and not taken"});

CASE("a failed attempt leaves nothing without expiry") {
  lab.play(
      "A granted attempt=1; B busy attempt=1; BA withdraws attempt=1 ticket=0; "
      "nobody holds; nobody waits; 76s pass; C granted; C released");
  const std::string fields = lab.cli({"HKEYS", lab.key("who")});
  need(fields.find('#') == std::string::npos, "the number of an attempt is kept for ever");
}

}  // namespace
}  // namespace rlock::contract
