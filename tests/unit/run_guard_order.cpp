#include <doctest/doctest.h>
#include <signal.h>

#include <vector>

#include "run/guard_order.hpp"

namespace rlock::run {
namespace {

using Kind = GuardOrder::Kind;

std::vector<int> signals_of(OrderQueue& queue) {
  std::vector<int> signals;
  for (; !queue.empty(); queue.remove_first()) signals.push_back(queue.first().signals[0]);
  return signals;
}

TEST_CASE("orders that stop the tree come first, then requests to stop, each in their order") {
  OrderQueue queue;
  queue.add({Kind::signal, {SIGUSR1}, {}});
  queue.add({Kind::signal, {SIGCONT}, {}});
  queue.add({Kind::terminal_signal, {SIGINT}, {}});
  queue.add({Kind::command_signal, {SIGTERM}, {}});
  queue.add({Kind::terminate, {SIGTERM, SIGCONT}, {}});
  queue.add({Kind::end, {}, {}});
  CHECK(queue.first().kind == Kind::end);
  queue.remove_first();
  CHECK(queue.first().kind == Kind::terminate);
  queue.remove_first();
  CHECK(signals_of(queue) == std::vector{SIGINT, SIGTERM, SIGUSR1, SIGCONT});
}

TEST_CASE("a signal that waits is not added again, unless it is a real-time signal") {
  OrderQueue queue;
  for (int i = 0; i < 3; ++i) {
    queue.add({Kind::signal, {SIGUSR1}, {}});
    queue.add({Kind::signal, {SIGRTMIN}, {}});
    queue.add({Kind::reached, {SIGUSR1}, {}});
  }
  CHECK(signals_of(queue) == std::vector{SIGUSR1, SIGRTMIN, SIGRTMIN, SIGRTMIN, SIGUSR1});
}

TEST_CASE("a key that waits skips the groups that have received its last one") {
  OrderQueue queue;
  queue.add({Kind::terminal_signal, {SIGINT}, {10, 20}});
  queue.add({Kind::terminal_signal, {SIGINT}, {10, 30}});
  CHECK(queue.first().skip == std::array<pid_t, 2>{10, 30});
  queue.remove_first();
  CHECK(queue.empty());
}

TEST_CASE("the queue has room for each signal of each kind") {
  OrderQueue queue;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    for (Kind kind : {Kind::signal, Kind::command_signal, Kind::reached, Kind::terminal_signal}) {
      queue.add({kind, {number}, {}});
    }
  }
  queue.add({Kind::terminate, {SIGTERM, SIGCONT}, {}});
  queue.add({Kind::end, {}, {}});
  CHECK(signals_of(queue).size() == 4 * static_cast<size_t>(SIGRTMAX) + 2);
}

}  // namespace
}  // namespace rlock::run
