#include "cli/output/dead_holders.hpp"

#include <utility>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"

namespace rlock::cli {
namespace {

// The record of `rlock run` names rlock. That of `acquire --renew-while` names the process of the
// steps, after whose exit rlock releases the lock: only a renewal that is overdue shows that rlock
// has exited, too. Nothing is known about a lock that no process renews.
bool has_exited(const lock::Holder& holder) {
  if (holder.state == lock::HolderState::cooldown) return false;
  const bool shows = holder.responsive == lock::Responsive::run ||
                     (holder.responsive == lock::Responsive::yes && overdue(holder));
  return shows && is_gone(decode_record(holder.record));
}

}  // namespace

bool DeadHolders::mark(std::span<lock::Holder> holders) {
  const auto before = std::exchange(exited_, {});
  bool unsure = false;
  for (lock::Holder& holder : holders) {
    if (!has_exited(holder)) continue;
    exited_.insert(holder.owner);
    holder.died = before.contains(holder.owner);
    unsure = unsure || !holder.died;
  }
  return unsure;
}

}  // namespace rlock::cli
