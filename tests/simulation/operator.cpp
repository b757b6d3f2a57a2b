#include "simulation/operator.hpp"

#include <utility>

#include "lock/poller.hpp"

namespace rlock::sim {
namespace {

constexpr Millis kAnswer{10'000};

}  // namespace

Operator::Operator(World& world, const Host& host, uint64_t number, size_t lock,
                   lock::ForceWhen when, Open open)
    : lock_(lock),
      when_(when),
      open_(std::move(open)),
      process_(std::make_shared<Process>(world, host, number)) {}

void Operator::live() {
  process_->start([this] { main(); });
}

void Operator::main() {
  const auto store = open_(*process_);
  const auto name = *lock::LockName::parse("job" + std::to_string(lock_));
  lock::SystemPoller poller(kSignalFd);
  const auto seen =
      lock::finish(poller, store->inspect({name}), poller.now() + kAnswer, store->server());
  if (!seen || seen->holders.empty()) return;
  lock::ForceCall call{name, {}, when_, "operator " + std::to_string(process_->number())};
  for (const lock::Holder& holder : seen->holders) {
    auto owner = lock::Owner::parse(holder.owner);
    if (owner) call.targets.push_back({*owner, holder.token});
  }
  (void)lock::finish(poller, store->force_unlock(call), poller.now() + kAnswer, store->server());
}

}  // namespace rlock::sim
