#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "util/clock.hpp"

// A clock, chance, and what is to happen, for simulated servers and networks.
namespace rlock::test {

using namespace std::chrono_literals;

struct NetworkFaults {
  double loss = 0;      // of a message
  double twice = 0;     // delivered again, later
  double late = 0;      // by seconds
  Nanos usual{1ms};     // up to so long on the way
  double stops = 0;     // chance a second that a server hangs for a while
  double restarts = 0;  // chance a second that a server starts again, empty
  double forgets = 0;   // a grant before its token was written back (an operator, a flush)
  Millis skew{0};       // of the servers' clocks, to either side
};

// Time, chance, and what is to happen.
class SimWorld {
 public:
  explicit SimWorld(uint64_t seed) : random_(seed) {}
  TimePoint now() const { return now_; }
  double chance() { return std::uniform_real_distribution<>(0, 1)(random_); }
  bool chance(double p) { return p > 0 && chance() < p; }
  Nanos up_to(Nanos longest) {
    return Nanos(static_cast<Nanos::rep>(chance() * static_cast<double>(longest.count())));
  }
  uint64_t next() { return random_(); }

  void at(TimePoint when, std::function<void()> what) {
    events_.push({std::max(when, now_), order_++, std::move(what)});
  }
  void after(Nanos pause, std::function<void()> what) { at(now_ + pause, std::move(what)); }
  TimePoint next_event() const { return events_.empty() ? TimePoint::max() : events_.top().when; }
  // Everything that is due by then.
  void go_to(TimePoint when) {
    now_ = std::max(now_, when);
    while (!events_.empty() && events_.top().when <= now_) {
      auto what = events_.top().what;
      events_.pop();
      what();
    }
  }

 private:
  struct Event {
    TimePoint when;
    uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(when, order) > std::tie(other.when, other.order);
    }
  };
  std::mt19937_64 random_;
  TimePoint now_{1000s};
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
};

}  // namespace rlock::test
