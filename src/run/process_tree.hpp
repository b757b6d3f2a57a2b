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
#include <set>

#include "run/shared_state.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"

// Reaches every process of the command. All of it is async-signal-safe.
namespace rlock::run {

// Options of waitid(2): finds dead children of the calling thread only, because the command that
// prints a password is the child of another thread, which reaps it.
inline constexpr int kDeadChildren = WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD;

// The process group in which the command starts: its own, or rlock's group, which other processes
// share.
enum class Grouping { own, callers };

// A list or table with initial room inside itself. It grows by mapped pages, because the guard
// cannot allocate; if the kernel refuses them it stays as it is.
template <class T, size_t kFirst>
class GrowingArray {
 public:
  T* begin() noexcept { return at_; }
  size_t size() const noexcept { return size_; }
  // Returns an array of twice the size, filled with zeros, to which the caller copies the present
  // content; see adopt().
  T* map_larger() const noexcept {
    void* memory = mmap(nullptr, 2 * size_ * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
  }
  // Replaces the present array by one from map_larger().
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

// A set of pids. It must be cleared before its first use, so that a guard that stops nothing does
// not touch its memory.
class PidSet {
 public:
  void clear() noexcept {
    std::fill_n(slots_.begin(), slots_.size(), 0);
    count_ = 0;
  }
  bool contains(pid_t pid) noexcept { return *slot_of(slots_.begin(), slots_.size(), pid) == pid; }
  // Returns false if the pid is in the set already, or if there is no room.
  bool add(pid_t pid) noexcept {
    // Half of the table stays free, so that a search is short and terminates.
    if (contains(pid) || (count_ == slots_.size() / 2 && !grow())) return false;
    *slot_of(slots_.begin(), slots_.size(), pid) = pid;
    ++count_;
    return true;
  }
  // Calls visit(pid) for each pid, until visit returns false.
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

// The children of rlock that it did not start (`exec rlock` in a shell with jobs); they do not
// belong to the command. Lives in rlock's own memory, because there may be any number of them.
class OlderChildren {
 public:
  // Lists all children of the calling process.
  static OlderChildren list();
  // Ignores a pid that was reused since.
  bool contains(pid_t pid) const noexcept;
  // Whether they or their descendants were in this session when they were listed. Others may be in
  // it, but no process of the command.
  bool were_in(pid_t session) const noexcept { return sessions_.contains(session); }

 private:
  std::map<pid_t, uint64_t> born_;  // start time as in util::ProcessStat
  std::set<pid_t> sessions_;
};

// All descendants of the calling process, which is a subreaper, found in the kernel's lists of
// children. If the kernel has no such lists (CONFIG_PROC_CHILDREN), it reads every stat below /proc
// instead. Too large for a stack. [docs/SUPERVISION.md, "Process tree"]
class ProcessTree {
 public:
  enum class Listing { children, scan };

  // `session`: rlock's session; a group in another session was made by the tree. Processes in
  // state.exempt and their descendants are not part of the tree, nor are `older` children. `state`
  // receives the progress of stopping the tree, and how the command exited.
  ProcessTree(Grouping grouping, pid_t session, SharedState& state,
              const OlderChildren* older = nullptr)
      : grouping_(grouping), session_(session), state_(state), older_(older) {}
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // Call this in the process and thread that has the children: opens their list, so that a lack of
  // descriptors cannot hide them later. Repeated calls do nothing.
  void open(Listing listing = Listing::children) noexcept;

  // Sets the command, a child of the calling thread. 0: it was reaped.
  void set_command(pid_t command) noexcept { group_ = command_ = command; }
  pid_t command() const noexcept { return command_; }

  // Reaps some of the dead children, and returns how many.
  size_t reap() noexcept;

  // Does one step of stopping the tree. The caller repeats it until it returns true: no process is
  // left. It returns soon after `until`, even while the tree grows. `survivors` receives the
  // processes that cannot be killed. [docs/SUPERVISION.md, "Ending the tree"]
  bool end(TimePoint until, Survivors& survivors) noexcept;

  // Whether the last end() found a new process, or reaped a process.
  bool progressed() const noexcept { return progressed_; }

  // Sends these signals (0: none) once to every process of the tree that is in neither of the
  // groups `skip` (0: none). A process that is not found by `until` gets no signal, except the
  // command itself.
  void signal(std::array<int, 2> signals, std::array<pid_t, 2> skip, TimePoint until) noexcept;

  // Lists the processes of the tree that the caller may not signal, because they belong to another
  // user.
  bool find_refusing(Survivors& survivors) noexcept;
  // Lists the live processes of the tree, as exempted.
  void find_leftovers(Survivors& survivors) noexcept;
  // Lists the live processes of the tree. Returns false if it could not inspect all of them.
  bool find_alive(Survivors& survivors) noexcept;

  // Exempts the processes of the tree that ignore a hangup and are found by `until`, as many as
  // there is room for. From then on no group is killed as a whole, whoever ends the tree.
  void spare_nohup(TimePoint until) noexcept;

  // How long the killed processes will take to die on a small, busy machine; nullopt if they could
  // not be counted by `until`, 0 if the kernel has no lists of children.
  std::optional<Nanos> dying_time(TimePoint until) noexcept;

  // Whether the calling process has no children except the excluded ones.
  bool empty() noexcept;

 private:
  struct Process {
    pid_t pid;
    bool child;  // a child of the caller, whose pid cannot be reused before the caller reaps it
    int folder;  // /proc/PID; -1: not available
    const util::ProcessStat* stat;  // null: likewise
    unsigned copy_depth;  // how many of its nearest ancestors it shares pages with, because none
                          // has called exec since it forked the next one
  };
  struct QueuedProcess {
    pid_t pid;
    pid_t parent;
    unsigned parents_depth;
  };

  bool is_exempt(pid_t pid) const noexcept;
  template <class Visit>
  void for_each_child(Visit visit) noexcept;
  template <class Visit>
  bool walk(TimePoint until, Visit visit) noexcept;
  bool enqueue(const QueuedProcess& process) noexcept;
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
  const OlderChildren* const older_;  // null: no older children
  pid_t command_ = 0;
  pid_t group_ = 0;  // the command's group, even after the command was reaped
  pid_t self_ = -1;  // own pid as /proc counts
  bool numbers_ours_ = false;
  bool opened_ = false;
  Listing listing_ = Listing::children;
  util::Fd children_;
  // State of stopping the tree:
  bool begun_ = false;
  bool progressed_ = false;
  unsigned idle_rounds_ = 0;  // consecutive rounds without progress
  unsigned passes_ = 0;
  size_t listed_count_ = 0;
  std::array<PidSet, 2> listed_;  // the children of the last two passes
  PidSet groups_;                 // the groups killed in this pass
  // State of a walk:
  PidSet seen_;
  GrowingArray<QueuedProcess, 4'096> queue_;
  size_t queued_ = 0;
};

// Stops the tree one round at a time, so that the caller can do other work between rounds.
class TreeEnding {
 public:
  // `state` receives the processes that cannot be stopped.
  TreeEnding(ProcessTree& tree, SharedState& state) : tree_(tree), state_(state) {}

  void begin(TimePoint now) noexcept;
  bool under_way() const noexcept { return under_way_; }
  // When a round last found a new process, or reaped a process.
  TimePoint progressed_at() const noexcept { return progressed_at_; }
  // When the next round is due.
  TimePoint next_round() const noexcept { return next_round_; }
  // Does one round of bounded length, if it is due. Returns true if no process is left.
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
