#pragma once

#include <array>

#include "lock/store.hpp"

namespace rlock::lock {

enum class Drive { done, deadline, interrupted };
enum class Heed { interrupts, nothing };  // nothing: while giving back what was taken

// Drives requests in flight: the only place that polls for them, and where a fake clock enters.
class Poller {
 public:
  virtual ~Poller() = default;
  virtual TimePoint now() const = 0;
  // Until the request is done, the deadline passes or the interrupt fires. A request that is not
  // done may be driven on later.
  virtual Drive drive(Request& request, TimePoint deadline, Heed heed = Heed::interrupts) = 0;
  // Lets time pass; done never comes back.
  virtual Drive pause(TimePoint until, Heed heed = Heed::interrupts) = 0;
};

// Real time. An interrupt that is readable (or hung up) ends a drive early; -1 for none. Never
// reads them.
class SystemPoller final : public Poller {
 public:
  using Interrupts = std::array<int, 2>;

  explicit SystemPoller(int interrupt_fd = -1, int other_fd = -1)
      : interrupts_{interrupt_fd, other_fd} {}
  TimePoint now() const override { return util::BootClock::now(); }
  Drive drive(Request& request, TimePoint deadline, Heed heed = Heed::interrupts) override;
  Drive pause(TimePoint until, Heed heed = Heed::interrupts) override;

 private:
  const Interrupts& heeded(Heed heed) const;

  Interrupts interrupts_;
};

// Drives to the end: the result, or ErrorKind::unavailable (Retry::later) at the deadline or
// interrupt.
template <class T>
util::Result<T> finish(Poller& poller, InFlight<T> request, TimePoint deadline,
                       const std::string& server, Heed heed = Heed::interrupts) {
  if (poller.drive(*request, deadline, heed) == Drive::done) return request->take();
  return util::Error{util::ErrorKind::unavailable, server + ": no answer in time",
                     util::Retry::later};
}

}  // namespace rlock::lock
