#include "cli/commands/usual_time.hpp"

#include <algorithm>

#include "cli/output/history_rows.hpp"
#include "lock/poller.hpp"

namespace rlock::cli {

void UsualTime::update(const lock::Holder& holder) {
  constexpr Millis kTimeout{300};
  constexpr uint64_t kRows = 100;
  if (holder.owner == seen_holder_) return;
  seen_holder_ = holder.owner;
  lock::SystemPoller poller(signal_fd_);
  // Without an answer nothing is lost but a remark: the next request connects again.
  auto rows = lock::finish(poller, inspector_.history(name_, kRows),
                           std::min(deadline_, poller.now() + kTimeout), inspector_.server());
  if (rows) value_ = usual_duration(*rows);
}

std::optional<UsualTime> usual_time(const run::Plan& plan, Session& session,
                                    const run::Signals& signals) {
  if (session.format() != redis::Format::native) return std::nullopt;
  return UsualTime(session.store(), plan.claim.name, signals.fd(), plan.limits.deadline);
}

}  // namespace rlock::cli
