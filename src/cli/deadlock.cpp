#include "cli/deadlock.hpp"

#include <algorithm>
#include <utility>

#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
ReadLock lock_reader(lock::LockInspector& inspector, lock::Poller& poller, TimePoint deadline) {
  return [&inspector, &poller, deadline](const lock::LockName& name) {
    auto seen = lock::finish(poller, inspector.inspect({name}), deadline, inspector.server());
    return seen ? std::optional(*std::move(seen)) : std::nullopt;
  };
}

void mark_deadlocks(Session& session, std::vector<LockView>& locks) {
  constexpr Millis kTimeout{1000};
  if (session.servers() > 1) return;
  lock::SystemPoller poller;
  const ReadLock read = lock_reader(session.store(), poller, poller.now() + kTimeout);
  for (LockView& lock : locks) lock.deadlock = deadlock_of(read, lock);
}

DeadlockWatch::DeadlockWatch(const run::Plan& plan, Session& session, const run::Signals& signals)
    : inspector_(session.store()),
      name_(plan.claim.name),
      signal_fd_(signals.fd()),
      deadline_(plan.limits.deadline),
      held_(decode_record(plan.claim.record).holds),
      own_process_(process_phrase(decode_record(plan.claim.record), plan.claim.owner.text())),
      lock_options_(session.lock_options()) {}

std::optional<std::string> DeadlockWatch::look(const lock::Holder& holder) {
  constexpr Millis kFirst{2000}, kAgain{2000}, kEvery{60'000}, kTimeout{300};
  if (held_.empty() || reported_) return std::nullopt;
  const Hold wanted{name_.text(), holder.owner};
  if (std::find(held_.begin(), held_.end(), wanted) != held_.end()) {
    reported_ = true;
    return util::format(
        "{} is held by the run around this command, {}: rlock acquire waits until that run ends; "
        "rlock run enters the lock instead",
        in_quotes(name_.text()), process_phrase(decode_record(holder.record), holder.owner));
  }
  lock::SystemPoller poller(signal_fd_);
  const TimePoint now = poller.now();
  if (!next_) next_ = now + kFirst;
  if (now < *next_) return std::nullopt;
  auto chain = find_deadlock(lock_reader(inspector_, poller, std::min(deadline_, now + kTimeout)),
                             wanted, held_);
  next_ = now + (chain.empty() ? kEvery : kAgain);
  reported_ = found_.add(std::move(chain));
  if (!reported_) return std::nullopt;
  const std::string text =
      util::format("{}, which this run, {}, holds: {} can continue", deadlock_phrase(found_.last()),
                   own_process_, found_.last().size() == 1 ? "neither of them" : "none of them");
  const std::string remedy = util::format(
      "; to resolve this, stop one of these runs, or break a lock: rlock force-unlock{} {}",
      lock_options_, typed_name(name_.text()));
  if (deadline_ == TimePoint::max()) return text + remedy;
  return util::format(
      "{} until this wait ends, in {}{}", text,
      util::format_rough_duration(std::chrono::duration_cast<Millis>(deadline_ - now)), remedy);
}

Millis DeadlockWatch::remaining(TimePoint now) const {
  if (reported_ || !next_) return Millis::max();
  return std::max(Millis(1), std::chrono::ceil<Millis>(*next_ - now));
}

}  // namespace rlock::cli
