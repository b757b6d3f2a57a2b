#include "run/tree.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "run/proc.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

// A set of pids of fixed size: the guard cannot allocate. When it is full the rest is found by the
// next round, after these are dead.
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
  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (pid_t pid : slots_) {
      if (pid != 0) visit(pid);
    }
  }

 private:
  static constexpr size_t kSlots = 16'384;
  static constexpr size_t kMost = kSlots / 2;  // so that a probe always finds a free slot

  size_t slot_of(pid_t pid) const noexcept {
    size_t slot = static_cast<size_t>(pid) * 2'654'435'761u % kSlots;
    while (slots_[slot] != 0 && slots_[slot] != pid) slot = (slot + 1) % kSlots;
    return slot;
  }

  std::array<pid_t, kSlots> slots_{};
  size_t count_ = 0;
};

// Static, not on a stack: each process (rlock, guard) hunts from one thread only.
PidSet victims;

bool spared(const Quarry& quarry, pid_t pid) {
  return pid <= 1 || pid == quarry.runner || pid == quarry.guard || pid == getpid();
}

// Of a child of rlock, or of what descends from it: whether it may come from the command.
bool may_be_the_commands(const Quarry& quarry, pid_t pid) {
  return !quarry.older_jobs || environ_contains(pid, quarry.mark_text());
}

bool belongs(const Quarry& quarry, pid_t pid, const ProcessStat& stat) {
  // Once rlock is gone the number may be a stranger's.
  if (pid == quarry.command && quarry.runner > 0) return true;
  if (quarry.runner > 0 && stat.parent == quarry.runner && !quarry.older_jobs) return true;
  if (stat.parent > 1 && victims.contains(stat.parent)) return true;
  bool in_group = quarry.grouping == Grouping::own && stat.group == quarry.command &&
                  stat.session == quarry.session;
  return in_group || environ_contains(pid, quarry.mark_text());
}

bool is_victim(const Quarry& quarry, pid_t pid, const ProcessStat& stat) {
  return belongs(quarry, pid, stat) && !is_local_server(pid);
}

// What a look at every process came to.
struct Look {
  bool found = false;  // victims that were not known
  int refused = 0;     // errno: not every process could be looked at
};

// Of opening a file below /proc: not that there is no such process, or that it is another user's.
bool out_of_means(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

Look find_more(const Quarry& quarry) noexcept {
  Look look;
  bool listed = for_each_number_in("/proc", [&](pid_t pid) {
    if (spared(quarry, pid) || victims.contains(pid)) return;
    auto stat = read_stat(pid);
    if (!stat && out_of_means(errno)) look.refused = errno;
    if (!stat || !stat->alive() || stat->born < quarry.born_from) return;
    if (is_victim(quarry, pid, *stat)) look.found |= victims.add(pid);
  });
  if (!listed) look.refused = errno;
  return look;
}

// The closure: a child may be listed before its parent, and be born while we look. Returns the
// errno of a look that was refused, 0 when there was none.
int find_all(const Quarry& quarry) noexcept {
  constexpr int kRounds = 32;  // a fork bomb must not keep us from killing what is known
  victims.clear();
  Look look{true, 0};
  for (int round = 0; round < kRounds && look.found; ++round) look = find_more(quarry);
  return look.refused;
}

// True when a victim that we may kill was still alive.
bool kill_found(Survivors& refused) noexcept {
  bool any = false;
  refused.count = 0;
  victims.for_each([&](pid_t pid) {
    if (kill(pid, SIGKILL) == 0) {
      any = true;
    } else if (errno == EPERM) {
      refused.add(pid, EPERM);
    }
  });
  return any;
}

void nap(long milliseconds) noexcept {
  timespec time{0, milliseconds * 1'000'000};
  nanosleep(&time, nullptr);
}

void add_hanging(Survivors& survivors) noexcept {
  victims.for_each([&](pid_t pid) {
    if (kill(pid, 0) == 0) survivors.add(pid, 0);
  });
}

// Where /proc counts other pids than we do, a guard is the init of its own pid namespace, and
// everything else in there is the command's.
void kill_namespace() noexcept {
  if (getpid() == 1) kill(-1, SIGKILL);
}

// What needs no look at /proc. While rlock is there it leaves the command unreaped, which keeps its
// number from being given to a stranger.
void signal_known(const Quarry& quarry, int signal) noexcept {
  if (quarry.runner <= 0 || quarry.command <= 1) return;
  bool own_group = quarry.grouping == Grouping::own;
  if (own_group) kill(-quarry.command, signal);
  if (!own_group || getpgid(quarry.command) != quarry.command) kill(quarry.command, signal);
}

bool signalled_as_known(const Quarry& quarry, pid_t pid) noexcept {
  if (pid == quarry.command) return true;
  return quarry.grouping == Grouping::own && getpgid(pid) == quarry.command;
}

}  // namespace

void signal_command(const Quarry& quarry, int signal) noexcept {
  signal_known(quarry, signal);
  if (!proc_is_ours()) return;
  // timeout(1), setsid(1) and shells with job control made groups of their own.
  find_all(quarry);
  victims.for_each([&](pid_t pid) {
    if (!signalled_as_known(quarry, pid)) kill(pid, signal);
  });
}

void signal_outside(const Quarry& quarry, int signal, std::array<pid_t, 2> groups) noexcept {
  auto reach = [&](pid_t pid) {
    pid_t group = getpgid(pid);
    if (group != groups[0] && group != groups[1]) kill(pid, signal);
  };
  if (quarry.command > 1) reach(quarry.command);
  if (!proc_is_ours()) return;
  find_all(quarry);
  victims.for_each([&](pid_t pid) {
    if (pid != quarry.command) reach(pid);
  });
}

pid_t find_descendant(const Quarry& quarry) noexcept {
  pid_t found = 0;
  bool reaped = true, refused = false;
  // The children of one that died meanwhile may have been passed while they were still its own.
  while (found == 0 && reaped) {
    reaped = refused = false;
    bool listed = for_each_number_in("/proc", [&](pid_t pid) {
      if (found != 0 || pid == quarry.command || spared(quarry, pid)) return;
      auto stat = read_stat(pid);
      refused |= !stat && out_of_means(errno);
      if (!stat || stat->parent != quarry.runner || is_local_server(pid)) return;
      if (!stat->alive()) {
        reaped |= waitpid(pid, nullptr, WNOHANG) == pid;
      } else if (may_be_the_commands(quarry, pid)) {
        found = pid;
      }
    });
    refused |= !listed && out_of_means(errno);
  }
  return found == 0 && refused ? kUnseen : found;
}

Survivors kill_tree(const Quarry& quarry, util::TimePoint until) noexcept {
  Survivors survivors;
  signal_known(quarry, SIGKILL);
  if (!proc_is_ours()) {
    if (quarry.command > 1) kill(quarry.command, SIGKILL);
    kill_namespace();
    return survivors;
  }
  for (long pause = 1;; pause = std::min(pause * 2, 16L)) {
    survivors.unseen = find_all(quarry);
    if (!kill_found(survivors) && survivors.unseen == 0) return survivors;
    if (util::BootClock::now() >= until) break;
    nap(pause);
  }
  add_hanging(survivors);
  return survivors;
}

void bury_orphans(const Quarry& quarry) noexcept {
  for_each_child([&](pid_t pid) {
    if (pid != quarry.command && pid != quarry.guard) waitpid(pid, nullptr, WNOHANG);
  });
}

bool of_the_command(const Quarry& quarry, pid_t pid) noexcept {
  return descends_from(pid, quarry.runner) && may_be_the_commands(quarry, pid);
}

bool descends_from(pid_t pid, pid_t ancestor) noexcept {
  constexpr int kDeepest = 256;
  for (int level = 0; level < kDeepest && pid > 1; ++level) {
    auto stat = read_stat(pid);
    if (!stat) return false;
    if (stat->parent == ancestor) return true;
    pid = stat->parent;
  }
  return false;
}

std::vector<std::string> describe(const Survivors& survivors) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < survivors.count; ++i) {
    const auto& one = survivors.first[i];
    std::string line = "process " + std::to_string(one.pid);
    if (std::string name = read_name(one.pid); !name.empty()) {
      line += " (" + util::printable(name) + ")";
    }
    line += one.error == 0 ? ": killed, but hangs in the kernel"
                           : std::string(": ") + std::strerror(one.error);
    lines.push_back(std::move(line));
  }
  if (survivors.unseen != 0) {
    lines.push_back(std::string("what else it started: /proc: ") + std::strerror(survivors.unseen));
  }
  return lines;
}

}  // namespace rlock::run
