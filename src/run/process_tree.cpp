// Runs in the guard, or in rlock on the main thread once the guard is dead.

#include "run/process_tree.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "lock/timing.hpp"

namespace rlock::run {
namespace {

// How many children to handle before the clock is read again.
constexpr size_t kBatch = 64;
// How many dead children to reap before the clock is read again.
constexpr size_t kReaps = 64;
// The limit of a pass, because the list may grow as fast as it is read. It is not a time limit,
// because the guard may have to wait for the processor, and must still reach the last processes in
// the list.
constexpr size_t kMostListed = 65'536;
// With so few children, checking each of them costs almost nothing.
constexpr size_t kFew = 256;
// After this number of rounds without a death, all processes that can die are dead.
constexpr unsigned kIdleRounds = 8;

uid_t user_of(int folder) noexcept {
  struct stat info {};
  return folder >= 0 && fstat(folder, &info) == 0 ? info.st_uid : static_cast<uid_t>(-1);
}

// A process that has no children, alive or dead, has no descendants.
bool has_children() noexcept {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, kDeadChildren) == 0 || errno != ECHILD;
}

// Visits the children of another process, each of whose threads has its own list.
template <class Visit>
void for_each_below(ProcessTree::Listing listing, int folder, pid_t pid,
                    const util::ProcessStat& stat, Visit visit) noexcept {
  if (listing == ProcessTree::Listing::scan) {
    util::for_each_number_in("/proc", [&](pid_t other) {
      auto one = util::read_stat(other);
      return !one || one->parent != pid || visit(other);
    });
    return;
  }
  util::Fd threads(openat(folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!threads || stat.threads == 0) return;
  util::for_each_number_in(threads.get(), [&](pid_t thread) {
    util::Fd list(util::open_children(threads.get(), thread));
    if (list) util::for_each_child_in(list.get(), visit);
    return true;
  });
}

}  // namespace

OlderChildren OlderChildren::list() {
  using Listing = ProcessTree::Listing;
  OlderChildren older;
  if (!has_children() || !util::proc_is_ours()) return older;
  const pid_t parent = getpid();
  std::vector<pid_t> found;
  auto add = [&](pid_t pid) {
    found.push_back(pid);
    return true;
  };
  auto add_child = [&](pid_t pid) {
    const auto stat = util::read_stat(pid);
    if (!stat || stat->parent != parent) return true;
    older.born_.emplace(pid, stat->born);
    return add(pid);
  };
  const util::Fd children(util::open_children_of(parent));
  if (children) {
    util::for_each_child_in(children.get(), add_child);
  } else {
    util::for_each_number_in("/proc", add_child);
  }
  const Listing listing = children ? Listing::children : Listing::scan;
  for (size_t at = 0; at < found.size(); ++at) {
    const util::Fd folder(util::open_process(found[at]));
    const auto stat = folder ? util::read_stat_in(folder.get()) : std::nullopt;
    if (!stat) continue;
    older.sessions_.insert(stat->session);
    for_each_below(listing, folder.get(), found[at], *stat, add);
  }
  return older;
}

bool OlderChildren::contains(pid_t pid) const noexcept {
  const auto known = born_.find(pid);
  if (known == born_.end()) return false;
  const auto stat = util::read_stat(pid);
  return !stat || stat->born == known->second;
}

bool ProcessTree::is_exempt(pid_t pid) const noexcept {
  return state_.exempt.contains(pid) || (older_ != nullptr && older_->contains(pid));
}

void ProcessTree::open(Listing listing) noexcept {
  if (opened_) return;
  self_ = util::own_number_in_proc();
  numbers_ours_ = self_ == getpid();
  if (self_ > 0 && listing == Listing::children) {
    children_.reset(::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC));
  }
  listing_ = children_ ? Listing::children : Listing::scan;
  // Refused for now; the next call tries again.
  opened_ = self_ > 0 && (children_ || listing == Listing::scan || errno == ENOENT);
}

template <class Visit>
void ProcessTree::for_each_child(Visit visit) noexcept {
  open();
  auto unless_excluded = [&](pid_t pid) { return is_exempt(pid) || visit(pid); };
  if (listing_ == Listing::children)
    return util::for_each_child_in(children_.get(), unless_excluded);
  if (self_ <= 0) return;
  util::for_each_number_in("/proc", [&](pid_t pid) {
    auto stat = util::read_stat(pid);
    return !stat || stat->parent != self_ || unless_excluded(pid);
  });
}

bool ProcessTree::enqueue(const QueuedProcess& process) noexcept {
  if (queued_ == queue_.size()) {
    QueuedProcess* larger = queue_.map_larger();
    if (larger == nullptr) return false;
    std::copy_n(queue_.begin(), queued_, larger);
    queue_.adopt(larger);
  }
  if (!is_exempt(process.pid) && seen_.add(process.pid)) queue_.begin()[queued_++] = process;
  return true;
}

// Visits breadth first, and repeats until no child is new, because a process that lost its parent
// before that parent's children were listed has become a child of this process. Returns false if
// time or room did not suffice.
template <class Visit>
bool ProcessTree::walk(TimePoint until, Visit visit) noexcept {
  seen_.clear();
  queued_ = 0;
  bool room = true;
  auto enqueue_children = [&] {
    for_each_child([&](pid_t pid) { return room = enqueue({pid, self_, 0}); });
  };
  enqueue_children();
  for (size_t at = 0; at < queued_; ++at) {
    if (BootClock::now() >= until) return false;
    const auto [pid, parent, parents_depth] = queue_.begin()[at];
    util::Fd folder(util::open_process(pid));
    auto stat = folder ? util::read_stat_in(folder.get()) : std::nullopt;
    const bool child = (stat ? stat->parent : parent) == self_;
    if (child || (stat && stat->parent == parent)) {
      const unsigned depth = stat && stat->before_exec() ? parents_depth + 1 : 0;
      visit(Process{pid, child, folder.get(), stat ? &*stat : nullptr, depth});
      auto enqueue_below = [&, above = pid](pid_t one) {
        return room = enqueue({one, above, depth});
      };
      if (stat) for_each_below(listing_, folder.get(), pid, *stat, enqueue_below);
    }
    if (at + 1 == queued_) enqueue_children();
  }
  return room;
}

// Returns 0 or errno. A child keeps its pid until this process reaps it; the open folder identifies
// any other process.
int ProcessTree::send(const Process& process, int signal) const noexcept {
  if (process.child && numbers_ours_) return kill(process.pid, signal) == 0 ? 0 : errno;
  if (process.folder < 0) return ESRCH;
  if (syscall(SYS_pidfd_send_signal, process.folder, signal, nullptr, 0) == 0) return 0;
  // On Linux before 5.1, or under a filter that does not know the call, uses the pid, which was
  // right a moment ago.
  if (errno == ESRCH || !numbers_ours_) return errno;
  return kill(process.pid, signal) == 0 ? 0 : errno;
}

void ProcessTree::note(const Process& process, int error, Survivors& survivors) const noexcept {
  if (error == ESRCH || (process.stat != nullptr && !process.stat->alive())) return;
  survivors.add({process.pid, user_of(process.folder), error});
}

bool ProcessTree::made_by_tree(const util::ProcessStat& stat) const noexcept {
  if (!numbers_ours_ || stat.group <= 1) return false;
  if (grouping_ == Grouping::own && stat.group == group_) return true;
  return stat.session != session_ && (older_ == nullptr || !older_->were_in(stat.session));
}

// Kills a group with one call, so that no fork escapes. Not after a hangup that spared a process,
// because that one may be in the group.
void ProcessTree::kill_group_of(const util::ProcessStat& stat) noexcept {
  if (state_.exempted.size() > 0 || !made_by_tree(stat)) return;
  if (groups_.add(stat.group)) kill(-stat.group, SIGKILL);
}

// Kills the processes that can be found without reading /proc.
void ProcessTree::kill_known() noexcept {
  if (command_ <= 1) return;
  if (grouping_ == Grouping::own) kill(-command_, SIGKILL);
  kill(command_, SIGKILL);
}

void ProcessTree::kill_with_group(pid_t pid, Survivors& survivors) noexcept {
  util::Fd folder(util::open_process(pid));
  auto stat = folder ? util::read_stat_in(folder.get()) : std::nullopt;
  if (stat && stat->parent == self_) kill_group_of(*stat);
  const Process process{pid, true, folder.get(), stat ? &*stat : nullptr, 0};
  if (int error = send(process, SIGKILL); error != 0) note(process, error, survivors);
}

// Makes one pass. Returns true if there was a child that the previous pass did not meet. A pass
// only kills, because reading /proc takes as long as many kills, and the end of the list would keep
// running meanwhile. Then it kills the groups of the youngest new children, because processes that
// fork without pause are among them.
bool ProcessTree::kill_children(Survivors& survivors) noexcept {
  PidSet& before = listed_[passes_++ % 2];
  PidSet& listed = listed_[passes_ % 2];
  listed.clear();
  groups_.clear();
  listed_count_ = 0;
  std::array<pid_t, kBatch> youngest;
  size_t fresh = 0;
  for_each_child([&](pid_t pid) {
    const bool is_new = !before.contains(pid);
    listed.add(pid);
    if (is_new) youngest[fresh++ % kBatch] = pid;
    const bool reached = numbers_ours_ && (kill(pid, SIGKILL) == 0 || errno != EPERM);
    if (!reached) kill_with_group(pid, survivors);
    if (++listed_count_ % kBatch == 0) ++state_.progress;
    return listed_count_ < kMostListed;
  });
  const size_t looks = numbers_ours_ ? std::min(fresh, kBatch) : 0;
  for (size_t at = 0; at < looks; ++at) kill_with_group(youngest[at], survivors);
  return fresh > 0;
}

void ProcessTree::kill_deeper(TimePoint until, Survivors& survivors) noexcept {
  walk(until, [&](const Process& process) {
    ++state_.progress;
    if (process.child || process.stat == nullptr) return;
    int error = send(process, SIGKILL);
    kill_group_of(*process.stat);
    if (error != 0) note(process, error, survivors);
  });
}

// Records how the command exited, before it is reaped: only then it is visible whether the command
// got through its exec.
void ProcessTree::record_end(const siginfo_t& info) noexcept {
  const auto stat = util::proc_is_ours() ? util::read_stat(command_) : std::nullopt;
  if (info.si_code != CLD_EXITED && stat && stat->before_exec()) state_.ran = false;
  state_.ended_first = !begun_;
  state_.end_status = info.si_status;
  state_.set_ended_at(BootClock::now());
  state_.end_code = info.si_code;
  command_ = 0;
}

bool ProcessTree::reap_one(idtype_t type, pid_t id) noexcept {
  constexpr int kReap = kDeadChildren & ~WNOWAIT;
  const bool look_first = command_ > 0;
  siginfo_t info{};
  waitid(type, static_cast<id_t>(id), &info, look_first ? kDeadChildren : kReap);
  if (info.si_pid == 0) return false;
  if (info.si_pid == command_) record_end(info);
  if (look_first) waitid(P_PID, static_cast<id_t>(info.si_pid), &info, kReap);
  return true;
}

size_t ProcessTree::reap() noexcept {
  ++state_.progress;
  size_t count = 0;
  while (count < kReaps && reap_one(P_ALL, 0)) ++count;
  return count;
}

// Each dead child that is not reaped makes the next pass several times as expensive.
void ProcessTree::reap_some() noexcept {
  const TimePoint until = BootClock::now() + timing::kReapTime;
  while (reap() > 0) {
    progressed_ = true;
    if (BootClock::now() >= until) return;
  }
}

// To find one dead child among many, the kernel has to check all of them.
void ProcessTree::reap_listed() noexcept {
  if (listed_count_ <= kFew) return reap_some();
  const TimePoint until = BootClock::now() + timing::kLongReapTime;
  size_t count = 0;
  listed_[passes_ % 2].for_each([&](pid_t pid) {
    progressed_ = reap_one(P_PID, pid) || progressed_;
    if (++count % kBatch != 0) return true;
    ++state_.progress;
    return BootClock::now() < until;
  });
}

bool ProcessTree::end(TimePoint until, Survivors& survivors) noexcept {
  open();
  begun_ = true;
  kill_known();
  survivors.clear();
  progressed_ = false;
  if (!has_children()) return true;  // the usual case after a command
  if (passes_ == 0) {
    for (PidSet& set : listed_) set.clear();
  }
  bool fresh = true;
  while (fresh && BootClock::now() < until) {
    fresh = kill_children(survivors);
    reap_listed();
    progressed_ = progressed_ || fresh;
  }
  if (empty()) return true;
  idle_rounds_ = progressed_ ? 0 : idle_rounds_ + 1;
  // Dying processes need the processor more. When no more processes die, the walk reaches all of
  // them.
  const bool idle = idle_rounds_ >= kIdleRounds;
  if (idle) until = std::max(until, BootClock::now() + timing::kDeepWalk);
  if (!idle && listed_count_ > kFew) return false;
  kill_deeper(until, survivors);
  reap_some();
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
  // Reaches the command itself, whatever /proc shows.
  auto reached = [&](pid_t group) {
    // 0 is also the number of each group in another namespace.
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

void ProcessTree::find_leftovers(Survivors& survivors) noexcept {
  survivors.clear();
  walk(BootClock::now() + timing::kWalkTime,
       [&](const Process& process) { note(process, Survivor::kExempted, survivors); });
}

bool ProcessTree::find_alive(Survivors& survivors) noexcept {
  survivors.clear();
  return walk(BootClock::now() + timing::kWalkTime,
              [&](const Process& process) { note(process, send(process, 0), survivors); });
}

void ProcessTree::spare_nohup(TimePoint until) noexcept {
  open();
  walk(until, [&](const Process& process) {
    if (process.stat == nullptr || !process.stat->alive()) return;
    if (!util::ignores_in(process.folder, SIGHUP)) return;
    if (!state_.exempt.add(process.pid)) return;
    state_.exempted.add({process.pid, user_of(process.folder), Survivor::kExempted});
  });
}

std::optional<Nanos> ProcessTree::dying_time(TimePoint until) noexcept {
  open();
  // Without lists of children a walk takes too long, however few there are.
  if (listing_ == Listing::scan) return Nanos(0);
  Nanos time{0};
  const auto add = [&](const Process& process) {
    time += timing::kDeathTime + process.copy_depth * timing::kCopyDeathTime;
  };
  if (!walk(until, add)) return std::nullopt;
  return time;
}

bool ProcessTree::empty() noexcept {
  if (!has_children()) return true;
  open();
  if (self_ <= 0) return false;
  bool found = false;
  for_each_child([&](pid_t pid) {
    // A tracer may prevent a dead process from being reaped.
    auto stat = util::read_stat(pid);
    found = !stat || stat->alive();
    return !found;
  });
  return !found;
}

void TreeEnding::begin(TimePoint now) noexcept {
  if (under_way_) return;
  under_way_ = true;
  progressed_at_ = next_round_ = now;
}

bool TreeEnding::round(TimePoint now) noexcept {
  if (now < next_round_) return false;
  const TimePoint started_at = now;
  if (tree_.end(now + timing::kKillRound, survivors_)) return true;
  now = BootClock::now();
  if (tree_.progressed()) progressed_at_ = now;
  const bool hanging = now - progressed_at_ >= timing::kDyingTime;
  // While one process cannot be stopped, others may still be dying: it is the last process only
  // when they are gone.
  bool refused = survivors_.size() > 0;
  if (refused || hanging) {
    const bool all_seen = tree_.find_alive(survivors_);
    refused = all_seen && survivors_.size() > 0 && survivors_.all_refused();
  }
  if (hanging || refused) {
    state_.survivors.copy(survivors_);
    state_.phase = CommandPhase::stuck;
  } else if (state_.phase == CommandPhase::stuck) {
    state_.phase = CommandPhase::running;
  }
  pause_ = std::clamp<Nanos>(pause_ * 2, timing::kFirstKillPause, timing::kLongestKillPause);
  // Leaves the dying processes at least as much processor time as this process uses.
  next_round_ = now + (hanging ? Nanos(timing::kStuckPause) : std::max(pause_, now - started_at));
  return false;
}

}  // namespace rlock::run
