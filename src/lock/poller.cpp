#include "lock/poller.hpp"

#include <vector>

#include "util/boot_timer.hpp"

namespace rlock::lock {
namespace {

constexpr SystemPoller::Interrupts kNone{{{-1, 0, 0}, {-1, 0, 0}}};

// True when an interrupt fired.
bool poll_until(std::vector<pollfd>& fds, const SystemPoller::Interrupts& interrupts,
                TimePoint until) {
  const auto requests = static_cast<std::ptrdiff_t>(fds.size());
  fds.insert(fds.end(), interrupts.begin(), interrupts.end());  // a negative one is passed over
  util::poll_until(fds, until);
  return std::any_of(fds.begin() + requests, fds.end(),
                     [](const pollfd& fd) { return fd.revents != 0; });
}

}  // namespace

const SystemPoller::Interrupts& SystemPoller::interrupts_for(Interruptible interruptible) const {
  return interruptible == Interruptible::yes ? interrupts_ : kNone;
}

PollResult SystemPoller::drive(Request& request, TimePoint deadline, Interruptible interruptible) {
  std::vector<pollfd> fds;
  while (true) {
    if (request.advance(now())) return PollResult::done;
    if (now() >= deadline) return PollResult::deadline;
    fds.clear();
    request.wants(fds);
    if (poll_until(fds, interrupts_for(interruptible), std::min(deadline, request.due()))) {
      return request.advance(now()) ? PollResult::done : PollResult::interrupted;
    }
  }
}

PollResult SystemPoller::pause(TimePoint until, Interruptible interruptible) {
  std::vector<pollfd> fds;
  while (now() < until) {
    fds.clear();
    if (poll_until(fds, interrupts_for(interruptible), until)) return PollResult::interrupted;
  }
  return PollResult::deadline;
}

}  // namespace rlock::lock
