// Runs in the guard, or in rlock on the main thread once the guard is dead.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "run/shared_state.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"

// Reaches every process of the command. All of it is async-signal-safe.
namespace rlock::run {

// Options of waitid(2): looks at the dead children of the calling thread. The command that prints a
// password is the child of another thread, which reaps it.
inline constexpr int kDeadChildren = WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD;

// The process group in which the command starts: its own, or rlock's, which others share.
enum class Grouping { own, callers };

// A list or table with room inside itself. It grows by mapped pages, because the guard cannot
// allocate; if the kernel refuses them it stays as it is.
template <class T, size_t kFirst>
class GrowingArray {
 public:
  T* begin() noexcept { return at_; }
  size_t size() const noexcept { return size_; }
  // An array of twice the size, filled with zeros: for what is in this one, and more; see adopt().
  T* map_larger() const noexcept {
    void* memory = mmap(nullptr, 2 * size_ * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
  }
  // Takes what map_larger() returned in the place of the present array.
  void adopt(T* larger) noexcept {
    if (at_ != first_.data()) munmap(at_, size_ * sizeof(T));
    at_ = larger;
    size_ *= 2;
  }

 private:
  std::array<T, kFirst> first_;
  T* at_ = first_.data();
  size_t size_ = kFirst;
};

// A set of pids. To be cleared before its first use: a guard that ends nothing touches none of it.
class PidSet {
 public:
  void clear() noexcept {
    std::fill_n(slots_.begin(), slots_.size(), 0);
    count_ = 0;
  }
  bool contains(pid_t pid) noexcept { return *slot_of(slots_.begin(), slots_.size(), pid) == pid; }
  // False when it was there before, or there is no room.
  bool add(pid_t pid) noexcept {
    // Half of it stays free, so that a search is short and has an end.
    if (contains(pid) || (count_ == slots_.size() / 2 && !grow())) return false;
    *slot_of(slots_.begin(), slots_.size(), pid) = pid;
    ++count_;
    return true;
  }
  // Calls visit(pid) for each, until that returns false.
  template <class Visit>
  void for_each(Visit visit) noexcept {
    const auto goes_on = [&](pid_t pid) { return pid == 0 || visit(pid); };
    (void)std::all_of(slots_.begin(), slots_.begin() + slots_.size(), goes_on);
  }

 private:
  static pid_t* slot_of(pid_t* slots, size_t size, pid_t pid) noexcept {
    size_t slot = static_cast<size_t>(pid) * 2'654'435'761u % size;
    while (slots[slot] != 0 && slots[slot] != pid) slot = (slot + 1) % size;
    return slots + slot;
  }
  bool grow() noexcept {
    pid_t* larger = slots_.map_larger();
    if (larger == nullptr) return false;
    for_each([&](pid_t pid) {
      *slot_of(larger, 2 * slots_.size(), pid) = pid;
      return true;
    });
    slots_.adopt(larger);
    return true;
  }

  size_t count_ = 0;
  GrowingArray<pid_t, 8'192> slots_;
};

// The children of rlock that it did not start (`exec rlock` in a shell with jobs): they are none of
// the command's. In rlock's own memory, since there may be any number of them.
class OlderChildren {
 public:
  // All children of the calling process.
  static OlderChildren list();
  // A pid that was reused since does not count.
  bool contains(pid_t pid) const noexcept;

 private:
  std::map<pid_t, uint64_t> born_;  // as of util::ProcessStat
};

// All that descends from the calling process, which is a subreaper, by the kernel's lists of
// children. If the kernel keeps none (CONFIG_PROC_CHILDREN), every stat below /proc is read
// instead. Large: not for a stack. [docs/SUPERVISION.md, "Process tree"]
class ProcessTree {
 public:
  enum class Listing { children, scan };

  // `session`: rlock's; a group in another session was made by the tree. Processes in state.exempt,
  // and what descends from them, are none of the tree, nor are `older` children. `state` gets the
  // progress of an ending, and how the command ended.
  ProcessTree(Grouping grouping, pid_t session, SharedState& state,
              const OlderChildren* older = nullptr)
      : grouping_(grouping), session_(session), state_(state), older_(older) {}
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // By the process and the thread that has the children: opens their list, so that a lack of
  // descriptors cannot hide them later. Repeated calls do nothing.
  void open(Listing listing = Listing::children) noexcept;

  // The command: a child of the calling thread. 0: it was reaped.
  void set_command(pid_t command) noexcept { group_ = command_ = command; }
  pid_t command() const noexcept { return command_; }

  // Reaps some of the dead children; returns how many.
  size_t reap() noexcept;

  // One step of an ending, which the caller repeats until it returns true: no process is left. It
  // returns soon after `until`, even while the tree grows. `survivors` gets the processes that
  // cannot be killed. [docs/SUPERVISION.md, "Ending the tree"]
  bool end(TimePoint until, Survivors& survivors) noexcept;

  // Whether the last end() found a new process, or reaped one.
  bool progressed() const noexcept { return progressed_; }

  // Sends these signals (0: none) once to every process of the tree that is in neither of the
  // groups `skip` (0: none). Who is not found by `until` gets none, but for the command itself.
  void signal(std::array<int, 2> signals, std::array<pid_t, 2> skip, TimePoint until) noexcept;

  // Lists the processes of the tree that the caller may not signal: those of another user.
  bool find_refusing(Survivors& survivors) noexcept;
  // Lists the live processes of the tree; false if it could not look at all of them.
  bool find_alive(Survivors& survivors) noexcept;

  // Exempts the processes of the tree that ignore a hangup, as many as there is room for. From then
  // on no group is killed as a whole, because they may be in it.
  void spare_nohup() noexcept;

  // The number of processes; none if they could not be counted by `until`, 0 if the kernel keeps no
  // lists of children.
  std::optional<size_t> count(TimePoint until) noexcept;

  // Whether the calling process has no children but the excluded ones.
  bool empty() noexcept;

 private:
  struct Process {
    pid_t pid;
    bool child;                     // a child of the caller: its number stays its own
    int folder;                     // /proc/PID; -1: not available
    const util::ProcessStat* stat;  // null: likewise
  };
  struct QueuedProcess {
    pid_t pid;
    pid_t parent;
  };

  bool is_exempt(pid_t pid) const noexcept;
  template <class Visit>
  void for_each_child(Visit visit) noexcept;
  template <class Visit>
  void for_each_below(int folder, pid_t pid, const util::ProcessStat& stat, Visit visit) noexcept;
  template <class Visit>
  bool walk(TimePoint until, Visit visit) noexcept;
  bool enqueue(pid_t pid, pid_t parent) noexcept;
  bool reap_one(idtype_t type, pid_t id) noexcept;
  void record_end(const siginfo_t& info) noexcept;
  void reap_some() noexcept;
  void reap_listed() noexcept;
  bool kill_children(Survivors& survivors) noexcept;
  void kill_with_group(pid_t pid, Survivors& survivors) noexcept;
  void kill_deeper(TimePoint until, Survivors& survivors) noexcept;
  void kill_group_of(const util::ProcessStat& stat) noexcept;
  void kill_known() noexcept;
  bool made_by_tree(const util::ProcessStat& stat) const noexcept;
  int send(const Process& process, int signal) const noexcept;
  void note(const Process& process, int error, Survivors& survivors) const noexcept;

  const Grouping grouping_;
  const pid_t session_;
  SharedState& state_;
  const OlderChildren* const older_;  // null: there are none
  pid_t command_ = 0;
  pid_t group_ = 0;         // of the command, also once that is reaped
  pid_t self_ = -1;         // as /proc counts
  bool groups_end_ = true;  // as one
  bool numbers_ours_ = false;
  bool opened_ = false;
  Listing listing_ = Listing::children;
  util::Fd children_;
  // Of an ending:
  bool begun_ = false;
  bool progressed_ = false;
  unsigned idle_rounds_ = 0;  // in a row
  unsigned passes_ = 0;
  size_t listed_count_ = 0;
  std::array<PidSet, 2> listed_;  // the children of the last two passes
  PidSet groups_;                 // those killed in this pass
  // Of a walk:
  PidSet seen_;
  GrowingArray<QueuedProcess, 4'096> queue_;
  size_t queued_ = 0;
};

// An ending of the tree, a round at a time, so that its caller can do other things between rounds.
class TreeEnding {
 public:
  // `state` reports what cannot be ended.
  TreeEnding(ProcessTree& tree, SharedState& state) : tree_(tree), state_(state) {}

  void begin(TimePoint now) noexcept;
  bool under_way() const noexcept { return under_way_; }
  // When it last found a new process, or reaped one.
  TimePoint progressed_at() const noexcept { return progressed_at_; }
  // When the next round is due.
  TimePoint next_round() const noexcept { return next_round_; }
  // One round of bounded length, where it is due. True when nobody is left.
  bool round(TimePoint now) noexcept;

 private:
  ProcessTree& tree_;
  SharedState& state_;
  Survivors survivors_;
  bool under_way_ = false;
  TimePoint progressed_at_;
  TimePoint next_round_;
  Nanos pause_{0};
};

}  // namespace rlock::run
