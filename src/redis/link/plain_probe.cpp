#include "redis/link/plain_probe.hpp"

#include <array>
#include <utility>

namespace rlock::redis {
namespace {

constexpr std::string_view kPing = "PING\r\n";

// The answers of Redis to a PING before any login.
bool is_redis(std::string_view text) {
  for (std::string_view answer : {"+PONG", "-NOAUTH", "-DENIED", "-ERR", "-LOADING"}) {
    if (text.starts_with(answer)) return true;
  }
  return false;
}

Server plain(Server server) {
  server.tls.reset();
  return server;
}

}  // namespace

PlainProbe::PlainProbe(Server server, TimePoint now, TimePoint deadline)
    : server_(plain(std::move(server))), dialer_(server_) {
  dialer_.start(now, deadline);
}

void PlainProbe::wants(std::vector<pollfd>& out) const {
  if (done_) return;
  if (!stream_) return dialer_.wants(out);
  out.push_back(stream_->wants(unsent_.empty() ? Sending::done : Sending::pending));
}

TimePoint PlainProbe::due() const {
  return done_ || stream_ ? TimePoint::max() : dialer_.due();
}

bool PlainProbe::answers(TimePoint now) {
  if (done_) return false;
  if (!stream_ && dialer_.advance(now)) {
    auto fd = dialer_.take();
    done_ = !fd;
    if (fd) {
      stream_ = *make_stream(server_, *std::move(fd));  // a plain stream: cannot fail
      unsent_ = kPing;
    }
  }
  if (stream_) talk();
  return is_redis(received_);
}

void PlainProbe::talk() {
  std::array<char, 64> buffer;
  size_t got = 0;
  const Io sent = stream_->write_some(unsent_);
  const Io io = stream_->read_some(buffer.data(), buffer.size(), got);
  received_.append(buffer.data(), got);
  // The first bytes are enough.
  done_ = io == Io::closed || io == Io::failed || sent == Io::failed ||
          received_.size() >= buffer.size();
}

}  // namespace rlock::redis
