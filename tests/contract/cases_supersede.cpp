// Of the waiters that supersede others only the newest stays.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::Busy;
using lock::Superseded;

Ask newest(std::optional<uint64_t> number = {}) {
  Ask ask;
  ask.supersede = lock::Supersede{number};
  return ask;
}

void superseded(Lab& lab, char owner, const Ask& ask, char by) {
  const auto newer = as<Superseded>(lab.acquire(owner, ask), std::string(1, owner) + " goes on");
  need(newer.record == std::string("record of ") + by, "not by whom: " + newer.record);
}

void greatest_stays(Lab& lab) {
  lab.granted('A');
  lab.queued('B', newest(5));
  superseded(lab, 'C', newest(4), 'B');
  lab.queued('D', newest(7));
  need(lab.woken('B'), "the one that was replaced is not woken");
  superseded(lab, 'B', newest(5), 'D');
  superseded(lab, 'E', newest(6), 'D');
  lab.queued('D', newest(7));
  lab.queued('F', newest(7));
  superseded(lab, 'D', newest(7), 'F');
  need(lab.waiters() == "F", "more than one of them waits");
  const auto skips = as<lock::Skips>(lab.history().at(0), "no skips");
  need(skips.count == 4 && skips.done == 0 && skips.superseded == 4, "not counted as superseded");
}

void without_numbers(Lab& lab) {
  lab.granted('A');
  lab.queued('B', newest());
  lab.queued('C', newest());
  superseded(lab, 'B', newest(), 'C');
  lab.queued('D', newest(3));
  superseded(lab, 'C', newest(), 'D');
  lab.queued('E', newest());
  superseded(lab, 'D', newest(3), 'E');
  lab.release('A');
  need(lab.holders() == "E", "not the last one");
}

// Nobody else loses a place.
void takes_the_ticket(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  const lock::Ticket place = lab.queued('C', newest(1)).ticket;
  lab.queued('D');
  need(lab.queued('E', newest(2)).ticket == place, "another ticket");
  need(lab.queued('E', newest(2)).ticket == place, "another ticket");
  need(lab.waiters() == "BED", "another order");
}

// One that claims its grant only after a newer one has run beside others.
void claimed_too_late(Lab& lab) {
  Ask older = newest(5), newer = newest(7), other;
  older.limit = newer.limit = other.limit = lock::Limit::slots(2);
  lab.granted('A', other);
  lab.granted('B', other);
  lab.queued('C', older);
  lab.release('A');
  lab.release('B');
  lab.granted('D', newer);
  lab.release('D');
  lab.queued('E');
  superseded(lab, 'C', older, 'D');
  superseded(lab, 'C', older, 'D');
  need(lab.holders() == "E", "the next is not granted the lock in its place");
}

// An older one that is retried, when the newer one has run or runs.
void older_never_wins(Lab& lab) {
  lab.granted('A', newest(7));
  superseded(lab, 'B', newest(6), 'A');
  lab.queued('C', newest(7));
  lab.cancel('C');
  lab.release('A');
  superseded(lab, 'D', newest(6), 'A');
  Ask never = newest(6);
  never.queueing = lock::Queueing::never;
  superseded(lab, 'E', never, 'A');
  lab.granted('F', newest(7));
  lab.release('F');
  lab.granted('G', newest());
  lab.release('G');
  lab.granted('H');
  lab.release('H');
  const lock::Forgotten forgotten = lab.forget();
  need(forgotten.numbers == 1 && forgotten.marks == 0,
       "it does not say that a number is forgotten");
  need(lab.forget().numbers == 0, "a number is forgotten twice");
  lab.granted('I', newest(1));
}

// The server has lost its data, the number of the one that runs included.
void newer_put_back(Lab& lab) {
  const lock::Token token = lab.granted('A', newest(7));
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  as<lock::Renewal>(lab.renew('A', token, newest(7)), "lost");
  superseded(lab, 'B', newest(6), 'A');
  lab.queued('C', newest(8));
}

// Only one that was granted the lock counts for ever, not one that gave up.
void given_up(Lab& lab) {
  lab.granted('A');
  lab.queued('B', newest(9));
  lab.cancel('B', lock::CancelHow::timed_out);
  lab.queued('C', newest(8));
  lab.release('A');
  lab.granted('C', newest(8));
}

void only_who_queues(Lab& lab) {
  lab.granted('A');
  lab.queued('B', newest(1));
  Ask never = newest(2);
  never.queueing = lock::Queueing::never;
  as<Busy>(lab.acquire('C', never), "not busy");
  need(lab.waiters() == "B", "one that does not wait replaces another");
  Ask few = newest(2);
  few.max_queue = 1;
  lab.queued('D', few);
  need(lab.waiters() == "D", "what it replaces fills the queue");
  few.max_queue = 0;
}

// A holder is never touched, nor one that was granted the lock and has not claimed it.
void holders_stay(Lab& lab) {
  lab.granted('A');
  lab.queued('B', newest(1));
  lab.release('A');
  lab.queued('C', newest(2));
  need(lab.holders() == "B" && lab.waiters() == "C", "a granted waiter is replaced");
  lab.granted('B', newest(1));
  need(lab.waiters() == "C", "an older one replaces a newer one");
  lab.release('B');
  lab.queued('D', newest(1));
  lab.granted('C', newest(2));
  need(lab.waiters().empty(), "an older one runs after a newer one");
  superseded(lab, 'D', newest(1), 'C');
}

// After data loss, or passed by, a waiter comes back to its place, unless a newer one has come
// since.
void comes_back(Lab& lab) {
  lab.granted('A');
  Ask again = newest();
  again.ticket = lab.queued('B', again).ticket;
  lab.cli({"ZREM", lab.key("queue"), Lab::owner('B').text()});
  lab.cli({"ZREM", lab.key("alive"), Lab::owner('B').text()});
  need(lab.queued('B', again).ticket == again.ticket, "its place is lost");
  lab.cli({"ZREM", lab.key("queue"), Lab::owner('B').text()});
  lab.cli({"ZREM", lab.key("alive"), Lab::owner('B').text()});
  lab.pass(1s);
  lab.queued('C', newest());
  superseded(lab, 'B', again, 'C');
  need(lab.waiters() == "C", "the older one is back");
  // One that comes back has the better of both places.
  Ask greater = newest(5);
  greater.ticket = lab.queued('D', greater).ticket;
  lab.cli({"ZREM", lab.key("queue"), Lab::owner('D').text()});
  lab.cli({"ZREM", lab.key("alive"), Lab::owner('D').text()});
  lab.pass(1s);
  lab.queued('E');
  lab.queued('F', newest(4));
  lab.queued('D', greater);
  need(lab.waiters() == "DE", "it lost its place to the one that it replaces");
}

}  // namespace

const std::vector<NamedCase>& supersede_cases() {
  static const std::vector<NamedCase> cases{
      {"supersede: the one with the greatest number stays", greatest_stays},
      {"supersede: without numbers the last one stays", without_numbers},
      {"supersede: it takes the ticket of the one that it replaces", takes_the_ticket},
      {"supersede: a grant that is claimed too late is cancelled", claimed_too_late},
      {"supersede: an older one that is retried never wins", older_never_wins},
      {"supersede: a put-back restores the number", newer_put_back},
      {"supersede: one that gave up does not count", given_up},
      {"supersede: only one that queues replaces another", only_who_queues},
      {"supersede: a holder is never touched", holders_stay},
      {"supersede: one that comes back is not newer for that", comes_back},
  };
  return cases;
}

}  // namespace rlock::contract
