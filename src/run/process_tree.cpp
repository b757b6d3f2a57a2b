#include "run/process_tree.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "lock/timing.hpp"

namespace rlock::run {
namespace {

uid_t user_of(int folder) noexcept {
  struct stat info {};
  return folder >= 0 && fstat(folder, &info) == 0 ? info.st_uid : static_cast<uid_t>(-1);
}

}  // namespace

void ProcessTree::open(Listing listing) noexcept {
  if (opened_) return;
  self_ = own_number_in_proc();
  numbers_ours_ = self_ == getpid();
  if (self_ > 0 && listing == Listing::children) {
    children_.reset(::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC));
  }
  listing_ = children_ ? Listing::children : Listing::scan;
  // Refused for now: the next call tries again.
  opened_ = self_ > 0 && (children_ || listing == Listing::scan || errno == ENOENT);
}

template <class Visit>
void ProcessTree::for_each_child(Visit visit) noexcept {
  open();
  auto unless_excluded = [&](pid_t pid) { return excluded_.contains(pid) || visit(pid); };
  if (listing_ == Listing::children) return for_each_child_in(children_.get(), unless_excluded);
  if (self_ <= 0) return;
  for_each_number_in("/proc", [&](pid_t pid) {
    auto stat = read_stat(pid);
    return !stat || stat->parent != self_ || unless_excluded(pid);
  });
}

// The children of another process, each of whose threads has a list of its own.
template <class Visit>
void ProcessTree::for_each_below(int folder, pid_t pid, const ProcessStat& stat,
                                 Visit visit) noexcept {
  if (listing_ == Listing::scan) {
    for_each_number_in("/proc", [&](pid_t other) {
      auto one = read_stat(other);
      return !one || one->parent != pid || visit(other);
    });
    return;
  }
  util::Fd threads(openat(folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!threads || stat.threads == 0) return;
  for_each_number_in(threads.get(), [&](pid_t thread) {
    util::Fd list(open_children(threads.get(), thread));
    if (list) for_each_child_in(list.get(), visit);
    return true;
  });
}

// Breadth first, and again until no child is new: who lost its parent before we listed that
// parent's children has become ours. False when time or room did not suffice.
template <class Visit>
bool ProcessTree::walk(TimePoint until, Visit visit) noexcept {
  seen_.clear();
  queued_ = 0;
  auto enqueue = [&](pid_t pid, pid_t parent) {
    if (queued_ == queue_.size() || excluded_.contains(pid)) return queued_ < queue_.size();
    if (seen_.add(pid)) queue_[queued_++] = {pid, parent};
    return queued_ < queue_.size();
  };
  auto enqueue_children = [&] { for_each_child([&](pid_t pid) { return enqueue(pid, self_); }); };
  enqueue_children();
  for (size_t at = 0; at < queued_; ++at) {
    if (BootClock::now() >= until) return false;
    const auto [pid, parent] = queue_[at];
    util::Fd folder(open_process(pid));
    auto stat = folder ? read_stat_in(folder.get()) : std::nullopt;
    const bool child = (stat ? stat->parent : parent) == self_;
    if (child || (stat && stat->parent == parent)) {
      visit(Process{pid, child, folder.get(), stat ? &*stat : nullptr});
      auto enqueue_below = [&, above = pid](pid_t one) { return enqueue(one, above); };
      if (stat) for_each_below(folder.get(), pid, *stat, enqueue_below);
    }
    if (at + 1 == queued_) enqueue_children();
  }
  return queued_ < queue_.size();
}

// 0 or errno. A child's number is its own until we reap it; others are held by their folder.
int ProcessTree::send(const Process& process, int signal) const noexcept {
  if (process.child && numbers_ours_) return kill(process.pid, signal) == 0 ? 0 : errno;
  if (process.folder < 0) return ESRCH;
  if (syscall(SYS_pidfd_send_signal, process.folder, signal, nullptr, 0) == 0) return 0;
  // Linux before 5.1, or a filter that knows no such call: the number was right a moment ago.
  if (errno == ESRCH || !numbers_ours_) return errno;
  return kill(process.pid, signal) == 0 ? 0 : errno;
}

void ProcessTree::note(const Process& process, int error, Survivors& survivors) const noexcept {
  if (error == ESRCH || (process.stat != nullptr && !process.stat->alive())) return;
  survivors.add({process.pid, user_of(process.folder), error});
}

bool ProcessTree::made_by_tree(const ProcessStat& stat) const noexcept {
  if (!numbers_ours_ || stat.group <= 1) return false;
  return stat.session != session_ || (grouping_ == Grouping::own && stat.group == group_);
}

// A group ends as one: no fork slips out of it.
void ProcessTree::kill_group_of(const ProcessStat& stat) noexcept {
  if (made_by_tree(stat) && groups_.add(stat.group)) kill(-stat.group, SIGKILL);
}

// What needs no look at /proc.
void ProcessTree::kill_known() noexcept {
  if (owns_namespace_ && self_ != 1) kill(-1, SIGKILL);
  if (command_ <= 1) return;
  if (grouping_ == Grouping::own) kill(-command_, SIGKILL);
  kill(command_, SIGKILL);
}

// True when there was one that this call of end() had not killed yet.
bool ProcessTree::kill_children(TimePoint until, Survivors& survivors) noexcept {
  bool fresh = false;
  groups_.clear();
  for_each_child([&](pid_t pid) {
    if (!killed_.add(pid)) return true;
    fresh = true;
    if (numbers_ours_) kill(pid, SIGKILL);
    util::Fd folder(open_process(pid));
    auto stat = folder ? read_stat_in(folder.get()) : std::nullopt;
    if (stat && stat->parent == self_) kill_group_of(*stat);
    const Process process{pid, true, folder.get(), stat ? &*stat : nullptr};
    if (int error = send(process, SIGKILL); error != 0) note(process, error, survivors);
    return BootClock::now() < until;
  });
  return fresh;
}

void ProcessTree::kill_deeper(TimePoint until, Survivors& survivors) noexcept {
  walk(until, [&](const Process& process) {
    if (process.child || process.stat == nullptr) return;
    int error = send(process, SIGKILL);
    kill_group_of(*process.stat);
    if (error != 0) note(process, error, survivors);
  });
}

// Each dead one that is left over costs the next look several times as much.
void ProcessTree::reap_some(Reaper& reaper) noexcept {
  const TimePoint until = BootClock::now() + timing::kReapTime;
  while (reaper.reap() && BootClock::now() < until) continue;
}

bool ProcessTree::end(Reaper& reaper, TimePoint until, Survivors& survivors) noexcept {
  open();
  kill_known();
  killed_.clear();
  groups_.clear();
  survivors.clear();
  bool fresh = true;
  while (fresh && BootClock::now() < until) {
    reap_some(reaper);
    fresh = kill_children(until, survivors);
  }
  reap_some(reaper);
  if (empty()) return true;
  kill_deeper(until, survivors);
  reap_some(reaper);
  return empty();
}

void ProcessTree::signal(std::array<int, 2> signals, std::array<pid_t, 2> skip,
                         TimePoint until) noexcept {
  open();
  auto send_each = [&](auto send_one) {
    for (int number : signals) {
      if (number != 0) send_one(number);
    }
  };
  const bool own_group = grouping_ == Grouping::own && command_ > 1;
  if (own_group) send_each([&](int number) { kill(-command_, number); });
  // Whatever /proc shows, the command itself is reached.
  auto reached = [&](pid_t group) {
    // 0 is also the number of each group of another namespace.
    const bool skipped = group != 0 && (group == skip[0] || group == skip[1]);
    return (own_group && group == command_) || skipped;
  };
  if (command_ > 1 && !reached(getpgid(command_))) {
    send_each([&](int number) { kill(command_, number); });
  }
  walk(until, [&](const Process& process) {
    if (numbers_ours_ && process.pid == command_) return;
    if (process.stat == nullptr || (numbers_ours_ && reached(process.stat->group))) return;
    send_each([&](int number) { send(process, number); });
  });
}

bool ProcessTree::find_refusing(Survivors& survivors) noexcept {
  survivors.clear();
  return walk(BootClock::now() + timing::kWalkTime, [&](const Process& process) {
    if (int error = send(process, 0); error == EPERM) note(process, error, survivors);
  });
}

bool ProcessTree::find_alive(Survivors& survivors) noexcept {
  survivors.clear();
  return walk(BootClock::now() + timing::kWalkTime,
              [&](const Process& process) { note(process, send(process, 0), survivors); });
}

bool ProcessTree::empty() noexcept {
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, kDeadChildren) != 0) return errno == ECHILD;
  open();
  if (self_ <= 0) return false;
  bool found = false;
  for_each_child([&](pid_t) {
    found = true;
    return false;
  });
  return !found;
}

void raise_priority() noexcept {
  sched_param first{};
  first.sched_priority = sched_get_priority_min(SCHED_FIFO);
  sched_setscheduler(0, SCHED_FIFO, &first);
}

void TreeEnding::begin(TimePoint now) noexcept {
  if (under_way_) return;
  under_way_ = true;
  began_at_ = next_round_ = now;
}

bool TreeEnding::round(TimePoint now) noexcept {
  if (now < next_round_) return false;
  if (tree_.end(reaper_, now + timing::kKillRound, survivors_)) return true;
  now = BootClock::now();
  const bool hanging = now - began_at_ >= timing::kDyingTime;
  // Beside one that cannot be ended others may still be dying: only when they are gone it is the
  // last.
  bool refused = survivors_.size() > 0;
  if (refused || hanging) {
    const bool all_seen = tree_.find_alive(survivors_);
    refused = all_seen && survivors_.size() > 0 && survivors_.all_refused();
  }
  if (hanging || refused) {
    state_.survivors.copy(survivors_);
    state_.phase = CommandPhase::stuck;
  }
  pause_ = std::clamp<Nanos>(pause_ * 2, timing::kFirstKillPause, timing::kLongestKillPause);
  next_round_ = now + (hanging ? Nanos(timing::kStuckPause) : pause_);
  return false;
}

}  // namespace rlock::run
