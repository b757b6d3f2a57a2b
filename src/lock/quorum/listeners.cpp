#include "lock/quorum/listeners.hpp"

#include <algorithm>

#include "lock/timing.hpp"

namespace rlock::lock {
class WakeListeners::WakeWait final : public Reply<Wake> {
 public:
  WakeWait(WakeListeners& listeners, LockName name, Millis slice)
      : listeners_(listeners),
        name_(std::move(name)),
        slice_(slice),
        woken_(listeners.entries_.size()) {
    for (Listener& listener : listeners_.entries_) listener.failed = false;
  }

  void wants(std::vector<pollfd>& out) const override {
    for (const Listener& listener : listeners_.entries_) {
      if (listener.request) listener.request->wants(out);
    }
  }

  TimePoint due() const override {
    TimePoint earliest = until_;
    for (const Listener& listener : listeners_.entries_) {
      if (listener.request) earliest = std::min(earliest, listener.request->due());
    }
    return earliest;
  }

  bool advance(TimePoint now) override {
    if (until_ == TimePoint::min()) until_ = now + slice_;
    for (size_t i = 0; i < woken_.size(); ++i) poll_listener(i, now);
    const size_t needed = listeners_.quorum_.majority();
    const auto failed = static_cast<size_t>(
        std::count_if(listeners_.entries_.begin(), listeners_.entries_.end(),
                      [](const Listener& listener) { return listener.failed; }));
    bool useless = woken_count() == 0 && woken_.size() - failed < needed;
    return woken_count() >= needed || useless || now >= until_;
  }

  Result<Wake> take() override {
    if (woken_count() > 0) return Wake::woken;
    std::vector<std::optional<Error>> errors = errors_of(failures_);
    if (woken_.size() - count_errors(errors) < listeners_.quorum_.majority()) {
      return too_few_servers(listeners_.quorum_, errors);
    }
    return Wake::slept;
  }

 private:
  size_t woken_count() const {
    return static_cast<size_t>(std::count(woken_.begin(), woken_.end(), true));
  }

  // A wait that ends at the server in the middle of ours is followed by another, so that every
  // server can wake us at any time.
  void poll_listener(size_t i, TimePoint now) {
    Listener& listener = listeners_.entries_[i];
    while (!listener.failed && !woken_[i]) {
      if (!listener.request) {
        listener.request = listener.store->wait_for_wake(name_, *listeners_.owner_,
                                                         std::max(slice_, timing::kLeastBlockTime));
      }
      if (!listener.request->advance(now)) return;
      auto wake = listener.request->take();
      listener.request.reset();
      handle_wake(i, std::move(wake), now);
    }
  }

  void handle_wake(size_t i, Result<Wake> wake, TimePoint now) {
    if (!wake) {
      listeners_.entries_[i].failed = true;
      failures_.resize(woken_.size());
      failures_[i] = std::move(wake);
    } else if (*wake == Wake::woken) {
      woken_[i] = true;
      until_ = std::min(until_, now + timing::kMoreWakesTime);
    }
  }

  WakeListeners& listeners_;
  LockName name_;
  Millis slice_;
  std::vector<bool> woken_;
  Replies<Wake> failures_;
  TimePoint until_ = TimePoint::min();
};

InFlight<Wake> WakeListeners::listen(const LockName& name, const Owner& owner, Millis slice) {
  if (owner_ != owner) entries_.clear();
  owner_ = owner;
  while (entries_.size() < makers_.size()) entries_.push_back({makers_[entries_.size()]()});
  return std::make_unique<WakeWait>(*this, name, slice);
}

}  // namespace rlock::lock
