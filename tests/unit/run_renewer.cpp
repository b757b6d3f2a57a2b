// The renewal thread with a store of the test's: how often it acts, and at which priority.
#include "run/renewer.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "support/waiting.hpp"
#include "util/mutex.hpp"
#include "util/process.hpp"
#include "util/random.hpp"
#include "util/text.hpp"

using namespace rlock;
using namespace rlock::run;
using namespace std::chrono_literals;

namespace {

// What a store does with the requests of the renewal thread.
struct Counts {
  std::atomic<int> rounds{0};
  std::atomic<int> listens{0};
  std::atomic<int> policy{-1};  // of the thread, in its last round
};

// Never done, although its descriptor is readable for ever.
class Stuck final : public lock::Reply<lock::Wake> {
 public:
  Stuck(Counts& counts, int fd) : counts_(counts), fd_(fd) {}
  void wants(std::vector<pollfd>& out) const override { out.push_back({fd_, POLLIN, 0}); }
  TimePoint due() const override { return TimePoint::max(); }
  bool advance(TimePoint) override {
    ++counts_.rounds;
    counts_.policy = sched_getscheduler(0);
    return false;
  }
  Result<lock::Wake> take() override { return lock::Wake::slept; }

 private:
  Counts& counts_;
  int fd_;
};

enum class Listening { stuck, always_woken };

// During a failover, as far as sentinels say.
class OddStore final : public lock::LockStore {
 public:
  OddStore(Counts& counts, Listening listening, int fd)
      : counts_(counts), listening_(listening), fd_(fd) {}
  lock::InFlight<lock::AcquireReply> acquire(const lock::AcquireCall&) override { return nullptr; }
  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall&) override {
    ++counts_.rounds;
    return std::make_unique<lock::ReadyReply<lock::RenewReply>>(
        lock::RenewReply(lock::Renewal::extended));
  }
  lock::InFlight<lock::ReleaseReply> release(const lock::ReleaseCall&) override { return nullptr; }
  lock::InFlight<lock::CancelReply> cancel(const lock::CancelCall&) override { return nullptr; }
  lock::InFlight<Done> check_failover(Millis) override {
    return lock::ready<Done>(Error{ErrorKind::unavailable, "a failover is in progress"});
  }
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName&, const lock::Owner&,
                                           Millis) override {
    ++counts_.listens;
    if (listening_ == Listening::stuck) return std::make_unique<Stuck>(counts_, fd_);
    return std::make_unique<lock::ReadyReply<lock::Wake>>(lock::Wake::woken);
  }
  std::string server() const override { return "odd"; }

 private:
  Counts& counts_;
  Listening listening_;
  int fd_;
};

lock::Claim claim() {
  util::SystemRandom random;
  return {.name = *lock::LockName::parse("odd"), .owner = lock::Owner::fresh(random)};
}

// Over a store that behaves like this, with a lease of a minute.
class RunningRenewer {
 public:
  explicit RunningRenewer(Listening listening)
      : fd_(eventfd(1, EFD_CLOEXEC)),
        lease_({60s, 0s}, BootClock::now(), nullptr),
        claim_(claim()),
        renewer_(*Renewer::make(claim_, {claim_.owner, {}},
                                {[this, listening] {
                                   return std::make_unique<OddStore>(counts_, listening, fd_.get());
                                 },
                                 nobody_, lease_})) {
    REQUIRE(renewer_->start());
  }
  Renewer& renewer() { return *renewer_; }
  Counts& counts() { return counts_; }
  TimePoint deadline() const { return lease_.view().deadline; }

 private:
  Counts counts_;
  util::Fd fd_;
  Observer nobody_;
  SharedLease lease_;
  const lock::Claim claim_;
  std::unique_ptr<Renewer> renewer_;
};

// May this process have a thread of real time?
bool real_time_is_allowed() {
  bool allowed = false;
  std::thread([&] {
    const sched_param least{sched_get_priority_min(SCHED_FIFO)};
    allowed = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) == 0;
  }).join();
  return allowed;
}

}  // namespace

TEST_CASE("a descriptor that stays readable does not occupy a processor") {
  RunningRenewer odd(Listening::stuck);
  REQUIRE(test::eventually([&] { return odd.counts().rounds > 0; }));
  const TimePoint begun = BootClock::now();
  const int before = odd.counts().rounds;
  std::this_thread::sleep_for(2s);
  const int rounds = odd.counts().rounds - before;
  const auto seconds =
      std::chrono::duration<double>(BootClock::now() - begun).count();  // on a busy machine more
  CHECK(rounds > 2);
  // Each round looks at the request twice.
  CHECK(rounds <= 2 * (200 + 20 * (seconds + 1)));
}

TEST_CASE("a server that wakes the holder again and again is asked ever less often") {
  RunningRenewer odd(Listening::always_woken);
  REQUIRE(test::eventually([&] { return odd.counts().listens > 0; }));
  const TimePoint begun = BootClock::now();
  std::this_thread::sleep_for(2s);
  const auto seconds = std::chrono::duration<double>(BootClock::now() - begun).count();
  CHECK(odd.counts().listens <= 5 + seconds);
}

TEST_CASE("a renewal during a failover extends the lease") {
  RunningRenewer odd(Listening::always_woken);
  const TimePoint first = odd.deadline();
  CHECK(test::eventually([&] { return odd.deadline() > first; }));
}

TEST_CASE("the renewal thread runs before others if that is allowed, and its children do not") {
  if (!real_time_is_allowed()) {
    MESSAGE("refused here: real-time priority");
    return;
  }
  RunningRenewer odd(Listening::stuck);
  REQUIRE(test::eventually([&] { return odd.counts().rounds > 0; }));
  CHECK(odd.counts().policy == SCHED_OTHER);
  odd.renewer().prefer();
  REQUIRE(
      test::eventually([&] { return odd.counts().policy == (SCHED_FIFO | SCHED_RESET_ON_FORK); }));

  std::atomic<int> policy{-1};
  std::thread([&] {
    const sched_param least{sched_get_priority_min(SCHED_FIFO)};
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least);
    REQUIRE(util::start_detached([&] { policy = sched_getscheduler(0); }) == 0);
    REQUIRE(test::eventually([&] { return policy != -1; }));
  }).join();
  CHECK(policy == SCHED_OTHER);
}

TEST_CASE("a mutex gives its owner the priority of a thread of real time that waits for it") {
  if (!real_time_is_allowed()) {
    MESSAGE("refused here: real-time priority");
    return;
  }
  auto priority = [] {  // as the kernel schedules this thread: -2 for the least of real time
    const std::string path = util::format("/proc/self/task/{}/stat", gettid());
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(") ") + 2));
    std::string field;
    for (int i = 3; i <= 18; ++i) fields >> field;
    return std::stoi(field);
  };
  util::Mutex mutex;
  std::thread urgent;
  {
    std::lock_guard hold(mutex);
    CHECK(priority() >= 0);
    urgent = std::thread([&] {
      const sched_param least{sched_get_priority_min(SCHED_FIFO)};
      sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least);
      std::lock_guard wait(mutex);
    });
    REQUIRE(test::eventually([&] { return priority() < 0; }));
  }
  urgent.join();
  CHECK(priority() >= 0);
}
