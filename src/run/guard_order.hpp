// Runs in rlock, on the main thread, and in the guard.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rlock::run {

// An order from rlock to its guard; one message each.
struct GuardOrder {
  // signal: for the whole tree. command_signal: for the command only. terminal_signal: the
  // terminal's driver has sent the signal to the groups `skip`, of which rlock's group is the
  // first. reached: the guard of an outer run has already sent it to all processes. terminate:
  // begins to terminate them, until `end` kills them. terminate_but_nohup: the same, but exempts
  // processes that ignore HUP.
  enum class Kind {
    signal,
    command_signal,
    reached,
    terminate,
    terminate_but_nohup,
    terminal_signal,
    end,
    dismiss
  };
  Kind kind = Kind::end;
  std::array<int, 2> signals{};  // 0: none
  std::array<pid_t, 2> skip{};   // groups that have the signals already; 0: none
};

// Orders that have to wait: in rlock while the guard's socket is full, and in the guard while it
// carries out another one. Merges a signal with an equal signal that waits, as the kernel does, so
// that it always has room. Async-signal-safe. [docs/SUPERVISION.md, "The guard"]
class OrderQueue {
 public:
  void add(const GuardOrder& order) noexcept;
  bool empty() const noexcept { return count_ == 0; }
  // The oldest of the most urgent orders: those that stop the tree come first, then requests to
  // stop. The queue must not be empty.
  const GuardOrder& first() const noexcept { return waiting_[find_first()].order; }
  void remove_first() noexcept;

 private:
  struct Waiting {
    GuardOrder order;
    uint32_t times = 0;  // more than once only for real-time signals, which the kernel counts
  };
  size_t find_first() const noexcept;

  static constexpr size_t kKinds = 8;
  static constexpr size_t kSignals = 65;
  std::array<Waiting, kKinds * kSignals> waiting_{};  // room for each order that differs
  size_t count_ = 0;
};

}  // namespace rlock::run
