#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "redis/net/openssl.hpp"
#include "redis/net/stream.hpp"
#include "redis/net/tls_error.hpp"

namespace rlock::redis {

struct FreeSsl {
  const OpenSsl* ssl;
  void operator()(SSL* session) const noexcept { ssl->SSL_free(session); }
};
using SslPtr = std::unique_ptr<SSL, FreeSsl>;

// Connects OpenSSL to our sockets: its own BIO for sockets would raise SIGPIPE.
class WireMethod {
 public:
  explicit WireMethod(const OpenSsl& ssl);
  BIO_METHOD* get() const { return method_.get(); }

 private:
  struct Free {
    const OpenSsl* ssl;
    void operator()(BIO_METHOD* method) const noexcept { ssl->BIO_meth_free(method); }
  };
  std::unique_ptr<BIO_METHOD, Free> method_;
};

// One TLS session over one socket. The handshake is part of the first writes and reads.
class TlsStream final : public Stream {
 public:
  // `ssl` and `method` must outlive it.
  TlsStream(const OpenSsl& ssl, SslPtr session, const WireMethod& method, util::Fd fd,
            TlsPeer peer);
  // OpenSSL holds its address.
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Io write_some(std::string_view& bytes) override;
  Io read_some(char* buffer, size_t size, size_t& got) override;
  bool is_quiet() override;
  pollfd wants(Sending sending) const override;
  bool has_received() const override { return has_received_; }
  const char* timeout_reason() const override;
  std::optional<std::chrono::system_clock::time_point> certificate_end() const override;
  Error error() const override;

 private:
  friend class WireMethod;
  static int wire_write(BIO* bio, const char* bytes, int size);
  static int wire_read(BIO* bio, char* buffer, int size);
  static long wire_ctrl(BIO* bio, int command, long number, void* pointer);
  int waiting(BIO* bio, int direction) const;

  Io to_io(int result, short& awaited);
  Io failed(Error why);

  const OpenSsl& ssl_;
  util::Fd fd_;
  TlsPeer peer_;
  SslPtr session_;
  Io last_io_ = Io::done;  // of the socket
  int error_ = 0;          // its errno
  bool has_received_ = false;
  bool broken_ = false;  // TLS itself has failed: the session is of no further use
  short write_awaits_ = POLLOUT;
  short read_awaits_ = POLLIN;
  std::optional<Error> tls_error_;
};

}  // namespace rlock::redis
