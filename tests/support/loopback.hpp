#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>

#include "util/fd.hpp"

namespace rlock::test {

struct Listener {
  util::Fd fd;
  uint16_t port = 0;
};

// On a free port of 127.0.0.1. Throws std::runtime_error.
inline Listener listen_on_loopback() {
  Listener listener{util::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int fd = listener.fd.get();
  bool listening = bind(fd, generic, length) == 0 && listen(fd, 16) == 0 &&
                   getsockname(fd, generic, &length) == 0;
  if (!listening) throw std::runtime_error("cannot listen on 127.0.0.1");
  listener.port = ntohs(address.sin_port);
  return listener;
}

}  // namespace rlock::test
