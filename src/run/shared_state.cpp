// Memory that both threads of rlock and the guard share.

#include "run/shared_state.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

std::string user_name(uid_t user) {
  if (user == static_cast<uid_t>(-1)) return "another user";
  const std::string name = util::name_in_passwd(user);
  return name.empty() ? "uid " + std::to_string(user) : name;
}

}  // namespace

std::vector<std::string> describe(const Survivors& survivors) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < survivors.size(); ++i) {
    const Survivor one = survivors[i];
    const std::string name = util::printable(util::read_name(one.pid));
    const char* why = one.error == 0 ? "it hangs in the kernel" : std::strerror(one.error);
    lines.push_back(util::format(
        "process {}{} of {}{}", one.pid, name.empty() ? "" : util::format(" ({})", name),
        user_name(one.user), one.error < 0 ? "" : util::format(" ({})", why)));
  }
  if (lines.empty()) lines.push_back("processes that /proc does not show");
  return lines;
}

std::vector<std::string> describe_alive(const Survivors& processes) {
  Survivors alive;
  for (size_t i = 0; i < processes.size(); ++i) {
    const auto stat = util::read_stat(processes[i].pid);
    if (stat && stat->alive()) alive.add(processes[i]);
  }
  return alive.size() > 0 ? describe(alive) : std::vector<std::string>();
}

std::string summarize(const Survivors& survivors) {
  if (survivors.size() == 0) return "cannot stop processes that /proc does not show";
  const Survivor first = survivors[0];
  const size_t others = survivors.size() - 1;
  return util::format("cannot stop pid {} of {}{}", first.pid, user_name(first.user),
                      others > 0 ? util::format(" and {} more", others) : "");
}

bool Exclusions::add(pid_t pid) noexcept {
  if (contains(pid)) return true;
  size_t at = 0;
  // The slot of a process that has exited is free, if /proc can show that.
  while (at < count_ && (!util::proc_is_ours() || util::read_stat(all_[at].pid))) ++at;
  if (at == all_.size()) return false;
  auto stat = util::read_stat(pid);
  all_[at].pid = pid;
  all_[at].born = stat ? stat->born : 0;
  count_ = std::max(count_.load(), at + 1);
  return true;
}

bool Exclusions::contains(pid_t pid) const noexcept {
  for (size_t i = 0; i < count_; ++i) {
    if (all_[i].pid != pid) continue;
    auto stat = util::read_stat(pid);
    if (!stat || all_[i].born == 0 || stat->born == all_[i].born) return true;
  }
  return false;
}

int SharedState::killed_by() const noexcept {
  if (end_code == 0) return 0;
  if (end_code != CLD_EXITED) return end_status == SIGPIPE ? 0 : end_status.load();
  // The OOM killer usually kills the child of a shell, or of a Python script, which exits with the
  // negative number of the signal. Programs do not use these codes themselves.
  for (int number : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS}) {
    if (end_status == 128 + number || end_status == 256 - number) return number;
  }
  return 0;
}

void UnmapState::operator()(SharedState* state) const noexcept {
  munmap(state, sizeof(SharedState));
}

Result<SharedStatePtr> map_shared_state() {
  void* memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return util::system_error("cannot share memory with the guard");
  }
  return SharedStatePtr(new (memory) SharedState());
}

}  // namespace rlock::run
