#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "util/clock.hpp"
#include "util/random.hpp"

// True time, chance, and what is to happen.
namespace rlock::sim {

using namespace std::chrono_literals;

using Moment = Nanos;  // true time, which no host and no server knows

constexpr uint64_t mixed(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// Chance for one purpose: what others draw does not change it, so that a history from which
// something was left out stays the same elsewhere.
class Chance final : public util::Random {
 public:
  explicit Chance(uint64_t seed) : state_(mixed(seed)) {}
  Chance(uint64_t seed, uint64_t purpose, uint64_t which = 0)
      : Chance(mixed(mixed(seed) ^ mixed(purpose * 0x10001 + 7)) ^ mixed(which)) {}

  uint64_t next() override { return mixed(state_++); }
  double part() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool with(double probability) { return probability > 0 && part() < probability; }
  uint64_t below(uint64_t end) { return end == 0 ? 0 : next() % end; }
  Nanos between(Nanos least, Nanos most) {
    return least +
           Nanos(static_cast<Nanos::rep>(part() * static_cast<double>((most - least).count())));
  }
  // Mostly short, now and then long.
  Nanos about(Nanos mean);

 private:
  uint64_t state_;
};

class World {
 public:
  explicit World(uint64_t seed) : seed_(seed) {}

  uint64_t seed() const { return seed_; }
  Moment now() const { return now_; }
  void at(Moment when, std::function<void()> what) {
    events_.push({std::max(when, now_), order_++, std::move(what)});
  }
  void after(Nanos pause, std::function<void()> what) { at(now_ + pause, std::move(what)); }
  bool is_over() const { return events_.empty(); }
  Moment next_event() const { return events_.empty() ? Moment::max() : events_.top().when; }
  void step();

 private:
  struct Event {
    Moment when;
    uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  uint64_t seed_;
  Moment now_{0};
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
};

// A clock that runs faster or slower than true time, and may be set.
class Clock {
 public:
  Clock(Nanos start, int64_t drift_ppm) : shown_(start), drift_(drift_ppm) {}

  Nanos at(Moment now) const { return shown_ + run(now - since_); }
  // The first moment at which it shows `time`.
  Moment when(Nanos time) const;
  void step(Moment now, Nanos by) { *this = Clock(now, at(now) + by, drift_); }

 private:
  Clock(Moment since, Nanos shown, int64_t drift) : since_(since), shown_(shown), drift_(drift) {}
  Nanos run(Nanos true_time) const {
    const int64_t million = 1'000'000, passed = true_time.count();
    return Nanos(passed + passed / million * drift_ + passed % million * drift_ / million);
  }

  Moment since_{0};
  Nanos shown_;
  int64_t drift_;  // parts per million
};

}  // namespace rlock::sim
