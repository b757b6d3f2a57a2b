#include "cli/deadlock.hpp"

#include <doctest/doctest.h>

#include <map>

#include "support/scripted_store.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

// A lock with these holders, and one waiter that holds `waiter_holds`.
lock::Snapshot lock_of(const std::vector<std::string>& holders,
                       const std::vector<Hold>& waiter_holds) {
  lock::Snapshot lock;
  for (const std::string& owner : holders) {
    lock::Holder holder;
    holder.owner = owner;
    holder.limit = lock::Limit::exclusive();
    lock.holders.push_back(holder);
  }
  Record record{"web2", "root", 812, {}, {}, {}};
  record.holds = waiter_holds;
  lock::Waiter waiter;
  waiter.owner = "waiter";
  waiter.record = encode_record(record);
  lock.waiters.push_back(waiter);
  return lock;
}

class Locks final : public lock::LockInspector {
 public:
  std::map<std::string, lock::Snapshot> locks;

  lock::InFlight<lock::Snapshot> inspect(const lock::InspectCall& call) override {
    return lock::ready<lock::Snapshot>(locks.at(call.name.text()));
  }
  std::string server() const override { return "db1:6379"; }
  lock::InFlight<lock::ForceReply> force_unlock(const lock::ForceCall&) override { return {}; }
  lock::InFlight<lock::Snapshots> inspect_all(const std::vector<lock::InspectCall>&) override {
    return {};
  }
  lock::InFlight<lock::HistoryRows> history(const lock::LockName&, uint64_t) override { return {}; }
  lock::InFlight<lock::NamesPage> list_names(const std::string&) override { return {}; }
};

const Hold kWanted{"b", "bob"};
const Hold kHeld{"a", "ann"};

std::vector<BlockedHolder> found_in(Locks& locks) {
  test::FakePoller poller;
  return find_deadlock(lock_reader(locks, poller, TimePoint::max()), kWanted, {kHeld});
}

}  // namespace

TEST_CASE("the holder of the wanted lock that waits for ours is a deadlock") {
  Locks locks;
  locks.locks["a"] = lock_of({"ann"}, {kWanted});
  const auto chain = found_in(locks);
  REQUIRE(chain.size() == 1);
  CHECK(chain.front().hold == kWanted);
  CHECK(chain.front().waits_for == "a");
  CHECK(deadlock_phrase(chain) == "\"b\" is held by root@web2 (pid 812), which waits for \"a\"");
}

TEST_CASE("a lock with another holder, or room for one, is no part of a deadlock") {
  Locks locks;
  locks.locks["a"] = lock_of({"ann", "carl"}, {kWanted});
  CHECK(found_in(locks).empty());
  locks.locks["a"] = lock_of({"carl", "ann"}, {kWanted});
  CHECK(found_in(locks).empty());
  locks.locks["a"] = lock_of({"carl"}, {kWanted});
  CHECK(found_in(locks).empty());
  locks.locks["a"] = lock_of({"ann"}, {kWanted});
  locks.locks["a"].holders.front().limit = lock::Limit::slots(2);
  CHECK(found_in(locks).empty());
}

TEST_CASE("a chain counts after two checks in a row have found it") {
  const BlockedHolder one{kWanted, "bob@web1", "a", "waiter"};
  BlockedHolder other = one;
  other.waiter = "another";
  RepeatedChain chain;
  CHECK_FALSE(chain.add({one}));
  CHECK_FALSE(chain.add({other}));
  CHECK_FALSE(chain.add({}));
  CHECK_FALSE(chain.add({}));
  CHECK_FALSE(chain.add({other}));
  CHECK(chain.add({other}));
}
