#include "redis/net/socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "redis/net/tls.hpp"

namespace rlock::redis {
namespace {

constexpr int kKeepIdleSeconds = 15;
constexpr int kKeepEverySeconds = 5;
constexpr int kKeepProbes = 3;
// As long as the probes take together: unacknowledged bytes end the connection after that time,
// too.
constexpr int kUserTimeoutMs = (kKeepIdleSeconds + kKeepEverySeconds * kKeepProbes) * 1000;

void set(const util::Fd& fd, int level, int option, int value) {
  // A failure costs latency, never correctness: callers have deadlines of their own.
  setsockopt(fd.get(), level, option, &value, sizeof value);
}

void tune_tcp(const util::Fd& fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepEverySeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

// A caller may have started us with 0-2 closed: a socket there would catch what the command prints.
util::Fd open_socket(int family) {
  util::Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd || fd.get() > 2) return fd;
  return util::Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

std::optional<Address> unix_address(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof name.sun_path) return std::nullopt;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  Address address;
  std::memcpy(&address.storage, &name, sizeof name);
  address.length = sizeof name;
  return address;
}

ConnectAttempt start_connect(const Address& address) {
  ConnectAttempt attempt;
  attempt.fd = open_socket(address.storage.ss_family);
  if (!attempt.fd) {
    attempt.error = errno;
    return attempt;
  }
  if (address.storage.ss_family != AF_UNIX) tune_tcp(attempt.fd);
  const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (connect(attempt.fd.get(), name, address.length) == 0) {
    attempt.state = ConnectState::connected;
  } else if (errno == EINPROGRESS || errno == EINTR) {
    attempt.state = ConnectState::pending;
  } else if (would_block(errno)) {
    attempt.state = ConnectState::full;
  } else {
    attempt.error = errno;
  }
  return attempt;
}

int connect_error(const util::Fd& fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Io write_some(const util::Fd& fd, std::string_view& bytes) {
  while (!bytes.empty()) {
    ssize_t sent = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (would_block(errno)) {
      return Io::would_block;
    } else if (errno != EINTR) {
      return Io::failed;
    }
  }
  return Io::done;
}

Io read_some(const util::Fd& fd, char* buffer, size_t size, size_t& got) {
  while (true) {
    ssize_t count = recv(fd.get(), buffer, size, 0);
    if (count > 0) {
      got = static_cast<size_t>(count);
      return got == size ? Io::done : Io::drained;
    }
    if (count == 0) return Io::closed;
    if (would_block(errno)) return Io::would_block;
    if (errno != EINTR) return Io::failed;
  }
}

bool is_quiet(const util::Fd& fd) {
  char byte = 0;
  return recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && would_block(errno);
}

namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(util::Fd fd) : fd_(std::move(fd)) {}

  Io write_some(std::string_view& bytes) override {
    return note_errno(redis::write_some(fd_, bytes));
  }
  Io read_some(char* buffer, size_t size, size_t& got) override {
    return note_errno(redis::read_some(fd_, buffer, size, got));
  }
  bool is_quiet() override { return redis::is_quiet(fd_); }

  pollfd wants(Sending sending) const override {
    int events = sending == Sending::done ? POLLIN : POLLIN | POLLOUT;
    return {fd_.get(), static_cast<short>(events), 0};
  }

  const char* timeout_reason() const override { return "no answer"; }

  std::optional<std::chrono::system_clock::time_point> certificate_end() const override {
    return std::nullopt;
  }

  Error error() const override {
    return {ErrorKind::unavailable, std::strerror(error_), Retry::later};
  }

 private:
  Io note_errno(Io io) {
    if (io == Io::failed) error_ = errno;
    return io;
  }

  util::Fd fd_;
  int error_ = 0;
};

}  // namespace

Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd) {
  if (server.tls == nullptr) {
    return std::unique_ptr<Stream>(std::make_unique<PlainStream>(std::move(fd)));
  }
  return server.tls->wrap(std::move(fd), server.host);
}

}  // namespace rlock::redis
