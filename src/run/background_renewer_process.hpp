#pragma once

#include <array>
#include <optional>
#include <type_traits>

#include "lock/inspector.hpp"
#include "run/background_renewer.hpp"
#include "run/process_handle.hpp"
#include "run/signals.hpp"
#include "run/take.hpp"
#include "util/fd.hpp"

namespace rlock::run {

// The lock that it is to renew, as it comes over the socket.
struct HandOff {
  AcquiredLease acquired;
  std::array<char, 32> owner;  // its digits
};
static_assert(std::is_trivially_copyable_v<HandOff>);

// What a background renewer has to do, and with what.
struct BackgroundRenewerTask {
  const lock::AcquireCall& claim;
  const ProcessHandle& watched;
  const std::optional<ProcessHandle> parent;  // of that process
  const lock::MakeServer& make_server;
  Signals& signals;
  const DescribeNotice& describe;
};

// The background renewer after its fork. `line` brings a HandOff, is answered with a byte once the
// renewals are under way, and then brings another byte; if it ends before that one: release. The
// process exits without an answer when the watched process has ended. Forked from a process with
// one thread, so it may do anything but return.
[[noreturn]] void background_renewer_process(const BackgroundRenewerTask& task,
                                             util::Fd line) noexcept;

}  // namespace rlock::run
