#include "redis/net/stream.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "redis/net/tls.hpp"

namespace rlock::redis {
namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(util::Fd fd) : fd_(std::move(fd)) {}

  Io write_some(std::string_view& bytes) override {
    return note_errno(redis::write_some(fd_, bytes));
  }
  Io read_some(char* buffer, size_t size, size_t& got) override {
    Io io = note_errno(redis::read_some(fd_, buffer, size, got));
    has_received_ = has_received_ || got > 0;
    return io;
  }
  bool is_quiet() override { return redis::is_quiet(fd_); }

  pollfd wants(Sending sending) const override {
    int events = sending == Sending::done ? POLLIN : POLLIN | POLLOUT;
    return {fd_.get(), static_cast<short>(events), 0};
  }

  bool has_received() const override { return has_received_; }
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
  bool has_received_ = false;
};

}  // namespace

Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd) {
  if (server.tls == nullptr) {
    return std::unique_ptr<Stream>(std::make_unique<PlainStream>(std::move(fd)));
  }
  return server.tls->wrap(std::move(fd), server.host);
}

}  // namespace rlock::redis
