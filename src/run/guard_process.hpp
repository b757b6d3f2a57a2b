#pragma once

#include "run/page.hpp"
#include "run/tree.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Fires at the page's kill time, after a suspend too: poll(2) alone does not count that.
class GuardTimer {
 public:
  // ErrorKind::system when refused.
  static util::Result<GuardTimer> make();
  int fd() const noexcept { return fd_.get(); }

 private:
  explicit GuardTimer(int fd) : fd_(fd) {}
  util::Fd fd_;
};

// What the guard does after the fork, born with all signals blocked; async-signal-safe throughout.
// `rlock_is_here` reports end-of-file when rlock is gone.
[[noreturn]] void guard_process(Page& page, Quarry quarry, int rlock_is_here,
                                const GuardTimer& timer) noexcept;

}  // namespace rlock::run
