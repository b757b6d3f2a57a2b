#include "lock/poller.hpp"

#include <algorithm>
#include <vector>

#include "util/boot_timer.hpp"

namespace rlock::lock {
namespace {

constexpr SystemPoller::Interrupts kNone{-1, -1};

// True when an interrupt fired.
bool poll_until(std::vector<pollfd>& fds, const SystemPoller::Interrupts& interrupts,
                TimePoint until) {
  const auto requests = static_cast<std::ptrdiff_t>(fds.size());
  for (int fd : interrupts) fds.push_back({fd, POLLIN, 0});  // a negative one is passed over
  util::poll_until(fds, until);
  return std::any_of(fds.begin() + requests, fds.end(),
                     [](const pollfd& fd) { return fd.revents != 0; });
}

}  // namespace

const SystemPoller::Interrupts& SystemPoller::heeded(Heed heed) const {
  return heed == Heed::interrupts ? interrupts_ : kNone;
}

Drive SystemPoller::drive(Request& request, TimePoint deadline, Heed heed) {
  std::vector<pollfd> fds;
  while (true) {
    if (request.advance(now())) return Drive::done;
    if (now() >= deadline) return Drive::deadline;
    fds.clear();
    request.wants(fds);
    if (poll_until(fds, heeded(heed), std::min(deadline, request.due()))) {
      return request.advance(now()) ? Drive::done : Drive::interrupted;
    }
  }
}

Drive SystemPoller::pause(TimePoint until, Heed heed) {
  std::vector<pollfd> fds;
  while (now() < until) {
    fds.clear();
    if (poll_until(fds, heeded(heed), until)) return Drive::interrupted;
  }
  return Drive::deadline;
}

}  // namespace rlock::lock
