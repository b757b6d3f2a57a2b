#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redis/net/server.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// The address of a TCP or unix socket.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// nullopt: the path is too long for a socket's name (107 bytes).
std::optional<Address> unix_address(const std::string& path);

enum class ConnectState {
  pending,  // the socket becomes writable when it has succeeded or failed
  connected,
  full,  // the backlog of a unix socket is full: nothing to poll for, try again in a moment
  failed,
};

struct ConnectAttempt {
  ConnectState state = ConnectState::failed;
  util::Fd fd;    // of a pending or connected attempt: non-blocking, CLOEXEC, never 0-2
  int error = 0;  // errno of a failed one
};

ConnectAttempt start_connect(const Address& address);

// The result of a pending attempt once poll() has reported its descriptor: 0 or an errno.
int connect_error(const util::Fd& fd);

enum class Io {
  done,
  drained,  // read_some only: done, and nothing is left for now
  would_block,
  closed,
  failed,  // errno says why
};

// Writes what it can and removes that from the front of `bytes`; done when all is written. No
// SIGPIPE.
Io write_some(const util::Fd& fd, std::string_view& bytes);

// Reads once: done or drained with `got` bytes in `buffer`, closed at the end of file.
Io read_some(const util::Fd& fd, char* buffer, size_t size, size_t& got);

// Whether an idle connection can still be used: the peer has not closed it, no stray bytes wait.
bool is_quiet(const util::Fd& fd);

enum class Sending { done, pending };

// A connected socket, plain or with TLS. Never blocks.
class Stream {
 public:
  virtual ~Stream() = default;

  // As the functions of socket.hpp; error() describes a failure.
  virtual Io write_some(std::string_view& bytes) = 0;
  virtual Io read_some(char* buffer, size_t size, size_t& got) = 0;
  virtual bool is_quiet() = 0;

  // What to poll for, with or without bytes that write_some() has left unsent.
  virtual pollfd wants(Sending sending) const = 0;

  // What is missing from a peer that has not answered in time.
  virtual const char* timeout_reason() const = 0;

  // When the peer's certificate expires; nothing without TLS, and before the handshake.
  virtual std::optional<std::chrono::system_clock::time_point> certificate_end() const = 0;

  // Why the last call failed, without the name of the server. ErrorKind::denied: one side of TLS
  // does not trust the other.
  virtual Error error() const = 0;
};

// Plain, or with TLS where server.tls is set: then the handshake begins with the first write, and
// errors are those of Tls::wrap().
Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd);

}  // namespace rlock::redis
