#pragma once

#include <cstdint>

#include "util/fd.hpp"

namespace rlock::test {

struct Listener {
  util::Fd fd;
  uint16_t port = 0;
};

// On a free port of 127.0.0.1. Throws std::runtime_error.
Listener listen_on_loopback();

}  // namespace rlock::test
