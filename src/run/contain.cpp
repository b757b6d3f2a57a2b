// Runs in rlock, on the main thread; from enter_namespaces() on in the guard.

#include "run/contain.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

bool write_file(const char* path, const char* text, size_t size) noexcept {
  util::Fd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text, size) == static_cast<ssize_t>(size);
}

// Maps this one id to itself.
bool map_id(const char* path, unsigned id) noexcept {
  char text[32];
  char* at = std::to_chars(text, text + sizeof text, id).ptr;
  *at++ = ' ';
  at = std::to_chars(at, text + sizeof text, id).ptr;
  std::memcpy(at, " 1", 2);
  return write_file(path, text, static_cast<size_t>(at + 2 - text));
}

bool map_ids(uid_t user, gid_t group) noexcept {
  return write_file("/proc/self/setgroups", "deny", 4) && map_id("/proc/self/uid_map", user) &&
         map_id("/proc/self/gid_map", group);
}

bool make_mounts_slaves() noexcept {
  return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
}

// The same in a chroot, whose root folder is not a mount point: uses the namespace's own root.
// Binding the folder to itself would also make a mount outside.
bool make_mounts_slaves_in_chroot() noexcept {
  const util::Fd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const util::Fd folder(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const util::Fd self(util::open_pidfd(getpid()));
  return root && folder && self && setns(self.get(), CLONE_NEWNS) == 0 && make_mounts_slaves() &&
         fchdir(root.get()) == 0 && chroot(".") == 0 && fchdir(folder.get()) == 0;
}

// Mounts outside the namespace are visible inside, but not the other way round.
bool mount_proc() noexcept {
  const bool inside = make_mounts_slaves() || (errno == EINVAL && make_mounts_slaves_in_chroot());
  return inside && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

void enter_namespaces(Contain how, SharedState& state, int line, uid_t user, gid_t group) noexcept {
  if ((how == Contain::as_user && !map_ids(user, group)) || !mount_proc()) {
    state.start_error = errno;
    _exit(0);
  }
  send(line, "", 1, MSG_NOSIGNAL);
}

bool may_administer() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &head, sets) == 0 && (sets[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

// The step that the kernel refused, which decides what to allow in a systemd unit.
enum class At { namespaces, mounts };

std::string advice(Contain how, At at, bool denied) {
  const bool lacks_right = how == Contain::with_rights && !may_administer();
  if (denied && !lacks_right && util::has_syscall_filter()) {
    return util::format("a seccomp filter may forbid it: in a systemd unit, {}, or ",
                        at == At::mounts          ? "allow @mount by SystemCallFilter="
                        : how == Contain::as_user ? "write RestrictNamespaces=pid mnt user"
                                                  : "write RestrictNamespaces=pid mnt");
  }
  if (lacks_right) {
    return util::format("it needs CAP_SYS_ADMIN: {}, {}or ",
                        geteuid() == 0 ? "give the container this capability" : "run rlock as root",
                        try_to_contain(Contain::as_user)
                            ? "use --contain=user, in which the files of other users seem to "
                              "belong to nobody, "
                            : "");
  }
  return denied && how == Contain::as_user ? "allow users to make user namespaces, or " : "";
}

Error refusal(Contain how, At at, bool denied, std::string_view why) {
  return {ErrorKind::system,
          util::format("cannot contain the command: the kernel refuses a pid namespace with a "
                       "/proc of its own{}: {}; {}leave out --contain",
                       how == Contain::as_user ? " in a user namespace" : "", why,
                       advice(how, at, denied))};
}

}  // namespace

pid_t fork_contained(Contain how, SharedState& state, int line) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | SIGCHLD |
                              (how == Contain::as_user ? unsigned{CLONE_NEWUSER} : 0);
  // A seccomp filter cannot see the flags of clone3(2), and therefore has to refuse it.
#ifdef __s390__
  const auto pid = static_cast<pid_t>(syscall(SYS_clone, 0, flags, 0, 0, 0));
#else
  const auto pid = static_cast<pid_t>(syscall(SYS_clone, flags, 0, 0, 0, 0));
#endif
  if (pid == 0) enter_namespaces(how, state, line, user, group);
  return pid;
}

Error cannot_contain(Contain how) {
  const int error = errno;
  return refusal(how, At::namespaces, error == EPERM || error == ENOSYS, std::strerror(error));
}

Status await_contained(Contain how, pid_t pid, int line, SharedState& state) {
  char ready;
  ssize_t got = 0;
  while ((got = recv(line, &ready, 1, 0)) < 0 && errno == EINTR) continue;
  if (got == 1) return Done{};
  siginfo_t end{};
  while (waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    continue;
  }
  const int error = state.start_error.exchange(0);
  if (error != 0) {
    return refusal(how, At::mounts, error == EPERM || error == ENOSYS, std::strerror(error));
  }
  const int signal = end.si_code == CLD_EXITED ? 0 : end.si_status;
  return refusal(how, At::mounts, signal == SIGSYS,
                 signal == 0 ? "the guard has exited" : util::killed_by(signal));
}

Status try_to_contain(Contain how) {
  TRY(auto state, map_shared_state());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return util::system_error("cannot start the guard: socketpair");
  }
  util::Fd line(ends[0]);
  util::Fd theirs(ends[1]);
  util::SignalBlock all;
  const pid_t pid = fork_contained(how, *state, theirs.get());
  if (pid == 0) _exit(0);
  if (pid < 0) return cannot_contain(how);
  theirs.reset();
  Status contained = await_contained(how, pid, line.get(), *state);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return contained;
}

}  // namespace rlock::run
