#pragma once

#include "lock/store.hpp"
#include "run/signals.hpp"
#include "run/take.hpp"
#include "run/watched.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// The process that `acquire --renew-while` leaves behind: it renews a lock while another process
// lives and releases it afterwards. [CLI.md, acquire]
class Attendant {
 public:
  // Forks it before anything is acquired, and before this process has a thread or a connection. In
  // a session of its own, without a descriptor of the caller's, it waits to be entrusted with
  // `claim`. ErrorKind::system when no process or descriptor can be had.
  static util::Result<Attendant> start(const lock::AcquireCall& claim, Watched watched,
                                       const lock::MakeStore& make_store, Signals& signals);

  // It renews from now on, for `owner`. ErrorKind::system where it cannot: then it does not hold on
  // to the lock.
  util::Status entrust(const Taken& taken, const lock::Owner& owner);
  // The owner is known to the caller. Without this the attendant releases what it was entrusted
  // with when this object, or this process, is gone.
  void keep();

 private:
  explicit Attendant(util::Fd line) : line_(std::move(line)) {}
  util::Fd line_;
};

}  // namespace rlock::run
