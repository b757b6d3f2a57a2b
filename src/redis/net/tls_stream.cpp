#include "redis/net/tls_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

namespace rlock::redis {
namespace {

// OpenSSL takes sizes as int.
int bounded(size_t size) {
  return static_cast<int>(std::min(size, size_t{INT_MAX}));
}

}  // namespace

WireMethod::WireMethod(const OpenSsl& ssl)
    : method_(ssl.BIO_meth_new(ssl.BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rlock"),
              Free{&ssl}) {
  if (method_ == nullptr) throw std::bad_alloc();
  ssl.BIO_meth_set_write(method_.get(), TlsStream::wire_write);
  ssl.BIO_meth_set_read(method_.get(), TlsStream::wire_read);
  ssl.BIO_meth_set_ctrl(method_.get(), TlsStream::wire_ctrl);
}

TlsStream::TlsStream(const OpenSsl& ssl, SslPtr session, const WireMethod& method, util::Fd fd,
                     TlsPeer peer)
    : ssl_(ssl), fd_(std::move(fd)), peer_(std::move(peer)), session_(std::move(session)) {
  BIO* bio = ssl_.BIO_new(method.get());
  if (bio == nullptr) throw std::bad_alloc();
  ssl_.BIO_set_data(bio, this);
  ssl_.BIO_set_init(bio, 1);
  ssl_.SSL_set_bio(session_.get(), bio, bio);  // frees it with the session
  ssl_.SSL_set_connect_state(session_.get());
}

// ---- between OpenSSL and the socket ----

namespace {

TlsStream& stream_of(BIO* bio) {
  return *static_cast<TlsStream*>((*openssl())->BIO_get_data(bio));
}

}  // namespace

int TlsStream::waiting(BIO* bio, int direction) const {
  ssl_.BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY);
  return -1;
}

int TlsStream::wire_write(BIO* bio, const char* bytes, int size) {
  TlsStream& stream = stream_of(bio);
  stream.ssl_.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  std::string_view rest(bytes, static_cast<size_t>(size));
  stream.last_io_ = redis::write_some(stream.fd_, rest);
  stream.error_ = errno;
  int written = size - static_cast<int>(rest.size());
  if (written > 0 || stream.last_io_ == Io::done) return written;
  return stream.last_io_ == Io::would_block ? stream.waiting(bio, BIO_FLAGS_WRITE) : -1;
}

int TlsStream::wire_read(BIO* bio, char* buffer, int size) {
  TlsStream& stream = stream_of(bio);
  stream.ssl_.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  size_t got = 0;
  stream.last_io_ = redis::read_some(stream.fd_, buffer, static_cast<size_t>(size), got);
  stream.error_ = errno;
  stream.has_received_ = stream.has_received_ || got > 0;
  if (got > 0) return static_cast<int>(got);
  if (stream.last_io_ == Io::closed) return 0;
  return stream.last_io_ == Io::would_block ? stream.waiting(bio, BIO_FLAGS_READ) : -1;
}

long TlsStream::wire_ctrl(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is buffered here
}

// ---- between OpenSSL and the connection ----

Io TlsStream::failed(Error why) {
  tls_error_ = std::move(why);
  return Io::failed;
}

// What the `result` of an OpenSSL call means; sets `awaited` to the event to poll for.
Io TlsStream::to_io(int result, short& awaited) {
  switch (ssl_.SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      awaited = POLLIN;
      return Io::would_block;
    case SSL_ERROR_WANT_WRITE:
      awaited = POLLOUT;
      return Io::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return Io::closed;
    case SSL_ERROR_SYSCALL:
      if (last_io_ == Io::closed) return Io::closed;
      return failed({ErrorKind::unavailable, std::strerror(error_), Retry::later});
    default:
      broken_ = true;
      return failed(tls_error(ssl_, session_.get(), peer_));
  }
}

Io TlsStream::write_some(std::string_view& bytes) {
  while (!bytes.empty()) {
    if (broken_) return Io::failed;
    ssl_.ERR_clear_error();
    int sent = ssl_.SSL_write(session_.get(), bytes.data(), bounded(bytes.size()));
    if (sent <= 0) return to_io(sent, write_awaits_);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Io::done;
}

// Never drained: poll() does not report bytes that OpenSSL has already read.
Io TlsStream::read_some(char* buffer, size_t size, size_t& got) {
  if (broken_) return Io::failed;
  ssl_.ERR_clear_error();
  int count = ssl_.SSL_read(session_.get(), buffer, bounded(size));
  if (count <= 0) return to_io(count, read_awaits_);
  got = static_cast<size_t>(count);
  return Io::done;
}

// SSL_peek also processes what is not data: session tickets, an alert.
bool TlsStream::is_quiet() {
  char byte = 0;
  if (broken_) return false;
  ssl_.ERR_clear_error();
  int count = ssl_.SSL_peek(session_.get(), &byte, 1);
  return count <= 0 && to_io(count, read_awaits_) == Io::would_block;
}

pollfd TlsStream::wants(Sending sending) const {
  int events = sending == Sending::done ? read_awaits_ : read_awaits_ | write_awaits_;
  return {fd_.get(), static_cast<short>(events), 0};
}

const char* TlsStream::timeout_reason() const {
  return ssl_.SSL_is_init_finished(session_.get()) != 0
             ? "no answer"
             : "no TLS handshake; is this a port without TLS?";
}

std::optional<std::chrono::system_clock::time_point> TlsStream::certificate_end() const {
  const X509* certificate = ssl_.SSL_get0_peer_certificate(session_.get());
  std::tm end{};
  if (certificate == nullptr ||
      ssl_.ASN1_TIME_to_tm(ssl_.X509_get0_notAfter(certificate), &end) != 1)
    return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&end));
}

Error TlsStream::error() const {
  return tls_error_.value_or(Error{ErrorKind::internal, "no error"});
}

}  // namespace rlock::redis
