#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "redis/net/server.hpp"
#include "redis/net/socket.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

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

  // Whether a byte has come from the peer, those of a TLS handshake included.
  virtual bool has_received() const = 0;

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
