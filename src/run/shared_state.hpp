// Memory that both threads of rlock and the guard share.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::run {

// The state of the command, as its guard sees it.
enum class CommandPhase : uint32_t {
  starting,
  running,   // has passed its exec, or is dead
  refused,   // a signal did not reach some processes, see `survivors`; none is being killed
  stuck,     // the remaining processes cannot be stopped: see `survivors`
  outlived,  // the command has exited, and others are left: rlock decides about them
  over,      // nothing is left to wait for: the guard exits
};

// A process of the command's tree that could not be stopped.
struct Survivor {
  pid_t pid = 0;
  uid_t user = 0;
  int error =
      0;  // errno of kill(2); 0: it was killed, but hangs in the kernel; kExempted: see there
  static constexpr int kExempted = -1;
};

// The survivors of the last check, as the guard publishes them. A reader may see a mixture of two
// checks.
class Survivors {
 public:
  static constexpr size_t kMost = 16;

  void clear() noexcept { count_ = 0; }
  // If there is no room, a process that cannot die replaces one that still may.
  void add(const Survivor& one) noexcept {
    size_t at = count_;
    if (at == kMost && one.error != 0) return;
    at = std::min(at, kMost - 1);
    slots_[at] = one;
    count_ = at + 1;
  }
  void copy(const Survivors& other) noexcept {
    clear();
    for (size_t i = 0; i < other.size(); ++i) add(other[i]);
  }
  size_t size() const noexcept { return count_; }
  Survivor operator[](size_t at) const noexcept {
    return {slots_[at].pid, slots_[at].user, slots_[at].error};
  }
  // True if waiting is of no use, because all of them belong to other users.
  bool all_refused() const noexcept {
    for (size_t i = 0; i < count_; ++i) {
      if (slots_[i].error == 0) return false;
    }
    return true;
  }

 private:
  struct Slot {
    std::atomic<pid_t> pid{0};
    std::atomic<uid_t> user{0};
    std::atomic<int> error{0};
    Slot& operator=(const Survivor& one) noexcept {
      pid = one.pid;
      user = one.user;
      error = one.error;
      return *this;
    }
  };
  std::array<Slot, kMost> slots_{};
  std::atomic<size_t> count_{0};
};

// For messages: `process 4711 (sleep) of root: Operation not permitted`, one text for each
// survivor.
std::vector<std::string> describe(const Survivors& survivors);
// The same for those that are alive.
std::vector<std::string> describe_alive(const Survivors& processes);
// For the stored record: `cannot stop pid 4711 of root`; the first of several, and how many more
// there are.
std::string summarize(const Survivors& survivors);

// A few processes that do not belong to the command, although they descend from the same process. A
// reused pid does not count.
class Exclusions {
 public:
  // Returns false if there is no room.
  bool add(pid_t pid) noexcept;
  bool contains(pid_t pid) const noexcept;

 private:
  struct One {
    std::atomic<pid_t> pid{0};
    std::atomic<uint64_t> born{0};  // 0: /proc did not show it
  };
  std::array<One, 128> all_{};
  std::atomic<size_t> count_{0};
};

// The state that rlock, the guard and the command before its exec share, in a MAP_SHARED page. Each
// field has one writer, so no two of them have to agree on anything. rlock writes the guard's
// fields only once the guard is dead.
class SharedState {
 public:
  static constexpr int kTooLate = -1;  // exec_error: the lease expired before exec

  // ---- written by rlock ----
  void set_kill_at(TimePoint at, TimePoint count_at) noexcept {
    count_at_ns_ = count_at.time_since_epoch().count();
    kill_at_ns_ = at.time_since_epoch().count();
  }
  // When the guard stops the command by itself; never if a lost lease is to be ignored.
  TimePoint kill_at() const noexcept { return TimePoint(BootClock::duration(kill_at_ns_.load())); }
  // When the guard counts the processes, to begin earlier if there are many.
  TimePoint count_at() const noexcept {
    return TimePoint(BootClock::duration(count_at_ns_.load()));
  }

  // ---- written by the command ----
  std::atomic<int> exec_error{0};  // errno, or kTooLate

  // ---- written by the guard ----
  std::atomic<pid_t> guard{0};      // in its own pid namespace
  std::atomic<pid_t> command{0};    // likewise; 0 until it is forked
  std::atomic<int> start_error{0};  // errno, if no process was available for the command
  std::atomic<CommandPhase> phase{CommandPhase::starting};
  std::atomic<uint64_t> progress{0};  // grows with each step of stopping the tree
  std::atomic<uint32_t> stops{0};     // how often the command was stopped
  std::atomic<uint32_t> terms{0};     // how often a process outside the tree sent the guard TERM
  std::atomic<bool> lease_over{
      false};  // the guard stopped the command by itself, because the kill time passed
  std::atomic<bool> left{
      false};  // the guard left everything in its namespace for the kernel to kill
  std::atomic<bool> ended_first{false};  // the command had exited before rlock began to stop it
  std::atomic<bool> may_take_precedence{false};  // no seccomp filter kills a process for it
  std::atomic<bool> ran{true};                   // false: it died before it passed its exec
  std::atomic<int> end_status{0};                // its exit code or signal
  std::atomic<int> end_code{0};                  // CLD_…, once the command was reaped
  void set_ended_at(TimePoint at) noexcept { ended_at_ns_ = at.time_since_epoch().count(); }
  // When the command was reaped, once it was.
  TimePoint ended_at() const noexcept {
    return TimePoint(BootClock::duration(ended_at_ns_.load()));
  }
  Survivors survivors;
  Survivors leftovers;  // processes that a failed command left
  Survivors exempted;   // processes that ignored the hangup after which the others were stopped
  Exclusions exempt;    // processes that asked to outlive the run

  bool command_ended() const noexcept { return end_code != 0; }
  // Whether the command exited with another code than 0.
  bool failed() const noexcept { return end_code == CLD_EXITED && end_status != 0; }
  // The signal that the command died of, or that a child of it died of, as its exit code says. Such
  // a command did not leave daemons on purpose. 0 if there is none, and for SIGPIPE, which normally
  // ends the first command of a pipeline.
  int killed_by() const noexcept;

 private:
  std::atomic<int64_t> kill_at_ns_{TimePoint::max().time_since_epoch().count()};
  std::atomic<int64_t> count_at_ns_{TimePoint::max().time_since_epoch().count()};
  std::atomic<int64_t> ended_at_ns_{0};
  static_assert(std::atomic<int64_t>::is_always_lock_free);
};

struct UnmapState {
  void operator()(SharedState* state) const noexcept;
};
using SharedStatePtr = std::unique_ptr<SharedState, UnmapState>;

// ErrorKind::system if the kernel refuses the memory.
Result<SharedStatePtr> map_shared_state();

}  // namespace rlock::run
