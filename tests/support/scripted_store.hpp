#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "lock/inspector.hpp"
#include "lock/poller.hpp"

// Time and servers as a test wants them: nothing real, everything repeatable.
namespace rlock::test {

// Draws in the middle of what is asked for.
struct FixedRandom final : util::Random {
  uint64_t next() override { return 500; }
};

// A clock that moves only as far as somebody waits.
class FakePoller final : public lock::Poller {
 public:
  TimePoint now() const override { return now_; }
  lock::PollResult drive(lock::Request& request, TimePoint deadline,
                         lock::Interruptible interruptible) override {
    if (request.advance(now_)) return lock::PollResult::done;
    TimePoint until = std::min(deadline, request.due());
    if (interrupted(interruptible, until)) return lock::PollResult::interrupted;
    now_ = std::max(now_, until);
    if (request.advance(now_)) return lock::PollResult::done;
    return lock::PollResult::deadline;
  }
  lock::PollResult pause(TimePoint until, lock::Interruptible interruptible) override {
    if (interrupted(interruptible, until)) return lock::PollResult::interrupted;
    now_ = std::max(now_, until);
    return lock::PollResult::deadline;
  }

  void interrupt_at(TimePoint when) { interrupt_ = when; }

 private:
  bool interrupted(lock::Interruptible interruptible, TimePoint until) {
    if (interruptible == lock::Interruptible::no || interrupt_ > until) return false;
    now_ = std::max(now_, interrupt_);
    return true;
  }

  TimePoint now_{std::chrono::seconds(1000)};
  TimePoint interrupt_ = TimePoint::max();
};

// Answers after `delay`; without an answer it stays silent for ever.
template <class T>
class ScriptedReply final : public lock::Reply<T> {
 public:
  // `use` lives as long as this does.
  ScriptedReply(TimePoint at, std::optional<Result<T>> answer, std::shared_ptr<void> use)
      : at_(at), answer_(std::move(answer)), use_(std::move(use)) {}
  // Of a server that is not there; all has been sent to it.
  void wants(std::vector<pollfd>& out) const override { out.push_back({-1, POLLIN, 0}); }
  TimePoint due() const override { return answer_ ? at_ : TimePoint::max(); }
  bool advance(TimePoint now) override { return answer_ && now >= at_; }
  Result<T> take() override { return std::move(*answer_); }

 private:
  TimePoint at_;
  std::optional<Result<T>> answer_;
  std::shared_ptr<void> use_;
};

template <class T>
struct Step {
  Millis delay{0};
  std::optional<Result<T>> answer;
};

// Plays its steps in order; the calls are kept for the test to read.
class ScriptedStore final : public lock::LockServer {
 public:
  explicit ScriptedStore(const lock::Poller& poller) : poller_(poller) {}

  std::deque<Step<lock::AcquireReply>> acquires;
  std::deque<Step<lock::HeartbeatReply>> heartbeats;  // none: waiters always acquire
  std::deque<Step<lock::Wake>> wakes;
  std::deque<Step<lock::RenewReply>> renews;
  std::deque<Step<lock::ReleaseReply>> releases;
  std::deque<Step<lock::CancelReply>> cancels;
  std::deque<Step<Done>> failover_checks;  // none: it is not over Sentinel
  std::deque<Step<lock::Snapshot>> snapshots;
  std::deque<Step<lock::Forgotten>> forgets;
  std::vector<lock::AcquireCall> asked;
  std::vector<TimePoint> asked_at;
  std::vector<Millis> slices;
  std::vector<Millis> patiences;  // of failover_checks
  std::vector<lock::RenewCall> renewed;
  std::vector<lock::ForgetCall> forgotten;
  std::vector<lock::ReleaseCall> release_calls;
  int released = 0;
  bool reached = true;
  int cancelled = 0;
  lock::CancelHow cancelled_how{};

  // What it replies to the next request of this kind, and that alone.
  void replies(Millis delay, lock::AcquireReply reply) {
    acquires = {{delay, Result<lock::AcquireReply>(std::move(reply))}};
  }
  void replies(Millis delay, lock::RenewReply reply) {
    renews = {{delay, Result<lock::RenewReply>(std::move(reply))}};
  }
  void replies(Millis delay, lock::ReleaseReply reply) {
    releases = {{delay, Result<lock::ReleaseReply>(std::move(reply))}};
  }
  void replies(Millis delay, lock::CancelReply reply) {
    cancels = {{delay, Result<lock::CancelReply>(reply)}};
  }
  void replies(Millis delay, lock::Snapshot reply) {
    snapshots = {{delay, Result<lock::Snapshot>(std::move(reply))}};
  }
  void replies(Millis delay, lock::Forgotten reply) {
    forgets = {{delay, Result<lock::Forgotten>(reply)}};
  }

  lock::InFlight<lock::AcquireReply> acquire(const lock::AcquireCall& call) override {
    asked.push_back(call);
    asked_at.push_back(poller_.now());
    return play(acquires);
  }
  lock::InFlight<lock::HeartbeatReply> heartbeat(const lock::LockName&,
                                                 const lock::Owner&) override {
    return heartbeats.empty() ? nullptr : play(heartbeats);
  }
  lock::InFlight<lock::CancelReply> cancel(const lock::CancelCall& call) override {
    ++cancelled;
    cancelled_how = call.how;
    return play(cancels);
  }
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName&, const lock::Owner&,
                                           Millis slice) override {
    slices.push_back(slice);
    return play(wakes);
  }
  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override {
    renewed.push_back(call);
    return play(renews);
  }
  lock::InFlight<lock::ReleaseReply> release(const lock::ReleaseCall& call) override {
    ++released;
    release_calls.push_back(call);
    return play(releases);
  }
  lock::InFlight<Done> check_failover(Millis patience) override {
    patiences.push_back(patience);
    return failover_checks.empty() ? nullptr : play(failover_checks);
  }
  bool was_reached() const override { return reached; }
  lock::InFlight<lock::ForceReply> force_unlock(const lock::ForceCall&) override { return nullptr; }
  lock::InFlight<lock::Snapshot> inspect(const lock::InspectCall&) override {
    return play(snapshots);
  }
  lock::InFlight<lock::Forgotten> forget(const lock::ForgetCall& call) override {
    forgotten.push_back(call);
    return play(forgets);
  }
  lock::InFlight<std::vector<Result<lock::Snapshot>>> inspect_all(
      const std::vector<lock::InspectCall>&) override {
    return nullptr;
  }
  lock::InFlight<std::vector<lock::HistoryRow>> history(const lock::LockName&, uint64_t) override {
    return nullptr;
  }
  lock::InFlight<lock::NamesPage> list_names(const std::string&) override { return nullptr; }
  std::string server() const override { return "script"; }

 private:
  // After the last step the server is silent.
  template <class T>
  lock::InFlight<T> play(std::deque<Step<T>>& steps) {
    Step<T> step;
    if (!steps.empty()) {
      step = std::move(steps.front());
      steps.pop_front();
    }
    if (!use_.expired()) throw std::logic_error("a store has two requests in flight");
    auto use = std::make_shared<char>();
    use_ = use;
    return std::make_unique<ScriptedReply<T>>(poller_.now() + step.delay, std::move(step.answer),
                                              std::move(use));
  }

  const lock::Poller& poller_;
  std::weak_ptr<void> use_;  // by the request in flight
};

}  // namespace rlock::test
