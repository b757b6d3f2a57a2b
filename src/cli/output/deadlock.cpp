#include "cli/output/deadlock.hpp"

#include <algorithm>
#include <utility>

#include "cli/output/messages.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kMostSteps = 8;
constexpr size_t kMostQueues = 32;  // the most queues that one search reads

// A lock whose queue has to be read, and the path of the search to it.
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

}  // namespace

// Searches from the locks of `held` to those that their waiters hold, and so on.
std::vector<BlockedHolder> find_deadlock(const ReadLock& read, const Hold& wanted,
                                         const std::vector<Hold>& held) {
  std::vector<Step> steps;
  for (const Hold& hold : held) steps.push_back({hold, {}});
  for (size_t i = 0; i < std::min(steps.size(), kMostQueues); ++i) {
    const Step step = steps[i];
    auto name = lock::LockName::parse(step.hold.name);
    if (!name || step.chain.size() == kMostSteps) continue;
    const auto seen = read(*name);
    if (!seen || !is_held_alone(*seen, step.hold)) continue;
    for (const lock::Waiter& waiter : seen->waiters) {
      const Record record = decode_record(waiter.record);
      for (const Hold& hold : record.holds) {
        std::vector<BlockedHolder> chain{
            {hold, process_phrase(record, hold.owner), step.hold.name, waiter.owner}};
        chain.insert(chain.end(), step.chain.begin(), step.chain.end());
        if (hold == wanted) return chain;
        if (!contains(steps, hold)) steps.push_back({hold, std::move(chain)});
      }
    }
  }
  return {};
}

std::string deadlock_of(const ReadLock& read, const LockView& lock) {
  if (!lock.snapshot || lock.snapshot->holders.size() != 1) return {};
  if (lock.format != redis::Format::native || lock.snapshot->live_waiters == 0) return {};
  const Hold hold{lock.name, lock.snapshot->holders.front().owner};
  const auto chain = find_deadlock(read, hold, {hold});
  return chain.empty() ? std::string() : deadlock_phrase(chain);
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

}  // namespace rlock::cli
