#pragma once

#include <array>
#include <optional>

#include "lock/inspector.hpp"
#include "run/notice.hpp"
#include "run/process_handle.hpp"
#include "run/signals.hpp"
#include "run/take.hpp"
#include "util/fd.hpp"

namespace rlock::run {

// What it is entrusted with, as it comes down the line.
struct HandOff {
  AcquiredLease acquired;
  std::array<char, 32> owner;  // its digits
};

// What an attendant has to do and with what.
struct BackgroundRenewerTask {
  const lock::AcquireCall& claim;
  const ProcessHandle& watched;
  const std::optional<ProcessHandle> parent;  // of that process
  const lock::MakeServer& make_server;
  Signals& signals;
  const DescribeNotice& describe;
};

// The attendant after its fork. `line` brings an Entrusted, is answered with a byte once the
// renewals are under way, and then brings another byte; its end before that one: release. It ends
// without an answer when the watched process has ended. Forked from a process with one thread, so
// it may do anything but return.
[[noreturn]] void background_renewer_process(const BackgroundRenewerTask& task,
                                             util::Fd line) noexcept;

}  // namespace rlock::run
