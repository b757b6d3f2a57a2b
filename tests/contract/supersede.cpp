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

CASE("supersede: the one with the greatest number stays") {
  lab.play(
      "A granted; B queued supersede=5; C superseded: B supersede=4; D queued supersede=7; "
      "B woken; B superseded: D supersede=5; E superseded: D supersede=6; "
      "DF queued supersede=7; D superseded: F supersede=7; F waits");
  const auto skips = as<lock::Skips>(lab.history().at(0), "no skips");
  need(skips.count == 4 && skips.done == 0 && skips.superseded == 4, "not counted as superseded");
}
MUTANT("one with a smaller number replaces a greater one",
       {"older = number < its", "older = false"});
MUTANT("both stay in the queue", {"if other then replace(other) end", ""});
MUTANT("one that was replaced may come back",
       {"  s.add_tombstone(owner, kind)\n  if note", "  if note"});
MUTANT("it does not learn by whom", {"if note then call('HSET', WHO, '!' .. owner, note) end", ""});
MUTANT("one that was replaced is not woken", {"s.wake(owner, s.ended_as(kind))", ""});
MUTANT("a newcomer that supersedes others replaces nobody",
       {"local taken = supersedes and supersedes.take_over()", "local taken = nil"});

CASE("supersede: without numbers the last one stays") {
  lab.play(
      "A granted; BC queued supersede; B superseded: C supersede; D queued supersede=3; "
      "C superseded: D supersede; E queued supersede; D superseded: E supersede=3; "
      "A released; E holds");
}
MUTANT("numbers decide where one has none",
       {"if number and its then", "if number or its then number, its = number or 0, its or 0"});

// Nobody else loses a place.
CASE("supersede: it takes the ticket of the one that it replaces") {
  lab.play("A granted; B queued");
  const lock::Ticket place = lab.queued('C', asking("supersede=1")).ticket;
  lab.queued('D');
  need(lab.queued('E', asking("supersede=2")).ticket == place, "another ticket");
  need(lab.queued('E', asking("supersede=2")).ticket == place, "another ticket");
  lab.play("BED wait");
}
MUTANT("it goes to the end of the queue",
       {"at = at > 0 and math.min(at, taken) or taken", "at = s.issue()"});

CASE("supersede: an urgent one takes the earlier of both places") {
  lab.play("A granted; B queued; 5s pass; C queued");
  const lock::Ticket place = lab.queued('D', asking("supersede=1")).ticket;
  need(lab.queued('E', asking("supersede=2 urgent=2s")).ticket < place, "it is not urgent");
  lab.play("BEC wait");
}
MUTANT("one that supersedes another is not urgent",
       {"if args.earlier then at = math.min(at, math.max(1, now_us - args.earlier)) end", ""});

// One that claims its grant only after a newer one has run beside others.
CASE("supersede: a grant that is claimed too late is cancelled") {
  lab.play(
      "AB granted slots=2; C queued supersede=5 slots=2; AB released; "
      "D granted supersede=7 slots=2; D released; E queued; "
      "C superseded: D supersede=5 slots=2; C superseded: D supersede=5 slots=2; E holds");
}
MUTANT("an overtaken grant is not handed on", {"newest.record)\n    s.admit()", "newest.record)"});
MUTANT("an overtaken grant is claimed",
       {"reply = supersedes and supersedes.overtaken(line)", "reply = nil"});

// An older one that is retried, when the newer one has run or runs.
CASE("supersede: an older one that is retried never wins") {
  lab.play(
      "A granted supersede=7; B superseded: A supersede=6; C queued supersede=7; "
      "C cancelled; A released; D superseded: A supersede=6; "
      "E superseded: A supersede=6 at-once; F granted supersede=7; F released; "
      "G granted supersede; G released; H granted; H released; all forgotten 0 0 1; "
      "all forgotten 0 0 0; I granted supersede=1");
}
MUTANT("an older one runs after a newer one",
       {"if newest and newest.token > number then return {'superseded', newest.record} end", ""});

// The server has lost its data, the number of the one that runs included.
CASE("supersede: a put-back restores the number") {
  lab.play(
      "A granted supersede=7; data lost; 1s pass; A renewed supersede=7; "
      "B superseded: A supersede=6; C queued supersede=8");
}
MUTANT("a put-back loses the number",
       {"if tonumber(args.supersede) then s.once_part().note_number(tonumber(args.supersede), "
        "record) end",
        ""});

// Only one that was granted the lock counts for ever, not one that gave up.
CASE("supersede: one that gave up does not count") {
  lab.play(
      "A granted; B queued supersede=9; B times out; C queued supersede=8; A released; "
      "C granted supersede=8");
}
MUTANT("one that gave up is remembered",
       {"waits.record = owner", "waits.record = owner part.note_newest()"});

CASE("supersede: only one that queues replaces another") {
  lab.play(
      "A granted; B queued supersede=1; C busy supersede=2; B waits; "
      "D queued supersede=2 max-queue=1; D waits");
}
MUTANT("one that does not wait replaces another",
       {"    local full = waiters",
        "    if args.at_once and supersedes then supersedes.take_over() end\n    local full "
        "= waiters"});
MUTANT("a full queue refuses a newer one", {" and not (supersedes and supersedes.replaces())", ""});

// A holder is never touched, nor one that was granted the lock and has not claimed it.
CASE("supersede: a holder is never touched") {
  lab.play(
      "A granted; B queued supersede=1; A released; C queued supersede=2; B holds; C waits; "
      "B granted supersede=1; C waits; B released; D queued supersede=1; "
      "C granted supersede=2; nobody waits; D superseded: C supersede=1");
}
MUTANT("an older one that came before the claim stays",
       {"if other and (number_of(s.read_line(other)) or number) < number then replace(other) end",
        ""});
MUTANT("a holder is replaced",
       {"and s.queue_ticket(other) and s.read_line",
        "and (s.queue_ticket(other) or s.held_until(other)) and s.read_line"});

// After data loss, or passed by, a waiter comes back to its place, unless a newer one has come
// since.
CASE("supersede: one that comes back is not newer for that") {
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
MUTANT("one that comes back takes the place of the one that it replaces",
       {"at = at > 0 and math.min(at, taken) or taken", "at = taken"});
MUTANT("one that comes back counts as the last one", {"older = given_ticket > 0 and given_ticket < "
                                                      "tonumber(s.queue_ticket(other))",
                                                      "older = false"});

}  // namespace
}  // namespace rlock::contract
