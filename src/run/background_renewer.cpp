// BackgroundRenewer runs in `rlock acquire`; everything else runs in the process that it leaves
// behind.

#include "run/background_renewer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <type_traits>

#include "lock/timing.hpp"
#include "run/renewer.hpp"
#include "run/requests.hpp"
#include "util/boot_timer.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

// The lock that the renewer has to renew, as it comes over the socket.
struct HandOff {
  lock::Token token{};
  uint64_t slot = 0;
  TimePoint granted_at{};
  lock::GrantReach reach = lock::GrantReach::everywhere;
  std::array<char, 32> owner{};  // the digits of the owner id
};
static_assert(std::is_trivially_copyable_v<HandOff>);

// The task of a background renewer, and the means for it.
struct BackgroundRenewerTask {
  const lock::AcquireCall& claim;
  const util::ProcessHandle& watched;
  const std::optional<util::ProcessHandle> parent;  // of the watched process
  const lock::MakeServer& make_server;
  Signals& signals;
  const DescribeNotice& describe;
};

using namespace std::chrono_literals;

// Whether this user may write to the descriptor behind `link`: the link belongs to the process's
// user, and has the permissions of the descriptor's mode.
bool ours_to_write(const char* link) noexcept {
  struct stat info {};
  return lstat(link, &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & S_IWUSR) != 0;
}

bool takes_lines(int fd) noexcept {
  struct stat info {};
  return fstat(fd, &info) == 0 &&
         (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

// A copy of stderr if it is a regular file, otherwise empty.
util::Fd copy_of_stderr_file() noexcept {
  const bool file = util::is_regular_file(STDERR_FILENO);
  return util::Fd(file ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0) : -1);
}

bool is_same_file(const char* path, int fd) noexcept {
  struct stat one {
  }, other{};
  return stat(path, &one) == 0 && fstat(fd, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

// Writes a line to the stderr of another process of this user, if that is still open: as much as a
// file, a pipe or a terminal accepts immediately. Opens it only for this line, because a descriptor
// that stays open would delay every process that waits for the end of that pipe. Opens nothing for
// another user's process, because that user chose the file. `inherited`: the stderr of this
// process's caller, if it is a file; where it is the same file, it is used, because opened anew a
// file would have a second position, and the process would overwrite the line.
void write_to_stderr_of(pid_t pid, std::string_view line, const util::Fd& inherited) noexcept {
  if (!util::proc_is_ours()) return;
  const std::string link = util::format("/proc/{}/fd/2", pid);
  if (!ours_to_write(link.c_str())) return;
  const bool shared = inherited && is_same_file(link.c_str(), inherited.get());
  const util::Fd opened(
      shared ? -1 : open(link.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  const int out = shared ? inherited.get() : opened.get();
  if (!takes_lines(out)) return;
  [[maybe_unused]] ssize_t written = write(out, line.data(), line.size());
}

enum class RenewalEnd { release, process_ended, lost };

class BackgroundRenewerProcess {
 public:
  BackgroundRenewerProcess(const BackgroundRenewerTask& task, util::Fd line, util::Fd stderr_file)
      : task_(task),
        claim_(task.claim),
        line_(std::move(line)),
        stderr_file_(std::move(stderr_file)) {}

  void run() {
    HandOff hand_off;
    if (!receive_hand_off(hand_off)) return;
    const auto settings =
        lease_settings(claim_.ttl, claim_.replicas, Millis(0), lock::Watchdog::renew);
    survives_ = lock::survived_outage(settings);
    SharedLease lease(settings, hand_off.granted_at, nullptr);
    Observer nobody;
    const lock::HeldLock held_lock{.owner = claim_.owner,
                                   .token = hand_off.token,
                                   .limit = claim_.limit,
                                   .min_hold = claim_.min_hold,
                                   .slot = hand_off.slot};
    auto renewer = Renewer::make(
        claim_, held_lock,
        {task_.make_server, nobody, lease, [&hand_off]() -> lock::InFlight<lock::GrantReach> {
           if (hand_off.reach == lock::GrantReach::everywhere) return nullptr;
           return std::make_unique<lock::ReadyReply<lock::GrantReach>>(hand_off.reach);
         }});
    if (!renewer || !(*renewer)->start()) return;
    if (send(line_.get(), "r", 1, MSG_NOSIGNAL) != 1) kept_ = false;
    RenewalEnd end = watch(lease, **renewer);
    (*renewer)->stop();  // before the release: a renewal in flight would restore the lock
    if (end == RenewalEnd::lost) return;
    const TimePoint deadline = lease.view().deadline;
    std::optional<EndedEarly> early;
    if (end == RenewalEnd::process_ended) early = early_end(hand_off.granted_at, deadline);
    release(deadline);  // before the notice, because the disk of that stderr may hang
    if (early) write_to_stderr_of(task_.parent->pid(), task_.describe(*early), stderr_file_);
  }

 private:
  // Returns false if nothing was acquired, or if this process or the watched process has exited or
  // is about to exit.
  bool receive_hand_off(HandOff& hand_off) {
    std::array<pollfd, 3> fds{{{task_.signals.fd(), POLLIN, 0},
                               {task_.watched.fd(), POLLIN, 0},
                               {line_.get(), POLLIN, 0}}};
    do {
      TimePoint now = BootClock::now();
      util::poll_until(fds, now + look_after());
      if (fds[0].revents != 0 || task_.watched.ended()) return false;
    } while (fds[2].revents == 0);
    if (recv(line_.get(), &hand_off, sizeof hand_off, 0) != static_cast<ssize_t>(sizeof hand_off)) {
      return false;
    }
    auto owner = lock::Owner::parse({hand_off.owner.data(), hand_off.owner.size()});
    if (!owner) return false;
    claim_.owner = *std::move(owner);
    return true;
  }

  RenewalEnd watch(const SharedLease& lease, const Renewer& renewer) {
    while (true) {
      SharedLease::View view = lease.view();
      TimePoint now = BootClock::now();
      if (view.lost && !broken_ && !handle_loss(*view.lost, view.deadline - now))
        return RenewalEnd::lost;
      if (now >= view.deadline) {
        LeaseEnd end{std::nullopt, view.last_error};
        end.survives = survives_;
        if (!broken_) report(end);
        return RenewalEnd::lost;
      }
      if (!kept_) return RenewalEnd::release;
      if (task_.watched.ended()) return broken_ ? RenewalEnd::release : RenewalEnd::process_ended;
      await_change(renewer, std::min(view.deadline, now + look_after()));
    }
  }

  // A broken lock stays held until the holder confirms, unless the operator freed it immediately.
  // rlock stops no steps, so the next holder waits for their process, or for the lease.
  bool handle_loss(const lock::Lost& lost, Nanos left) {
    if (lost.how != lock::LostHow::forced) {
      if (lost.how != lock::LostHow::released) report(LeaseEnd{lost, {}});
      return false;
    }
    broken_ = true;
    const std::optional<bool> counts = still_counts();
    std::optional<Millis> remaining;
    if (counts == true) remaining = std::chrono::duration_cast<Millis>(left);
    report(Broken{lost, remaining});
    return counts != false;
  }

  // Whether the server still counts the lock, which an operator broke, as held by this owner,
  // because the break is not confirmed. nullopt: no server answered.
  std::optional<bool> still_counts() const {
    auto inspector = task_.make_server();
    lock::SystemPoller poller;
    auto seen = lock::finish(poller, inspector->inspect({claim_.name}),
                             BootClock::now() + timing::kShortestRequest, inspector->server());
    if (!seen) return std::nullopt;
    return lock::find_holder(seen->holders, claim_.owner.text()) != nullptr;
  }

  void report(const Notice& notice) const {
    if (task_.watched.ended()) return;
    write_to_stderr_of(task_.watched.pid(), task_.describe(notice), stderr_file_);
  }

  // If each step is a process of its own, the lock would be lost silently. A process that lived for
  // longer has done its work. Returns nullopt as well if the lock was released just before the
  // process exited; the server knows that.
  std::optional<EndedEarly> early_end(TimePoint granted_at, TimePoint deadline) const {
    constexpr Millis kTooShortForSteps{2000};
    const TimePoint now = BootClock::now();
    const bool worked = now >= granted_at + kTooShortForSteps;
    if (worked || !task_.parent || task_.parent->ended()) return std::nullopt;
    auto store = task_.make_server();
    lock::SystemPoller poller;
    auto request = store->renew({claim_, lock::Entry::outer(), std::nullopt});
    auto reply = lock::finish(poller, std::move(request),
                              std::min(deadline, now + timing::kShortestRequest), store->server());
    if (!reply || !std::holds_alternative<lock::Renewal>(*reply)) return std::nullopt;
    return EndedEarly{std::chrono::duration_cast<Millis>(now - granted_at)};
  }

  Nanos look_after() const {
    return task_.watched.fd() < 0 ? Nanos(timing::kWatchLook) : Nanos(1h);
  }

  // A signal does not stop the renewer: a signal to all processes of a job reaches its steps too,
  // which may clean up for a while, and need the lock for that.
  void await_change(const Renewer& renewer, TimePoint until) {
    std::array<pollfd, 4> fds{{{task_.signals.fd(), POLLIN, 0},
                               {renewer.fd(), POLLIN, 0},
                               {task_.watched.fd(), POLLIN, 0},
                               {line_.get(), POLLIN, 0}}};
    if (broken_) fds[1].fd = -1;  // known already
    util::poll_until(fds, until);
    if (fds[3].revents != 0) read_caller();
    while (task_.signals.next_number() != 0) continue;
  }

  void read_caller() {
    char message = 0;
    kept_ = recv(line_.get(), &message, 1, 0) == 1;
    line_.reset();
  }

  // No caller waits for this, so it may take as long as the lease.
  void release(TimePoint deadline) const {
    auto store = task_.make_server();
    lock::ReleaseCall call{claim_.name, claim_.owner};
    call.replicas = claim_.replicas;
    [[maybe_unused]] auto released = release_until(
        *store, call, std::max(deadline, BootClock::now() + timing::kShortestRequest));
  }

  const BackgroundRenewerTask& task_;
  lock::AcquireCall claim_;  // with the owner under which the lock was granted
  util::Fd line_;
  const util::Fd stderr_file_;  // see write_to_stderr_of()
  bool kept_ = true;            // false once the caller is gone without keep()
  bool broken_ = false;         // by an operator
  Millis survives_{0};          // LeaseEnd::survives
};

// The background renewer after its fork. `line` brings a HandOff, which is answered with a byte
// once the renewals are running, and then another byte; if `line` ends before that byte, the
// renewer releases the lock. It exits without an answer if the watched process has exited. It may
// do anything but return, because it is forked from a process with one thread.
void background_renewer_process(const BackgroundRenewerTask& task, util::Fd line) noexcept {
  util::close_inherited_descriptors();
  util::ask_guards_for_exemption();  // an outer run may end before this process
  util::Fd stderr_file = copy_of_stderr_file();
  dup3(STDOUT_FILENO, STDERR_FILENO, O_CLOEXEC);  // /dev/null by now
  // Leaves the current folder, so that its file system can be unmounted. / always exists.
  [[maybe_unused]] int moved = chdir("/");
  BackgroundRenewerProcess(task, std::move(line), std::move(stderr_file)).run();
  _exit(0);
}

// Returns nullopt for a process that init has adopted, which has no parent to report to.
std::optional<util::ProcessHandle> parent_of(pid_t pid) {
  auto stat = util::proc_is_ours() ? util::read_stat(pid) : std::nullopt;
  if (!stat || stat->parent <= 1) return std::nullopt;
  auto parent = util::ProcessHandle::open(stat->parent);
  return parent ? std::optional(*std::move(parent)) : std::nullopt;
}

}  // namespace

Result<BackgroundRenewer> BackgroundRenewer::start(const lock::AcquireCall& claim,
                                                   util::ProcessHandle watched,
                                                   const lock::MakeServer& make_server,
                                                   Signals& signals,
                                                   const DescribeNotice& describe) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return util::system_error(
        "cannot start the background process that renews the lock: socketpair");
  }
  util::Fd ours(ends[0]);
  util::Fd theirs(ends[1]);
  const BackgroundRenewerTask task{claim,       watched, parent_of(watched.pid()),
                                   make_server, signals, describe};
  const int error = util::run_apart([&] {
    ours.reset();  // otherwise this process would never see the renewer exit
    background_renewer_process(task, std::move(theirs));
  });
  if (error != 0) {
    return util::system_error("cannot start the background process that renews the lock: fork",
                              error);
  }
  return BackgroundRenewer(std::move(ours), std::move(watched));
}

Error BackgroundRenewer::gone() const {
  if (watched_.ended()) {
    return {ErrorKind::busy,
            util::format("the lock was not acquired, because process {} (--renew-while) has exited",
                         watched_.pid())};
  }
  return {ErrorKind::system,
          "the background process that renews the lock did not start, or was killed"};
}

Status BackgroundRenewer::hand_off(const lock::HeldLock& held_lock, lock::GrantReach reach) {
  HandOff all{held_lock.token, held_lock.slot, held_lock.granted_at, reach, {}};
  const lock::Owner& owner = held_lock.owner;
  std::copy_n(owner.text().begin(), std::min(owner.text().size(), all.owner.size()),
              all.owner.begin());
  if (send(line_.get(), &all, sizeof all, MSG_NOSIGNAL) < 0) return gone();
  pollfd fd{line_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&fd, 1, static_cast<int>(timing::kRenewerStart.count()))) < 0 &&
         errno == EINTR)
    continue;
  char message = 0;
  if (ready <= 0 || recv(line_.get(), &message, 1, 0) != 1) return gone();
  return Done{};
}

void BackgroundRenewer::keep() {
  // If the renewer has exited already, an operator or the caller stopped it, and there is nothing
  // left to keep.
  [[maybe_unused]] ssize_t sent = send(line_.get(), "k", 1, MSG_NOSIGNAL);
}

}  // namespace rlock::run
