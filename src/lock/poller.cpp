#include "lock/poller.hpp"

#include <vector>

#include "util/boot_timer.hpp"

namespace rlock::lock {
bool SystemPoller::poll_until(std::vector<pollfd> fds, TimePoint until,
                              Interruptible interruptible) const {
  const auto requests = static_cast<std::ptrdiff_t>(fds.size());
  if (interruptible == Interruptible::yes) {
    fds.insert(fds.end(), interrupts_.begin(), interrupts_.end());  // poll(2) passes over -1
  }
  util::poll_until(fds, until);
  return std::any_of(fds.begin() + requests, fds.end(),
                     [](const pollfd& fd) { return fd.revents != 0; });
}

PollResult SystemPoller::drive(Request& request, TimePoint deadline, Interruptible interruptible) {
  while (true) {
    if (request.advance(now())) return PollResult::done;
    if (now() >= deadline) return PollResult::deadline;
    std::vector<pollfd> fds;
    request.wants(fds);
    if (poll_until(std::move(fds), std::min(deadline, request.due()), interruptible)) {
      return request.advance(now()) ? PollResult::done : PollResult::interrupted;
    }
  }
}

PollResult SystemPoller::pause(TimePoint until, Interruptible interruptible) {
  while (now() < until) {
    if (poll_until({}, until, interruptible)) return PollResult::interrupted;
  }
  return PollResult::deadline;
}

}  // namespace rlock::lock
