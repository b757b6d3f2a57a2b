#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <array>

#include "run/proc.hpp"
#include "run/shared_state.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

// Reaching every process of the command. Used by the guard, and by rlock where the guard is dead:
// async-signal-safe throughout.
namespace rlock::run {

// Options of waitid(2): looks at the dead children of the calling thread. What another thread of
// rlock started, to print a password, is that thread's to reap.
inline constexpr int kDeadChildren = WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD;

// Where the command's processes start from: its own group, or rlock's, which others share.
enum class Grouping { own, callers };

// A set of pids of fixed size, since the guard cannot allocate. What finds no room in it is found
// by the next look, when those in it are dead. To be cleared before its first use: a guard that
// ends nothing touches none of it.
class PidSet {
 public:
  void clear() noexcept {
    slots_.fill(0);
    count_ = 0;
  }
  bool contains(pid_t pid) const noexcept { return slots_[slot_of(pid)] == pid; }
  // False when it was there before, or there is no room.
  bool add(pid_t pid) noexcept {
    pid_t& slot = slots_[slot_of(pid)];
    if (slot == pid || count_ == kMost) return false;
    slot = pid;
    ++count_;
    return true;
  }

 private:
  static constexpr size_t kSlots = 8'192;
  static constexpr size_t kMost = kSlots / 2;  // so that a probe always finds a free slot

  size_t slot_of(pid_t pid) const noexcept {
    size_t slot = static_cast<size_t>(pid) * 2'654'435'761u % kSlots;
    while (slots_[slot] != 0 && slots_[slot] != pid) slot = (slot + 1) % kSlots;
    return slot;
  }

  size_t count_ = 0;
  std::array<pid_t, kSlots> slots_;
};

// All that descends from the calling process, which is a subreaper: whatever session, group or
// environment a descendant makes, it stays one. Known by the kernel's lists of children; nothing of
// other processes is read, and nobody is marked. Where the kernel keeps no such lists
// (CONFIG_PROC_CHILDREN) every stat below /proc is read instead. Large: not for a stack.
class ProcessTree {
 public:
  enum class Listing { children, scan };

  // `session`: rlock's; a group in another session was made by the tree. Processes in `excluded`,
  // and what descends from them, are none of the tree.
  ProcessTree(Grouping grouping, pid_t session, const Exclusions& excluded)
      : grouping_(grouping), session_(session), excluded_(excluded) {}
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // By the process and the thread that has the children: opens their list, so that a lack of
  // descriptors cannot hide them later. Repeated calls do nothing.
  void open(Listing listing = Listing::children) noexcept;

  // The command: a child that its parent has not reaped. 0: it was reaped.
  void set_command(pid_t command) noexcept {
    command_ = command;
    if (command != 0) group_ = command;
  }

  // By a guard that is the first process of a pid namespace: all else in there is the command's.
  // Not by rlock, beside which others may run as PID 1's children or by `docker exec`.
  void set_owns_namespace() noexcept { owns_namespace_ = true; }

  // Reaps the dead children, some of them at a time: true when there may be more.
  struct Reaper {
    virtual bool reap() noexcept = 0;

   protected:
    ~Reaper() = default;
  };

  // Kills every process of the tree that it sees in the moment in which it sees it, looks again
  // until nobody new is there, and then goes down to those whose parents do not die. Bounded by
  // `until`, also while the tree grows. True when nobody is left. Who cannot be killed is in
  // `survivors`.
  bool end(Reaper& reaper, TimePoint until, Survivors& survivors) noexcept;

  // Sends these signals (0: none) once to every process of the tree that is in neither of the
  // groups `skip` (0: none). Who is not found by `until` gets none, but for the command itself.
  void signal(std::array<int, 2> signals, std::array<pid_t, 2> skip, TimePoint until) noexcept;

  // Those of the tree who may not be signalled: another user's.
  bool find_refusing(Survivors& survivors) noexcept;
  // Those of the tree who are alive; false when not all of it could be looked at.
  bool find_alive(Survivors& survivors) noexcept;

  // Whether the calling process has no children but the excluded ones.
  bool empty() noexcept;

 private:
  struct Process {
    pid_t pid;
    bool child;               // a child of the caller: its number stays its own
    int folder;               // /proc/PID; -1: not available
    const ProcessStat* stat;  // null: likewise
  };
  struct QueuedProcess {
    pid_t pid;
    pid_t parent;
  };

  template <class Visit>
  void for_each_child(Visit visit) noexcept;
  template <class Visit>
  void for_each_below(int folder, pid_t pid, const ProcessStat& stat, Visit visit) noexcept;
  template <class Visit>
  bool walk(TimePoint until, Visit visit) noexcept;
  static void reap_some(Reaper& reaper) noexcept;
  bool kill_children(TimePoint until, Survivors& survivors) noexcept;
  void kill_deeper(TimePoint until, Survivors& survivors) noexcept;
  void kill_group_of(const ProcessStat& stat) noexcept;
  void kill_known() noexcept;
  bool made_by_tree(const ProcessStat& stat) const noexcept;
  int send(const Process& process, int signal) const noexcept;
  void note(const Process& process, int error, Survivors& survivors) const noexcept;

  const Grouping grouping_;
  const pid_t session_;
  const Exclusions& excluded_;
  pid_t command_ = 0;
  pid_t group_ = 0;  // of the command, also once that is reaped
  pid_t self_ = -1;  // as /proc counts
  bool owns_namespace_ = false;
  bool numbers_ours_ = false;
  bool opened_ = false;
  Listing listing_ = Listing::children;
  util::Fd children_;
  size_t queued_ = 0;
  PidSet killed_;  // in this call of end()
  PidSet groups_;
  PidSet seen_;
  std::array<QueuedProcess, 4'096> queue_;
};

// Where it is allowed, the calling thread runs before all that is not of real time: a storm of
// forks would keep it from the processor when it has to act.
void raise_priority() noexcept;

// An ending of the tree, a round at a time, so that its caller can do other things between rounds.
class TreeEnding {
 public:
  // `state` reports what cannot be ended.
  TreeEnding(ProcessTree& tree, ProcessTree::Reaper& reaper, SharedState& state)
      : tree_(tree), reaper_(reaper), state_(state) {}

  void begin(TimePoint now) noexcept;
  bool under_way() const noexcept { return under_way_; }
  TimePoint began_at() const noexcept { return began_at_; }
  // When the next round is due.
  TimePoint next_round() const noexcept { return next_round_; }
  // One round of bounded length, where it is due. True when nobody is left.
  bool round(TimePoint now) noexcept;

 private:
  ProcessTree& tree_;
  ProcessTree::Reaper& reaper_;
  SharedState& state_;
  Survivors survivors_;
  bool under_way_ = false;
  TimePoint began_at_;
  TimePoint next_round_;
  Nanos pause_{0};
};

}  // namespace rlock::run
