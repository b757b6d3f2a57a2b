#include "util/guard_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "util/fd.hpp"

namespace rlock::util {
namespace {

constexpr char kPrefix[] = "rlock-guard-";
constexpr int kDeepest = 256;
constexpr int kRestarts = 8;
constexpr int kAnswerWithin = 1'000;  // ms

// snprintf is not async-signal-safe.
char* write_number(char* at, pid_t pid) noexcept {
  char digits[12];
  int count = 0;
  for (auto rest = static_cast<unsigned>(pid); count == 0 || rest > 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) *at++ = digits[--count];
  return at;
}

// A name of the abstract kind: no file is left behind. It begins with a zero byte.
struct GuardAddress {
  explicit GuardAddress(pid_t guard) noexcept {
    address.sun_family = AF_UNIX;
    char* at = address.sun_path + 1;
    std::memcpy(at, kPrefix, sizeof kPrefix - 1);
    at = write_number(at + sizeof kPrefix - 1, guard);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + (at - address.sun_path));
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length;
};

pid_t peer_of(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

// 0 where /proc does not show it.
pid_t parent_of(pid_t pid) noexcept {
  char path[32] = "/proc/";
  std::memcpy(write_number(path + 6, pid), "/stat", 6);
  Fd file(open(path, O_RDONLY | O_CLOEXEC));
  char line[512];
  ssize_t length = file ? read(file.get(), line, sizeof line) : 0;
  if (length <= 0) return 0;
  // After the name, which may itself hold brackets: ") STATE PARENT ".
  const auto* at = static_cast<const char*>(memrchr(line, ')', static_cast<size_t>(length)));
  pid_t parent = 0;
  for (at = at == nullptr ? line + length : at + 4; at < line + length && *at >= '0' && *at <= '9';
       ++at) {
    parent = parent * 10 + (*at - '0');
  }
  return parent;
}

void ask(pid_t guard) noexcept {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const GuardAddress address(guard);
  if (!socket || connect(socket.get(), address.get(), address.length) != 0) return;
  if (peer_of(socket.get()) != guard) return;  // somebody else took the name
  pollfd answer{socket.get(), POLLIN, 0};
  poll(&answer, 1, kAnswerWithin);
}

}  // namespace

int listen_as_guard() noexcept {
  Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const GuardAddress address(getpid());
  constexpr int kBacklog = 64;
  if (!listener || bind(listener.get(), address.get(), address.length) != 0) return -1;
  return listen(listener.get(), kBacklog) == 0 ? listener.release() : -1;
}

pid_t accept_exempt(int listener) noexcept {
  Fd asking(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!asking) return 0;
  const pid_t pid = peer_of(asking.get());
  send(asking.get(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return pid;
}

void ask_guards_for_exemption() noexcept {
  pid_t ancestor = getppid();
  int restarts = 0;
  for (int level = 0; level < kDeepest && ancestor > 1; ++level) {
    ask(ancestor);
    ancestor = parent_of(ancestor);
    // One in between has just ended: its children have another parent now. Or /proc does not show
    // it.
    if (ancestor == 0 && restarts++ < kRestarts) ancestor = getppid();
  }
}

}  // namespace rlock::util
