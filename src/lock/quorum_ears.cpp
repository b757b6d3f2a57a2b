#include "lock/quorum_ears.hpp"

#include <algorithm>

namespace rlock::lock {
namespace {

// The releases of one holder come to all servers within a moment; a grant at fewer than a majority
// would only have to be given back.
constexpr Millis kMoment{25};
// How long a server lets one wait block, so that a short wait does not cost it a command.
constexpr Millis kLeastBlock{5000};

}  // namespace

class Ears::Listening final : public Reply<Wake> {
 public:
  Listening(Ears& ears, LockName name, Millis slice)
      : ears_(ears), name_(std::move(name)), slice_(slice), woken_(ears.ears_.size()) {
    for (Ear& ear : ears_.ears_) ear.deaf = false;
  }

  void wants(std::vector<pollfd>& out) const override {
    for (const Ear& ear : ears_.ears_) {
      if (ear.request) ear.request->wants(out);
    }
  }

  TimePoint due() const override {
    TimePoint earliest = until_;
    for (const Ear& ear : ears_.ears_) {
      if (ear.request) earliest = std::min(earliest, ear.request->due());
    }
    return earliest;
  }

  bool advance(TimePoint now) override {
    if (until_ == TimePoint::min()) until_ = now + slice_;
    for (size_t i = 0; i < woken_.size(); ++i) hear(i, now);
    const size_t needed = ears_.electorate_.majority();
    const auto deaf = static_cast<size_t>(std::count_if(ears_.ears_.begin(), ears_.ears_.end(),
                                                        [](const Ear& ear) { return ear.deaf; }));
    bool useless = woken_count() == 0 && woken_.size() - deaf < needed;
    return woken_count() >= needed || useless || now >= until_;
  }

  util::Result<Wake> take() override {
    if (woken_count() > 0) return Wake::woken;
    std::vector<std::optional<util::Error>> errors = errors_of(failures_);
    if (woken_.size() - static_cast<size_t>(
                            std::count_if(errors.begin(), errors.end(),
                                          [](const auto& error) { return error.has_value(); })) <
        ears_.electorate_.majority()) {
      return too_few(ears_.electorate_, errors);
    }
    return Wake::slept;
  }

 private:
  size_t woken_count() const {
    return static_cast<size_t>(std::count(woken_.begin(), woken_.end(), true));
  }

  // A wait that ends at the server in the middle of ours is followed by another: no ear is ever
  // deaf for want of one.
  void hear(size_t i, TimePoint now) {
    Ear& ear = ears_.ears_[i];
    while (!ear.deaf && !woken_[i]) {
      if (!ear.request) {
        ear.request = ear.store->wait_for_wake(name_, *ears_.owner_, std::max(slice_, kLeastBlock));
      }
      if (!ear.request->advance(now)) return;
      auto wake = ear.request->take();
      ear.request.reset();
      heard(i, std::move(wake), now);
    }
  }

  void heard(size_t i, util::Result<Wake> wake, TimePoint now) {
    if (!wake) {
      ears_.ears_[i].deaf = true;
      failures_.resize(woken_.size());
      failures_[i] = std::move(wake);
    } else if (*wake == Wake::woken) {
      woken_[i] = true;
      until_ = std::min(until_, now + kMoment);
    }
  }

  Ears& ears_;
  LockName name_;
  Millis slice_;
  std::vector<bool> woken_;
  Ballots<Wake> failures_;
  TimePoint until_ = TimePoint::min();
};

InFlight<Wake> Ears::listen(const LockName& name, const Owner& owner, Millis slice) {
  if (owner_ != owner) ears_.clear();
  owner_ = owner;
  while (ears_.size() < makers_.size()) ears_.push_back({makers_[ears_.size()]()});
  return std::make_unique<Listening>(*this, name, slice);
}

}  // namespace rlock::lock
