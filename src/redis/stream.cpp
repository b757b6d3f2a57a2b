#include "redis/stream.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "redis/tls.hpp"

namespace rlock::redis {
namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(util::Fd fd) : fd_(std::move(fd)) {}

  Io write_some(std::string_view& bytes) override { return noted(redis::write_some(fd_, bytes)); }
  Io read_some(char* buffer, size_t size, size_t& got) override {
    Io io = noted(redis::read_some(fd_, buffer, size, got));
    heard_ = heard_ || got > 0;
    return io;
  }
  bool is_quiet() override { return redis::is_quiet(fd_); }

  pollfd wants(Sending sending) const override {
    int events = sending == Sending::over ? POLLIN : POLLIN | POLLOUT;
    return {fd_.get(), static_cast<short>(events), 0};
  }

  bool heard() const override { return heard_; }
  const char* silence() const override { return "no answer"; }

  util::Error trouble() const override {
    return {util::ErrorKind::unavailable, std::strerror(error_), util::Retry::later};
  }

 private:
  Io noted(Io io) {
    if (io == Io::failed) error_ = errno;
    return io;
  }

  util::Fd fd_;
  int error_ = 0;
  bool heard_ = false;
};

}  // namespace

util::Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd) {
  if (server.tls == nullptr) {
    return std::unique_ptr<Stream>(std::make_unique<PlainStream>(std::move(fd)));
  }
  return server.tls->wrap(std::move(fd), server.host);
}

}  // namespace rlock::redis
