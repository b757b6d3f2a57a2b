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

std::vector<Work> numbers(int count) {
  std::vector<Work> works;
  for (int number = 1; number <= count; ++number) works.push_back(newest(std::to_string(number)));
  return works;
}

namespace {

Bounds named(const char* name, Bounds bounds) {
  bounds.name = name;
  return bounds;
}

const std::vector<Bounds>& usual_bounds() {
  static const std::vector<Bounds> list{
      named("two clients, a fault", {.limits = {1, 1}, .faults = 1}),
      named("two clients, an operator", {.limits = {1, 1}, .forces = 1}),
      named("two clients, twice each, data loss", {.limits = {1, 1}, .rounds = 2, .losses = 1}),
      named("three clients, an operator", {.limits = {1, 1, 1}, .forces = 1}),
      named("exclusive, two slots and shared", {.limits = {1, 2, kShared}}),
      named("two slots for three, data loss", {.limits = {2, 2, 2}, .losses = 1}),
      named("once: three, a failure", {.works = three(key("k")), .failures = 1}),
      named("once: two keys, forgotten", {.works = {key("k"), key("l")}, .forgets = 2}),
      named("once: three give up after a failure", {.works = three(key("k", 1)), .failures = 1}),
      named("once: two, a fault", {.works = two(key("k")), .faults = 1}),
      named("once: one, a fault, forgotten",
            {.works = {key("k")}, .rounds = 2, .faults = 1, .forgets = 1}),
      named("once: two, data loss and an operator",
            {.works = two(key("k")), .losses = 1, .forces = 1}),
      named("once: three within a distance", {.works = three(within(12'000))}),
      named("once: slots behind an exclusive one",
            {.limits = {1, 2, 2}, .works = {{}, key("k"), key("k")}}),
      named("supersede: numbers", {.works = numbers(3)}),
      named("supersede: the last one", {.works = three(newest())}),
      named("supersede: twice each, data loss", {.works = numbers(2), .rounds = 2, .losses = 1}),
      named("supersede: two slots", {.limits = {1, 2, 2}, .works = {{}, newest("1"), newest("2")}}),
      named("closed: two, twice each", {.limits = {1, 1}, .rounds = 2, .closures = 1}),
      named("closed: once, forgotten, an operator",
            {.works = two(key("k")), .forces = 1, .forgets = 1, .closures = 1}),
      named("at rest: two, a fault", {.limits = {1, 1}, .faults = 1, .rest = true}),
      named("at rest: three", {.limits = {1, 1, 1}, .rest = true}),
      named("at rest: two, twice each, data loss",
            {.limits = {1, 1}, .rounds = 2, .losses = 1, .rest = true}),
  };
  return list;
}

// With how many states were found when they last ran to their end.
const std::vector<Bounds>& large_bounds() {
  static const std::vector<Bounds> list{
      named("two clients, data loss and a fault",
            {.limits = {1, 1}, .faults = 1, .losses = 1, .states = 36'036}),
      named("two clients, an operator and a fault",
            {.limits = {1, 1}, .faults = 1, .forces = 1, .states = 28'759}),
      named("three clients, data loss", {.limits = {1, 1, 1}, .losses = 1, .states = 4'196}),
      named("two clients, twice each, one fault", {.limits = {1, 1}, .rounds = 2, .faults = 1}),
      named("three clients, one fault", {.limits = {1, 1, 1}, .faults = 1}),
      named("exclusive, two slots and shared, one fault", {.limits = {1, 2, kShared}, .faults = 1}),
      named("two clients, two faults", {.limits = {1, 1}, .faults = 2}),
      named("closed, large: exclusive, two slots and shared",
            {.limits = {1, 2, kShared}, .closures = 1}),
      named("closed, large: two, a fault", {.limits = {1, 1}, .faults = 1, .closures = 1}),
      named("once, large: two twice each, a failure, forgotten",
            {.works = two(key("k")), .rounds = 2, .forgets = 1, .failures = 1, .states = 4'819}),
      named("once, large: two, a fault, a failure, forgotten",
            {.works = two(key("k")), .faults = 1, .forgets = 1, .failures = 1, .states = 39'179}),
      named("once, large: two twice each, a fault",
            {.works = two(key("k", 1)), .rounds = 2, .faults = 1, .failures = 1, .states = 25'479}),
      named("once, large: three, a fault", {.works = three(key("k")), .faults = 1}),
      named("once, large: two within a distance, a fault",
            {.works = two(within(12'000)), .faults = 1, .states = 23'413}),
      named("once, large: two, data loss, forgotten, a fault",
            {.works = two(key("k")), .faults = 1, .losses = 1, .forgets = 1, .states = 94'330}),
      named("supersede, large: behind others",
            {.works = {{}, {}, newest("1"), newest("2")}, .states = 100'908}),
      named("supersede, large: three, a fault", {.works = numbers(3), .faults = 1}),
      named("supersede, large: the last one, a fault", {.works = three(newest()), .faults = 1}),
      named("supersede, large: two slots, a fault",
            {.limits = {1, 2, 2}, .works = {{}, newest("1"), newest("2")}, .faults = 1}),
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
