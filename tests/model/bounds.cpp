#include "model/bounds.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace rlock::model {

Work key(const std::string& name, int64_t max_failures) {
  return {.once = "key:" + name, .max_failures = max_failures};
}

Work within(Moment distance) {
  return {.once = "within", .span = distance};
}

Work newest(const std::string& number) {
  return {.supersede = number};
}

Bounds work(std::string name, std::vector<Work> works, Extent extent) {
  Bounds bounds{std::move(name), std::vector<int64_t>(works.size(), 1),
                extent.rounds,   extent.faults,
                extent.losses,   extent.forces};
  if (!extent.limits.empty()) bounds.limits = std::move(extent.limits);
  bounds.works = std::move(works);
  bounds.forgets = extent.forgets;
  bounds.failures = extent.failures;
  bounds.states = extent.states;
  return bounds;
}

namespace {

const std::vector<Bounds>& usual_bounds() {
  static const std::vector<Bounds> list{
      {"two clients, a fault", {1, 1}, 1, 1, 0, 0},
      {"two clients, an operator", {1, 1}, 1, 0, 0, 1},
      {"two clients, twice each, data loss", {1, 1}, 2, 0, 1, 0},
      {"three clients, an operator", {1, 1, 1}, 1, 0, 0, 1},
      {"exclusive, two slots and shared", {1, 2, kShared}, 1, 0, 0, 0},
      {"two slots for three, data loss", {2, 2, 2}, 1, 0, 1, 0},
      work("once: three, a failure", {key("k"), key("k"), key("k")}, {.failures = 1}),
      work("once: two keys, forgotten", {key("k"), key("l")}, {.forgets = 2}),
      work("once: three give up after a failure", {key("k", 1), key("k", 1), key("k", 1)},
           {.failures = 1}),
      work("once: two, a fault", {key("k"), key("k")}, {.faults = 1}),
      work("once: one, a fault, forgotten", {key("k")}, {.rounds = 2, .faults = 1, .forgets = 1}),
      work("once: two, data loss and an operator", {key("k"), key("k")},
           {.losses = 1, .forces = 1}),
      work("once: three within a distance", {within(12'000), within(12'000), within(12'000)}, {}),
      work("once: slots behind an exclusive one", {{}, key("k"), key("k")}, {.limits = {1, 2, 2}}),
      work("supersede: numbers", {newest("1"), newest("2"), newest("3")}, {}),
      work("supersede: the last one", {newest(), newest(), newest()}, {}),
      work("supersede: twice each, data loss", {newest("1"), newest("2")},
           {.rounds = 2, .losses = 1}),
      work("supersede: two slots", {{}, newest("1"), newest("2")}, {.limits = {1, 2, 2}}),
  };
  return list;
}

// With how many states were found when they last ran to their end.
const std::vector<Bounds>& large_bounds() {
  static const std::vector<Bounds> list{
      {.name = "two clients, data loss and a fault",
       .limits = {1, 1},
       .faults = 1,
       .losses = 1,
       .states = 36'036},
      {.name = "two clients, an operator and a fault",
       .limits = {1, 1},
       .faults = 1,
       .forces = 1,
       .states = 28'759},
      {.name = "three clients, data loss", .limits = {1, 1, 1}, .losses = 1, .states = 4'196},
      {.name = "two clients, twice each, one fault", .limits = {1, 1}, .rounds = 2, .faults = 1},
      {.name = "three clients, one fault", .limits = {1, 1, 1}, .faults = 1},
      {.name = "exclusive, two slots and shared, one fault",
       .limits = {1, 2, kShared},
       .faults = 1},
      {.name = "two clients, two faults", .limits = {1, 1}, .faults = 2},
      work("once, large: two twice each, a failure, forgotten", {key("k"), key("k")},
           {.rounds = 2, .forgets = 1, .failures = 1, .states = 4'819}),
      work("once, large: two, a fault, a failure, forgotten", {key("k"), key("k")},
           {.faults = 1, .forgets = 1, .failures = 1, .states = 39'179}),
      work("once, large: two twice each, a fault", {key("k", 1), key("k", 1)},
           {.rounds = 2, .faults = 1, .failures = 1, .states = 25'479}),
      work("once, large: three, a fault", {key("k"), key("k"), key("k")}, {.faults = 1}),
      work("once, large: two within a distance, a fault", {within(12'000), within(12'000)},
           {.faults = 1, .states = 23'413}),
      work("once, large: two, data loss, forgotten, a fault", {key("k"), key("k")},
           {.faults = 1, .losses = 1, .forgets = 1, .states = 94'330}),
      work("supersede, large: behind others", {{}, {}, newest("1"), newest("2")},
           {.states = 100'908}),
      work("supersede, large: three, a fault", {newest("1"), newest("2"), newest("3")},
           {.faults = 1}),
      work("supersede, large: the last one, a fault", {newest(), newest(), newest()},
           {.faults = 1}),
      work("supersede, large: two slots, a fault", {{}, newest("1"), newest("2")},
           {.limits = {1, 2, 2}, .faults = 1}),
  };
  return list;
}

}  // namespace

std::vector<Bounds> chosen_bounds() {
  const char* asked = std::getenv("RLOCK_MODEL_BOUNDS");
  if (asked == nullptr) return usual_bounds();
  if (std::string(asked) == "large") return large_bounds();
  std::vector<Bounds> named;
  for (const auto* list : {&usual_bounds(), &large_bounds()}) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(named),
                 [&](const Bounds& bound) { return std::string(bound.name).starts_with(asked); });
  }
  return named;
}

}  // namespace rlock::model
