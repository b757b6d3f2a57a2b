#include "run/release_until.hpp"

#include <algorithm>

#include "lock/poller.hpp"
#include "lock/timing.hpp"

namespace rlock::run {
Result<lock::ReleaseReply> release_until(lock::LockStore& store, const lock::ReleaseCall& call,
                                         TimePoint until) {
  lock::SystemPoller poller;
  Millis attempt = timing::kFirstReleaseAttempt;
  for (Millis pause = timing::kFirstReleasePause;;
       pause = std::min(pause * 2, timing::kLongestReleasePause)) {
    // A store whose connection failed, or whose request was given up, sends the next one over a new
    // one.
    const TimePoint give_up = poller.now() + attempt;
    auto reply =
        lock::finish(poller, store.release(call), std::min(until, give_up), store.server());
    if (poller.now() >= give_up) attempt *= 2;  // the server may just be slow
    bool again = !reply && reply.error().retry == Retry::later;
    if (!again || poller.now() + pause >= until) return reply;
    poller.pause(poller.now() + pause);
  }
}

}  // namespace rlock::run
