#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"

// Reaching every process of the command. Used by rlock and by the guard alike, so all of it is
// async-signal-safe but where said. [SUPERVISION, Ending a command]
namespace rlock::run {

// Where the command's processes start from: its own group, or rlock's, which others share.
enum class Grouping { own, callers };

// Whom an ending must reach and whom it must spare. Plain data, filled before the guard is forked.
struct Quarry {
  std::array<char, 32> mark{};  // this text in its environment makes a process a victim
  pid_t runner = -1;            // its descendants are victims, itself never; -1 once it is gone
  pid_t guard = -1;             // spared
  pid_t command = -1;           // -1: not known
  pid_t session = -1;           // the command's, as long as it does not leave it
  Grouping grouping = Grouping::own;
  uint64_t born_from = 0;  // older processes are nobody of ours (clock ticks since boot)
  // The caller started jobs before it executed rlock. They, and the orphans that they leave, are
  // children of rlock: the command's are only those that bear the mark.
  bool older_jobs = false;

  std::string_view mark_text() const { return {mark.data(), mark.size()}; }
};

// Who was still there when the killing ended: another user's processes, mostly.
struct Survivors {
  struct One {
    pid_t pid = 0;
    int error = 0;  // errno of kill(2); 0: it was killed, but hangs in the kernel
  };
  std::array<One, 16> first{};
  size_t count = 0;
  int unseen = 0;  // errno where /proc could not be searched to the end: there may be others

  void add(pid_t pid, int error) noexcept {
    if (count < first.size()) first[count++] = {pid, error};
  }
};

// For messages; allocates: not for the guard.
std::vector<std::string> describe(const Survivors& survivors);

// Sends `signal` once to every process of the command: to itself and its group, where it has one of
// its own, whatever /proc shows, and to the rest of its tree. The command is not reaped yet.
void signal_command(const Quarry& quarry, int signal) noexcept;

// Sends `signal` once to every process of the tree outside of these groups, which have it already.
// The command among them, as far as it has left both.
void signal_outside(const Quarry& quarry, int signal, std::array<pid_t, 2> groups) noexcept;

// A live child of ours that is neither the command nor the guard; dead ones are reaped on the way.
// Every orphan of the command becomes our child, so that 0 means: none of its descendants is left.
// kUnseen: /proc could not be searched to the end, and no live one was found.
inline constexpr pid_t kUnseen = -1;
pid_t find_descendant(const Quarry& quarry) noexcept;

// Kills the command and its group, then the tree, again and again until none is left and all could
// be looked at, at most until `until`.
Survivors kill_tree(const Quarry& quarry, util::TimePoint until) noexcept;

// Reaps the dead children of the calling thread, all but the command and the guard. Where the
// kernel keeps no list of children (CONFIG_PROC_CHILDREN) it reaps none.
void bury_orphans(const Quarry& quarry) noexcept;

// Whether `pid` is a process of the command's; false when it is gone already.
bool of_the_command(const Quarry& quarry, pid_t pid) noexcept;

// Whether `pid` is a descendant of `ancestor`; false when it is gone already.
bool descends_from(pid_t pid, pid_t ancestor) noexcept;

}  // namespace rlock::run
