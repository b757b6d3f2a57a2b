#include "simulation/world.hpp"

#include <cmath>
#include <utility>

namespace rlock::sim {

Nanos Chance::about(Nanos mean) {
  const double times = std::min(20.0, -std::log(1.0 - part()));
  return Nanos(static_cast<Nanos::rep>(times * static_cast<double>(mean.count())));
}

void World::step() {
  now_ = events_.top().when;
  auto what = std::move(const_cast<Event&>(events_.top()).what);
  events_.pop();
  what();
}

Moment Clock::when(Nanos time) const {
  const int64_t million = 1'000'000, wanted = (time - shown_).count(), rate = million + drift_;
  if (wanted <= 0) return since_;
  int64_t passed = wanted / rate * million + wanted % rate * million / rate;
  while (run(Nanos(passed)).count() < wanted) ++passed;
  return since_ + Nanos(passed);
}

}  // namespace rlock::sim
