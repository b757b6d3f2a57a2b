#pragma once

#include "lock/store.hpp"
#include "run/signals.hpp"
#include "run/watched.hpp"
#include "util/fd.hpp"

namespace rlock::run {

// What an attendant has to do and with what.
struct AttendantTask {
  const lock::AcquireCall& claim;
  const Watched& watched;
  const lock::MakeStore& make_store;
  Signals& signals;
};

// The attendant after its fork. `line` brings a Taken, is answered with a byte once the renewals
// are under way, and then brings another byte; its end before that one: release. Forked from a
// process with one thread, so it may do anything but return.
[[noreturn]] void attendant_process(const AttendantTask& task, util::Fd line) noexcept;

}  // namespace rlock::run
