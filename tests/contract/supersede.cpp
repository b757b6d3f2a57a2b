// Of the waiters that supersede others only the newest stays.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

// As if the server had lost it.
void loses_its_place(Lab& lab, char owner) {
  for (const char* key : {"queue", "alive"}) {
    lab.cli({"ZREM", lab.key(key), Lab::owner(owner).text()});
  }
}

CASE("supersede: the waiter with the greatest number stays") {
  lab.play(
      "A granted; B queued supersede=5; C superseded: B supersede=4; D queued supersede=7; "
      "B woken; B superseded: D supersede=5; E superseded: D supersede=6; "
      "DF queued supersede=7; D superseded: F supersede=7; F waits");
  const auto skips = as<lock::Skips>(lab.history().at(0), "no skips");
  need(skips.count == 4 && skips.done == 0 && skips.superseded == 4, "not counted as superseded");
}
MUTANT("a waiter with a smaller number supersedes a greater one",
       {"older = number < other_number", "older = false"});
MUTANT("a superseded waiter stays in the queue", {"if other then replace(other) end", ""});
MUTANT("a superseded waiter may come back",
       {"M.tombstones.add(owner, kind)\n  if note", "if note"});
MUTANT("a superseded waiter does not learn of the newer one",
       {"if note then M.notes.store(owner, note) end", ""});
MUTANT("the script does not wake a superseded waiter",
       {"M.wakes.add(owner, M.tombstones.word(kind))", ""});
MUTANT("a newcomer supersedes no waiter",
       {"request.supersedes and M.supersede.take_over()", "nil"});

CASE("supersede: without numbers the last waiter stays") {
  lab.play(
      "A granted; BC queued supersede; B superseded: C supersede; D queued supersede=3; "
      "C superseded: D supersede; E queued supersede; D superseded: E supersede=3; "
      "A released; E holds");
}
MUTANT("a number supersedes a waiter without a number",
       {"if number and other_number then",
        "if number or other_number then number, other_number = number or 0, other_number or 0"});

// Nobody else loses a place.
CASE("supersede: the newer waiter takes the ticket of the older one") {
  lab.play("A granted; B queued");
  const lock::Ticket place = lab.queued('C', asking("supersede=1")).ticket;
  lab.queued('D');
  need(lab.queued('E', asking("supersede=2")).ticket == place, "another ticket");
  need(lab.queued('E', asking("supersede=2")).ticket == place, "another ticket");
  lab.play("BED wait");
}
MUTANT("a newer waiter joins at the end of the queue",
       {"if taken then\n    if not request.may_pass",
        "if false then\n    if not request.may_pass"});

CASE("supersede: an urgent waiter takes the earlier of both positions") {
  lab.play("A granted; B queued; 5s pass; C queued");
  const lock::Ticket place = lab.queued('D', asking("supersede=1")).ticket;
  need(lab.queued('E', asking("supersede=2 urgent=2s")).ticket < place, "it is not urgent");
  lab.play("BEC wait");
}
MUTANT("a newer waiter loses its urgency", {"or taken, urgent or taken)", "or taken)"});

// One that claims its grant only after a newer one has run beside others.
CASE("supersede: a grant that is claimed too late is cancelled") {
  lab.play(
      "AB granted slots=2; C queued supersede=5 slots=2; AB released; "
      "D granted supersede=7 slots=2; D released; E queued; "
      "C superseded: D supersede=5 slots=2; C superseded: D supersede=5 slots=2; E holds");
}
MUTANT("acquire admits no waiter in place of an owner that was superseded",
       {"if superseded then return superseded end",
        "if superseded then M.admit.exclude(M.queue.head()) return superseded end"});
MUTANT("an owner claims a superseded grant",
       {"local superseded = request.supersedes and M.supersede.overtaken(line)",
        "local superseded = nil"});

// An older one that is retried, when the newer one has run or runs.
CASE("supersede: an older run that is retried never wins") {
  lab.play(
      "A granted supersede=7; B superseded: A supersede=6; C queued supersede=7; "
      "C cancelled; A released; D superseded: A supersede=6; "
      "E superseded: A supersede=6 at-once; F granted supersede=7; F released; "
      "G granted supersede; G released; H granted; H released; all forgotten 0 0 1; "
      "all forgotten 0 0 0; I granted supersede=1");
}
MUTANT("an older run starts after a newer one",
       {"if number and newest.token > number then return outnumbered(newest) end", ""});

// A CI system that counts from 1 again would otherwise be refused for 30 days, and nobody would
// know why.
CASE("supersede: a refusal says which number is greater, and since when") {
  lab.play("A granted supersede=7; 5s pass; A released");
  const auto granted_at = lab.now() - 5'000;
  auto newer = as<lock::Superseded>(lab.acquire('B', asking("supersede=1")), "not superseded");
  need(newer.number == 7U && newer.granted.ms == granted_at && newer.since.ms == 0, "not A");
  const auto newest = lab.inspect().newest;
  need(newest && newest->number == 7 && newest->granted.ms == granted_at &&
           newest->record == "record of A",
       "the number is not shown");
  lab.play("C granted; D queued supersede=9; 5s pass");
  newer = as<lock::Superseded>(lab.acquire('E', asking("supersede=8")), "not superseded");
  need(newer.number == 9U && newer.granted.ms == 0 && newer.since.ms == lab.now() - 5'000, "not D");
  need(lab.inspect().counters.superseded == 2 && lab.inspect().counters.skips == 2, "not counted");
  lab.play("all forgotten 0 0 1");
  need(!lab.inspect().newest, "a number that was forgotten is shown");
}
MUTANT("the reply does not say which number was granted the lock",
       {"number = newest.token, granted", "granted"});
MUTANT("the reply does not say which number waits", {"number = other_number, ", ""});
MUTANT("the reply does not say since when the newer one waits",
       {", since = line.since} end", "} end"});
MUTANT("the mark does not store when the number was granted the lock",
       {"newest.granted, newest.record = number, now, record", "newest.record = number, record"});
MUTANT("the memory counts no superseded run", {"memory.superseded = memory.superseded + 1", ""});

// The server has lost its data, the number of the one that runs included.
CASE("supersede: a restored lease has its number") {
  lab.play(
      "A granted supersede=7; data lost; 1s pass; A renewed supersede=7; "
      "B superseded: A supersede=6; C queued supersede=8");
}
MUTANT("a restored lease loses its number",
       {"M.once.note_number(tonumber(args.supersede), record)", ""});

// Only one that was granted the lock counts for ever, not one that gave up.
CASE("supersede: a waiter that gave up does not count") {
  lab.play(
      "A granted; B queued supersede=9; B times out; C queued supersede=8; A released; "
      "C granted supersede=8");
}
MUTANT("a waiter that gave up counts by its number",
       {"waits.latest = request.owner\n",
        "waits.latest = request.owner if own_number() then M.once.note_number(own_number(), "
        "request.record) end\n"});

CASE("supersede: only a run that queues replaces another") {
  lab.play(
      "A granted; B queued supersede=1; C busy supersede=2; B waits; "
      "D queued supersede=2 max-queue=1; D waits");
}
MUTANT("a run that does not wait supersedes a waiter",
       {"local full = waiters",
        "if args.at_once and request.supersedes then M.supersede.take_over() end local full = "
        "waiters"});
MUTANT("a full queue refuses a newer run",
       {" and not (request.supersedes and M.supersede.other_waiter())", ""});

// A holder is never touched, nor one that was granted the lock and has not claimed it.
CASE("supersede: a holder is never affected") {
  lab.play(
      "A granted; B queued supersede=1; A released; C queued supersede=2; B holds; C waits; "
      "B granted supersede=1; C waits; B released; D queued supersede=1; "
      "C granted supersede=2; nobody waits; D superseded: C supersede=1");
}
MUTANT("an older waiter stays that arrived before the claim",
       {"if other and (tonumber(M.lines.read(other).supersede) or number) < number then "
        "replace(other) end",
        ""});
MUTANT("a newcomer supersedes a holder",
       {"and M.queue.ticket(other) and M.lines.read(other)",
        "and (M.queue.ticket(other) or M.holders.held_until(other)) and M.lines.read(other)"});

// After data loss, or passed by, a waiter comes back to its place, unless a newer one has come
// since.
CASE("supersede: a waiter that rejoins is not newer for that") {
  lab.granted('A');
  Ask again = asking("supersede");
  again.ticket = lab.queued('B', again).ticket;
  loses_its_place(lab, 'B');
  need(lab.queued('B', again).ticket == again.ticket, "its place is lost");
  loses_its_place(lab, 'B');
  lab.play("1s pass; C queued supersede");
  lab.play("B superseded: C", again);
  lab.play("C waits");
  // One that comes back has the better of both places.
  Ask greater = asking("supersede=5");
  greater.ticket = lab.queued('D', greater).ticket;
  loses_its_place(lab, 'D');
  lab.play("1s pass; E queued; F queued supersede=4");
  lab.play("D queued; DE wait", greater);
}
MUTANT("a waiter that rejoins takes a later position than its own",
       {"request.given_ticket > 0 and request.given_ticket or taken", "taken"});
MUTANT("a waiter that rejoins counts as the newest",
       {"is_older = line and ticket <= M.queue.ticket(other)", "is_older = false"});

// As a client does that has been stopped for so long that its end is forgotten.
void comes_back(Lab& lab, char owner, Ask& ask, const std::string& steps) {
  ask.ticket = lab.queued(owner, ask).ticket;
  lab.play(steps);
}

// A holds for 70 s, B is stopped for 62 s, C comes.
CASE("supersede: a waiter that was stopped for over a minute does not replace the newer one") {
  Ask old = asking("supersede"), newer = old;
  lab.play("A granted ttl=5m");
  comes_back(lab, 'B', old, "1s pass");
  comes_back(lab, 'C', newer, "B woken");
  need(newer.ticket == old.ticket, "another ticket");
  for (int i = 0; i < 8; ++i) {
    lab.pass(10s);
    lab.play("C queued", newer);
  }
  lab.play("B superseded: C", old);
  lab.play("C waits");
  // The newer one asks again, with the ticket that the older one brings.
  need(lab.queued('C', newer).ticket == newer.ticket, "its place is lost");
  loses_its_place(lab, 'C');
  need(lab.queued('C', newer).ticket == newer.ticket, "its place is lost");
  lab.play("B superseded: C", old);
  lab.play("A released; C holds");
  lab.play("C granted", newer);
  lab.play("B superseded: C", old);
  lab.play("C released; 5m pass; B superseded: C", old);
  lab.play("D granted supersede; D released");
  lab.play("B superseded: D", old);
}
MUTANT("a waiter with the ticket of a newer one supersedes it",
       {"ticket <= M.queue.ticket(other)", "ticket < M.queue.ticket(other)"});
MUTANT("acquire does not note a claim without a number",
       {"if request.supersedes then M.supersede.note_newest(line.token) end\n  memory.keep",
        "memory.keep"});
MUTANT("acquire does not note a grant that needs no claim",
       {"request.stamp)\n  if request.supersedes then M.supersede.note_newest(line.token) end",
        "request.stamp)"});

// It was swept, and nobody took its ticket.
CASE("supersede: a waiter that was swept does not run after a newer one") {
  Ask old = asking("supersede");
  lab.play("A granted ttl=5m");
  comes_back(lab, 'B', old,
             "16s pass; C queued supersede; C waits; A released; C granted supersede; 1s pass");
  lab.play("B superseded: C", old);
  lab.play("C released; D granted");
  lab.play("B superseded: C", old);
}

// B is slow to claim its grant. It is refused, and C is granted the lock. Returns how B asks.
Ask refused_before_the_claim(Lab& lab) {
  Ask old = asking("supersede");
  lab.play("A granted");
  comes_back(lab, 'B', old, "A released; C queued supersede; 3s pass");
  lab.play("B superseded: C", old);
  return old;
}

// B does not receive its first refusal.
CASE("supersede: a run does not come back while a newer one has not claimed its grant") {
  const Ask old = refused_before_the_claim(lab);
  lab.play("B superseded: C", old);
  lab.play("C granted supersede; C released");
  lab.play("B superseded: C", old);
}
MUTANT("an older run comes back before the newer one has claimed its grant",
       {"local granted = unclaimed()", "local granted = nil"});

// Of two numbers the smaller one came last.
CASE("supersede: an unclaimed grant supersedes no greater number") {
  Ask greater = asking("supersede=5");
  lab.play("A granted");
  comes_back(lab, 'B', greater, "16s pass; C queued supersede=4; A released");
  lab.play("B queued", greater);
}
MUTANT("an unclaimed grant supersedes a greater number",
       {"0) and not (number and tonumber(granted.supersede)) then", "0) then"});

// The older one came back after the newer one had fallen silent.
CASE("supersede: an unclaimed grant supersedes no run that joined later") {
  Ask older = asking("supersede"), newer = older;
  lab.play("A granted ttl=5m");
  comes_back(lab, 'C', older, "16s pass");
  comes_back(lab, 'B', newer, "16s pass");
  lab.play("C queued", older);
  lab.play("A released");
  lab.play("B queued", newer);
}
MUTANT("an unclaimed grant supersedes a run that joined later",
       {"granted and ticket <= (granted.ticket or 0) and", "granted and args.ticket and"});

// An operator broke it.
CASE("supersede: a broken grant supersedes no run") {
  const Ask old = refused_before_the_claim(lab);
  lab.play("all forced");
  lab.play("B queued", old);
}
MUTANT("a broken grant supersedes a run", {"line and line.state == 'granted' and", "line and"});

CASE("supersede: a newcomer is never superseded by a run that was granted the lock") {
  lab.play(
      "A granted supersede; A released; B granted supersede; C queued supersede; B released; "
      "C granted supersede; D queued supersede; C released; 3s pass; E granted supersede");
}
MUTANT("a holder supersedes a newcomer",
       {"tonumber(args.ticket or math.huge)", "tonumber(args.ticket or 0)"});

// E is as old as can be: another has come since.
void one_comes_back_after(Lab& lab, const std::string& steps) {
  lab.play(steps);
  Ask again = asking("supersede");
  lab.play("D granted ttl=5m");
  again.ticket = lab.queued('E', again).ticket;
  loses_its_place(lab, 'E');
  lab.play("1s pass; F queued supersede; F cancelled; 5s pass");
  lab.play("E queued; E waits", again);
}

CASE("supersede: a ticket of a clock that was ahead supersedes no later run") {
  one_comes_back_after(lab,
                       "60d pass; A granted; B queued supersede; A released; "
                       "B granted supersede; B released; -60d pass; meta deleted");
  lab.play("D released; E granted supersede; E released; G granted supersede");
}
MUTANT("the scripts believe a ticket that is ahead of the clock",
       {"(waits.ticket or 0) <= now_us and waits.ticket or 0", "waits.ticket or 0"});

CASE("supersede: a clock that is set back by a second supersedes no run") {
  one_comes_back_after(lab,
                       "A granted; B queued supersede; A released; B granted supersede; "
                       "B released; -1s pass; C granted supersede; C released");
}

// One that comes later may be urgent, and so has an earlier ticket.
CASE("supersede: no other run is newer than the latest") {
  Ask urgent = asking("supersede urgent=1h");
  lab.play("A granted; B queued supersede; A released; B granted supersede; 1ms pass");
  urgent.ticket = lab.queued('C', urgent).ticket;
  loses_its_place(lab, 'C');
  lab.play("1s pass; C queued; C waits", urgent);
}
MUTANT("acquire compares the newest waiter with older ones",
       {"waits.latest == request.owner or waits.claimer == request.owner",
        "waits.claimer == request.owner"});

// The server has lost its data, and the one that runs has come back.
CASE("supersede: a restored lease supersedes the waiters before it") {
  Ask old = asking("supersede");
  lab.play("A granted ttl=5m");
  comes_back(lab, 'B', old, "16s pass; A released; C granted supersede");
  lab.play("data lost; 1s pass; C renewed; B superseded: C", old);
}
MUTANT("a renewal does not note the claim of a restored lease",
       {"M.once.note_claim(owner, record, token)", ""});

// It had the lock itself, and who waited after it gave up.
CASE("supersede: a run that was granted the lock is not older than itself") {
  Ask again = asking("supersede");
  lab.play("A granted");
  again.ticket = lab.queued('B', again).ticket;
  lab.play("A released; C queued supersede; 1s pass");
  lab.play("B granted", again);
  lab.play("C cancelled; 30s pass");
  lab.play("B granted", again);
}
MUTANT("acquire compares an owner that was granted the lock with its own ticket",
       {"waits.latest == request.owner or waits.claimer == request.owner",
        "waits.latest == request.owner"});

}  // namespace
}  // namespace rlock::contract
