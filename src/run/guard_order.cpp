// Runs in rlock, on the main thread, and in the guard.

#include "run/guard_order.hpp"

#include <signal.h>

#include <algorithm>

#include "run/stop_requests.hpp"

namespace rlock::run {
namespace {

int urgency(const GuardOrder& order) noexcept {
  using Kind = GuardOrder::Kind;
  switch (order.kind) {
    case Kind::end:
    case Kind::dismiss:
      return 3;
    case Kind::terminate:
    case Kind::terminate_but_nohup:
      return 2;
    default:
      return asks_to_stop(order.signals[0]) ? 1 : 0;
  }
}

}  // namespace

void OrderQueue::add(const GuardOrder& order) noexcept {
  auto* const end = waiting_.begin() + count_;
  auto* const same = std::find_if(waiting_.begin(), end, [&](const Waiting& other) {
    return other.order.kind == order.kind && other.order.signals == order.signals;
  });
  if (same == waiting_.end()) return;
  if (same == end) *same = {order, 0}, ++count_;
  same->order.skip = order.skip;
  same->times = order.signals[0] >= SIGRTMIN ? same->times + 1 : 1;
}

size_t OrderQueue::find_first() const noexcept {
  const auto less_urgent = [](const Waiting& one, const Waiting& other) {
    return urgency(one.order) < urgency(other.order);
  };
  return static_cast<size_t>(
      std::max_element(waiting_.begin(), waiting_.begin() + count_, less_urgent) -
      waiting_.begin());
}

void OrderQueue::remove_first() noexcept {
  const size_t at = find_first();
  if (--waiting_[at].times > 0) return;
  std::move(waiting_.begin() + at + 1, waiting_.begin() + count_, waiting_.begin() + at);
  --count_;
}

}  // namespace rlock::run
