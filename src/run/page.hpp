#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Whose word counts about the command's end: one compare-and-swap out of `armed` decides, so that
// the guard never signals a pid that rlock has reaped. [SUPERVISION, The guard]
enum class Phase : uint32_t {
  armed,
  done,     // by rlock: the command has ended
  killing,  // by the guard: it is ending the command
  killed,   // by the guard: it is finished with that
};

// What rlock, the guard and the command before its exec share. Lives in a MAP_SHARED page.
class Page {
 public:
  static constexpr int kTooLate = -1;  // exec_error: the lease ended before exec

  // Leaves `armed`; false when the other side did before.
  bool leave_armed(Phase next) noexcept {
    Phase expected = Phase::armed;
    return phase.compare_exchange_strong(expected, next);
  }
  void set_kill_at(util::TimePoint at) noexcept { kill_at_ns_ = at.time_since_epoch().count(); }
  util::TimePoint kill_at() const noexcept {
    return util::TimePoint(util::BootClock::duration(kill_at_ns_.load()));
  }

  std::atomic<Phase> phase{Phase::armed};
  std::atomic<pid_t> command{0};   // by the command itself: as its own pid namespace counts
  std::atomic<int> exec_error{0};  // by the command: errno, or kTooLate

 private:
  std::atomic<int64_t> kill_at_ns_{util::TimePoint::max().time_since_epoch().count()};
  static_assert(std::atomic<int64_t>::is_always_lock_free);
};

struct UnmapPage {
  void operator()(Page* page) const noexcept;
};
using PagePtr = std::unique_ptr<Page, UnmapPage>;

// ErrorKind::system where memory is refused.
util::Result<PagePtr> map_page();

}  // namespace rlock::run
