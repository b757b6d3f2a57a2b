#include "run/ancestor.hpp"

#include <unistd.h>

#include "run/proc.hpp"

namespace rlock::run {
namespace {

// While it is walked a chain may change, but never grow without end.
constexpr int kLongestChain = 4096;

// Another process with that number began after the one that had it at `then` was gone.
bool born_by(const ProcessStat& stat, TimePoint then) noexcept {
  const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const auto since_boot = std::chrono::duration_cast<Millis>(then.time_since_epoch());
  return stat.born * 1000 / ticks <= static_cast<uint64_t>(since_boot.count());
}

}  // namespace

bool is_live_ancestor(pid_t pid, TimePoint then) noexcept {
  if (!proc_is_ours()) return false;
  auto stat = read_stat(getpid());
  for (int i = 0; stat && i < kLongestChain; ++i) {
    const pid_t parent = stat->parent;
    if (parent <= 0) return false;
    stat = read_stat(parent);
    if (parent == pid) return stat && stat->alive() && born_by(*stat, then);
  }
  return false;
}

}  // namespace rlock::run
