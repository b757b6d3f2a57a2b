#include "cli/deadlock.hpp"

#include <algorithm>
#include <utility>

#include "cli/held_locks.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/connect.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kMostSteps = 8;
constexpr size_t kMostQueues = 32;  // that one look reads

// A lock whose queue is to be read, and how the search came there.
struct Step {
  Hold hold;
  std::vector<BlockedHolder> chain;
};

bool contains(const std::vector<Step>& steps, const Hold& hold) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return step.hold == hold; });
}

bool is_held_alone(const lock::Snapshot& seen, const Hold& hold) {
  return seen.holders.size() == 1 && seen.holders.front().owner == hold.owner &&
         seen.holders.front().limit == lock::Limit::exclusive();
}

BlockedHolder blocked(const Hold& hold, const lock::Waiter& waiter, const Record& record,
                      const std::string& waits_for) {
  const std::string who = util::shortened(who_text(record), 60);
  const std::string owner = "owner " + util::shortened(util::printable(hold.owner), 40);
  return {hold, who.empty() ? owner : who, waits_for, waiter.owner};
}

}  // namespace

// From the locks of `held` to those that their waiters hold, and so on.
std::vector<BlockedHolder> find_deadlock(lock::LockInspector& inspector, lock::Poller& poller,
                                         const Hold& wanted, const std::vector<Hold>& held,
                                         TimePoint deadline) {
  std::vector<Step> steps;
  for (const Hold& hold : held) steps.push_back({hold, {}});
  for (size_t i = 0; i < std::min(steps.size(), kMostQueues); ++i) {
    const Step step = steps[i];
    auto name = lock::LockName::parse(step.hold.name);
    if (!name || step.chain.size() == kMostSteps) continue;
    auto seen =
        lock::finish(poller, inspector.inspect({*std::move(name)}), deadline, inspector.server());
    if (!seen) return {};
    if (!is_held_alone(*seen, step.hold)) continue;
    for (const lock::Waiter& waiter : seen->waiters) {
      const Record record = decode_record(waiter.record);
      for (const Hold& hold : record.holds) {
        std::vector<BlockedHolder> chain{blocked(hold, waiter, record, step.hold.name)};
        chain.insert(chain.end(), step.chain.begin(), step.chain.end());
        if (hold == wanted) return chain;
        if (!contains(steps, hold)) steps.push_back({hold, std::move(chain)});
      }
    }
  }
  return {};
}

std::string deadlock_phrase(const std::vector<BlockedHolder>& chain) {
  std::string text = in_quotes(chain.front().hold.name);
  for (const BlockedHolder& link : chain) {
    text +=
        util::format("{} is held by {}, which waits for {}",
                     &link == &chain.front() ? "" : ", which", link.who, in_quotes(link.waits_for));
  }
  return text;
}

DeadlockWatch::DeadlockWatch(run::Plan& plan, Session& session, const run::Signals& signals)
    : inspector_(session.store()),
      name_(plan.claim.name),
      signal_fd_(signals.fd()),
      deadline_(plan.limits.deadline) {
  if (session.format() != redis::Format::native || session.servers() > 1) return;
  held_ = outer_holds(session);
  if (held_.empty()) return;
  Record record = decode_record(plan.claim.record);
  record.holds = held_;
  plan.claim.record = encode_record(record);
}

std::optional<std::string> DeadlockWatch::look(const lock::Holder& holder) {
  constexpr Millis kFirst{2000}, kAgain{2000}, kEvery{60'000}, kTimeout{300};
  if (held_.empty()) return std::nullopt;
  lock::SystemPoller poller(signal_fd_);
  const TimePoint now = poller.now();
  if (!next_) next_ = now + kFirst;
  if (reported_ || now < *next_) return std::nullopt;
  auto chain = find_deadlock(inspector_, poller, {name_.text(), holder.owner}, held_,
                             std::min(deadline_, now + kTimeout));
  next_ = now + (chain.empty() ? kEvery : kAgain);
  reported_ = found_.add(std::move(chain));
  if (!reported_) return std::nullopt;
  const std::string text =
      util::format("{}, which this run holds: {} can go on", deadlock_phrase(found_.last()),
                   found_.last().size() == 1 ? "neither" : "none of them");
  if (deadline_ == TimePoint::max()) return text;
  return util::format(
      "{} until this wait ends, in {}", text,
      util::format_rough_duration(std::chrono::duration_cast<Millis>(deadline_ - now)));
}

Millis DeadlockWatch::remaining(TimePoint now) const {
  if (reported_ || !next_) return Millis::max();
  return std::max(Millis(1), std::chrono::ceil<Millis>(*next_ - now));
}

}  // namespace rlock::cli
