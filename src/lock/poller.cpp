#include "lock/poller.hpp"

#include <algorithm>
#include <vector>

namespace rlock::lock {
namespace {

// True when the interrupt fired.
bool poll_until(std::vector<pollfd>& fds, int interrupt_fd, TimePoint until) {
  if (interrupt_fd >= 0) fds.push_back({interrupt_fd, POLLIN, 0});
  int ready = poll(fds.data(), fds.size(), util::poll_timeout(util::BootClock::now(), until));
  return ready > 0 && interrupt_fd >= 0 && fds.back().revents != 0;
}

}  // namespace

Drive SystemPoller::drive(Request& request, TimePoint deadline, Heed heed) {
  int interrupt_fd = heed == Heed::interrupts ? interrupt_fd_ : -1;
  std::vector<pollfd> fds;
  while (true) {
    if (request.advance(now())) return Drive::done;
    if (now() >= deadline) return Drive::deadline;
    fds.clear();
    request.wants(fds);
    if (poll_until(fds, interrupt_fd, std::min(deadline, request.due()))) {
      return request.advance(now()) ? Drive::done : Drive::interrupted;
    }
  }
}

Drive SystemPoller::pause(TimePoint until, Heed heed) {
  int interrupt_fd = heed == Heed::interrupts ? interrupt_fd_ : -1;
  std::vector<pollfd> fds;
  while (now() < until) {
    fds.clear();
    if (poll_until(fds, interrupt_fd, until)) return Drive::interrupted;
  }
  return Drive::deadline;
}

}  // namespace rlock::lock
