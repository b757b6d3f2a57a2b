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
std::vector<Work> numbers(int count);  // each supersedes those with smaller ones
inline std::vector<Work> two(const Work& work) {
  return {work, work};
}
inline std::vector<Work> three(const Work& work) {
  return {work, work, work};
}

}  // namespace rlock::model
