// Which of several holders one is.
#include <algorithm>

#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::Limit;
using lock::Lost;
using lock::LostHow;
using lock::Renewal;
using lock::Token;

Ask of(uint64_t limit) {
  Ask ask;
  ask.limit = Limit::slots(limit);
  return ask;
}

lock::Granted grant(Lab& lab, char owner, const Ask& ask) {
  return as<lock::Granted>(lab.acquire(owner, ask), std::string(1, owner) + " is not granted");
}

void expect_slot(Lab& lab, char owner, uint64_t limit, uint64_t slot) {
  const uint64_t got = grant(lab, owner, of(limit)).slot;
  need(got == slot, std::string(1, owner) + " has slot " + std::to_string(got) + " instead of " +
                        std::to_string(slot));
}

// Of all live holders, in order; each its own.
std::vector<uint64_t> slots(Lab& lab) {
  std::vector<uint64_t> all;
  for (const lock::Holder& holder : lab.inspect().holders) all.push_back(holder.slot);
  std::sort(all.begin(), all.end());
  need(std::adjacent_find(all.begin(), all.end()) == all.end(), "two holders of one slot");
  return all;
}

void least_free(Lab& lab) {
  expect_slot(lab, 'A', 3, 1);
  expect_slot(lab, 'A', 3, 1);
  expect_slot(lab, 'B', 3, 2);
  expect_slot(lab, 'C', 3, 3);
  lab.queued('D', of(3));
  lab.queued('E', of(3));
  lab.queued('F', of(3));
  lab.release('B');
  lab.release('A');
  need(slots(lab) == std::vector<uint64_t>{1, 2, 3}, "not the free ones");
  expect_slot(lab, 'D', 3, 2);
  expect_slot(lab, 'E', 3, 1);
  lab.release('C');
  lab.pass(3s);
  lab.release('D');
  expect_slot(lab, 'G', 3, 2);
  need(lab.inspect().holders.size() == 2, "another number of holders");
}

// Two that end at once are followed by two of different slots.
void many_at_once(Lab& lab) {
  lab.granted('A', of(2));
  lab.granted('B', of(2));
  for (char owner : {'C', 'D'}) lab.queued(owner, of(2));
  lab.pass(10s);
  for (char owner : {'C', 'D'}) lab.queued(owner, of(2));
  lab.pass(10s);
  for (char owner : {'C', 'D'}) lab.queued(owner, of(2));
  lab.pass(11s);
  lab.queued('E', of(2));
  need(lab.holders() == "CD" && slots(lab) == std::vector<uint64_t>{1, 2}, "not two slots");
}

void mixed(Lab& lab) {
  expect_slot(lab, 'A', 3, 1);
  expect_slot(lab, 'B', 3, 2);
  lab.release('A');
  expect_slot(lab, 'C', 2, 1);
  lab.release('B');
  lab.release('C');
  const Ask shared{.limit = Limit::shared()};
  need(grant(lab, 'D', shared).slot == 0, "a shared holder has a slot");
  expect_slot(lab, 'E', 2, 1);
  lab.release('D');
  lab.release('E');
  need(grant(lab, 'F', {}).slot == 0, "an exclusive holder has a slot");
  lab.release('F');
  need(grant(lab, 'G', of(1025)).slot == 0, "more slots than there may be");
  need(grant(lab, 'H', of(1024)).slot == 1, "no slot of so many");
}

void kept(Lab& lab) {
  const Token token = lab.granted('A', of(2));
  const Ask ask = {.limit = Limit::slots(2), .min_hold = 60s};
  lab.granted('B', ask);
  for (int i = 0; i < 3; ++i) {
    lab.pass(20s);
    need(as<Renewal>(lab.renew('A', token, of(2)), "lost") == Renewal::extended, "not renewed");
    if (i == 1) lab.release('B');
    if (i < 2) need(slots(lab) == std::vector<uint64_t>{1, 2}, "another slot");
  }
  expect_slot(lab, 'C', 2, 2);
  need(slots(lab) == std::vector<uint64_t>{1, 2}, "another slot");
}

void renewed_alone(Lab& lab) {
  const Token token = lab.granted('A', of(2));
  lab.pass(20s);
  as<Renewal>(lab.renew('A', token, of(2)), "lost");
  need(slots(lab) == std::vector<uint64_t>{1}, "another slot");
  expect_slot(lab, 'B', 2, 2);
}

void slot_put_back(Lab& lab) {
  const Token first = lab.granted('A', of(3));
  const Token second = lab.granted('B', of(3));
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  expect_slot(lab, 'C', 3, 1);
  const Ask again{.limit = Limit::slots(3), .slot = 2};
  lab.queued('D', {.limit = Limit::exclusive()});
  need(as<Renewal>(lab.renew('B', second, again), "lost") == Renewal::put_back, "not put back");
  need(slots(lab) == std::vector<uint64_t>{1, 2}, "not with its slot");
  need(as<Lost>(lab.renew('A', first, {.limit = Limit::slots(3), .slot = 1}), "two of one slot")
               .how == LostHow::taken,
       "not reported as taken");
  lab.cancel('D');
  expect_slot(lab, 'E', 3, 3);
}

// A script that puts one back and admits others gives them other slots.
void put_back_and_admitted(Lab& lab) {
  const Token token = lab.granted('A', of(2));
  lab.granted('B', of(2));
  lab.queued('C', of(2));
  lab.cli({"ZREM", lab.key("holders"), Lab::owner('A').text(), Lab::owner('B').text()});
  lab.cli({"DEL", lab.key("meta")});
  need(as<Renewal>(lab.renew('A', token, {.limit = Limit::slots(2), .slot = 1}), "lost") ==
           Renewal::put_back,
       "not put back");
  need(lab.holders() == "AC" && slots(lab) == std::vector<uint64_t>{1, 2}, "not two slots");
}

void slot_line_deleted(Lab& lab) {
  const Ask two = of(2);
  const lock::Token token = lab.granted('A', two);
  lab.granted('Y', two);
  lab.release('Y');
  lab.cli({"DEL", lab.key("who")});
  lab.queued('B', two);
  Ask known = two;
  known.slot = 1;
  need(as<lock::Renewal>(lab.renew('A', token, known), "lost") == lock::Renewal::extended,
       "not extended");
  need(lab.holders() == "AB", "B waits on");
  need(as<lock::Granted>(lab.acquire('B', two), "B waits on").slot == 2, "not the other slot");
}

}  // namespace

const std::vector<NamedCase>& slot_cases() {
  static const std::vector<NamedCase> cases{
      {"slots: where a line was deleted nobody takes its slot", slot_line_deleted},
      {"slots: each holder has the least that is free", least_free},
      {"slots: those that are granted at once differ", many_at_once},
      {"slots: only of several holders, each within its own limit", mixed},
      {"slots: renewals and the cool-down keep them", kept},
      {"slots: a lone holder keeps its own", renewed_alone},
      {"slots: a lease that is put back has its slot, or is lost", slot_put_back},
      {"slots: beside one that is put back others are admitted", put_back_and_admitted},
  };
  return cases;
}

}  // namespace rlock::contract
