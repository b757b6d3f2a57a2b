#include "cli/usual_time.hpp"

#include <algorithm>
#include <cstdint>

#include "cli/output/view.hpp"
#include "lock/poller.hpp"

namespace rlock::cli {

UsualTime::UsualTime(const run::Plan& plan, Session& session, const run::Signals& signals)
    : history_(session.store()),
      name_(plan.claim.name),
      signal_fd_(signals.fd()),
      deadline_(plan.limits.deadline) {}

void UsualTime::ask(const lock::Holder& holder) {
  constexpr Millis kTimeout{300};
  constexpr uint64_t kRows = 100;
  if (holder.owner == seen_holder_) return;
  seen_holder_ = holder.owner;
  lock::SystemPoller poller(signal_fd_);
  // Without an answer only a remark is missing; the next request connects again.
  auto rows = lock::finish(poller, history_.history(name_, kRows),
                           std::min(deadline_, poller.now() + kTimeout), history_.server());
  if (rows) known_ = usual_duration(*rows);
}

}  // namespace rlock::cli
