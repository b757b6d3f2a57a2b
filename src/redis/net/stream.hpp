#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "redis/net/server.hpp"
#include "redis/net/socket.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class Sending { done, pending };

// A connected socket that carries bytes, as they are or under TLS. Never blocks.
class Stream {
 public:
  virtual ~Stream() = default;

  // As the functions of socket.hpp, but that a failure is told by trouble().
  virtual Io write_some(std::string_view& bytes) = 0;
  virtual Io read_some(char* buffer, size_t size, size_t& got) = 0;
  virtual bool is_quiet() = 0;

  // What to poll for, with or without bytes that write_some() has left over.
  virtual pollfd wants(Sending sending) const = 0;

  // Whether a byte has come from the peer; under TLS, of the handshake, too.
  virtual bool has_received() const = 0;

  // What a peer that has not answered in time did not do.
  virtual const char* timeout_reason() const = 0;

  // Why the last call failed: the reason alone. ErrorKind::denied: TLS does not trust the peer, or
  // the peer does not trust us.
  virtual Error error() const = 0;
};

// As server.tls wants it; a handshake goes out with the first write. ErrorKind::denied: as
// Tls::wrap() has it.
Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd);

}  // namespace rlock::redis
