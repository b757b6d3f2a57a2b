#pragma once

#include <vector>

#include "model/explore.hpp"

namespace rlock::model {

constexpr int64_t kShared = 1'000'000'000;

// RLOCK_MODEL_BOUNDS: `large`, or how names begin; else those of every test run.
std::vector<Bounds> chosen_bounds();

// What a client does once, and how it supersedes others.
Work key(const std::string& name, int64_t max_failures = 0);
Work within(Moment distance);
Work newest(const std::string& number = "+");

// Of bounds for clients with such work.
struct Extent {
  std::vector<int64_t> limits{};  // empty: all are exclusive
  int rounds = 1, faults = 0, losses = 0, forces = 0, forgets = 0, failures = 0;
  size_t states = 0;
};
Bounds work(std::string name, std::vector<Work> works, Extent extent);

}  // namespace rlock::model
