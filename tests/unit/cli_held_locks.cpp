#include "cli/held_locks.hpp"

#include <doctest/doctest.h>

#include "util/random.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

const LockAddress kAddress{"db1:6379/2", "rlock:", "a,b;c%\xC3\xA9 d"};

lock::HeldLock fresh_lock(lock::Limit limit = lock::Limit::exclusive()) {
  util::SystemRandom random;
  return {lock::Owner::fresh(random), lock::Token{1'795'233'967'434'283}, limit, Millis(60'000)};
}

lock::HeldLock nested(const lock::HeldLock& outer) {
  util::SystemRandom random;
  lock::HeldLock held_lock = outer;
  held_lock.entry = lock::Entry::fresh(random);
  return held_lock;
}

const HolderProcess kProcess{4711, TimePoint(Millis(86'400'123)), Millis(30'000)};

// As the command of a run under `held_lock` inherits them.
std::vector<HeldRecord> inherited_records(const std::vector<HeldRecord>& outer,
                                          const LockAddress& address,
                                          const lock::HeldLock& held_lock,
                                          const HolderProcess& process = kProcess) {
  return decode_held(encode_held(records_for_command(outer, {address, held_lock, process})));
}

std::vector<lock::Owner> owners(const std::vector<HeldRecord>& records) {
  std::vector<lock::Owner> owners;
  for (const HeldRecord& record : records) owners.push_back(record.held_lock.owner);
  return owners;
}

}  // namespace

TEST_CASE("a record is read as it was written, whatever bytes the names contain") {
  for (auto limit : {lock::Limit::exclusive(), lock::Limit::slots(7), lock::Limit::shared()}) {
    const lock::HeldLock held_lock = fresh_lock(limit);
    auto records = inherited_records({}, kAddress, held_lock);
    REQUIRE(records.size() == 1);
    auto found = find_outer_locks(records, kAddress);
    REQUIRE(found.size() == 1);
    CHECK(found[0].address == kAddress);
    CHECK(found[0].held_lock.owner == held_lock.owner);
    CHECK(found[0].held_lock.token == held_lock.token);
    CHECK(found[0].held_lock.limit == held_lock.limit);
    CHECK(found[0].held_lock.min_hold == held_lock.min_hold);
    CHECK_FALSE(found[0].held_lock.nested());
    CHECK(found[0].process.pid == kProcess.pid);
    CHECK(found[0].process.at == kProcess.at);
    CHECK(found[0].process.renewing == kProcess.renewing);
  }
}

TEST_CASE("a record has the slot of a lock with slots, and no other one has a field for it") {
  lock::HeldLock held_lock = fresh_lock(lock::Limit::slots(7));
  const std::string without = encode_held({{kAddress, held_lock, kProcess}});
  held_lock.slot = 3;
  const std::string with = encode_held({{kAddress, held_lock, kProcess}});
  CHECK(with == without + ",3");
  CHECK(decode_held(without).at(0).held_lock.slot == 0);
  CHECK(decode_held(with).at(0).held_lock.slot == 3);
  CHECK(decode_held(without + ",1025").empty());
  CHECK(decode_held(without + ",x").empty());
  CHECK(decode_held(with + ",1").empty());
}

TEST_CASE("a process is never younger than its record") {
  const HolderProcess process{1, TimePoint(std::chrono::nanoseconds(1'000'001)), Millis(0)};
  CHECK(inherited_records({}, kAddress, fresh_lock(), process)[0].process.at ==
        TimePoint(Millis(2)));
}

TEST_CASE("only the same prefix and name can be the same lock, with any spelling of a server") {
  auto records = inherited_records({}, kAddress, fresh_lock());
  CHECK(find_outer_locks(records, {"db2:6379/2", kAddress.prefix, kAddress.name}).size() == 1);
  CHECK(find_outer_locks(records, {kAddress.server, "other:", kAddress.name}).empty());
  CHECK(find_outer_locks(records, {kAddress.server, kAddress.prefix, "a"}).empty());
}

TEST_CASE("A inside B inside A finds A again, the innermost lock first") {
  const LockAddress other{kAddress.server, kAddress.prefix, "other"};
  const lock::HeldLock outer = fresh_lock();
  auto records = inherited_records(inherited_records({}, kAddress, outer), other, fresh_lock());
  CHECK(owners(find_outer_locks(records, kAddress)) == std::vector{outer.owner});
  const lock::HeldLock second = fresh_lock();
  records = inherited_records(records, kAddress, second);
  CHECK(records.size() == 3);
  CHECK(owners(find_outer_locks(records, kAddress)) == std::vector{second.owner, outer.owner});
}

TEST_CASE("a server with the same spelling comes before nested ones with another") {
  const LockAddress alias{"db1.example:6379/2", kAddress.prefix, kAddress.name};
  const lock::HeldLock outer = fresh_lock();
  const lock::HeldLock elsewhere = fresh_lock();
  auto records = inherited_records(inherited_records({}, kAddress, outer), alias, elsewhere);
  CHECK(owners(find_outer_locks(records, kAddress)) == std::vector{outer.owner, elsewhere.owner});
  CHECK(owners(find_outer_locks(records, alias)) == std::vector{elsewhere.owner, outer.owner});
}

TEST_CASE("a lock entered under another spelling is found under both, each owner once") {
  const LockAddress alias{"db1.example:6379/2", kAddress.prefix, kAddress.name};
  const lock::HeldLock outer = fresh_lock();
  const lock::HeldLock inner = nested(outer);
  const HolderProcess inside{4712, kProcess.at + Millis(5), Millis(10'000)};
  auto records = inherited_records(inherited_records({}, kAddress, outer), alias, inner, inside);
  for (const LockAddress& address : {kAddress, alias}) {
    auto found = find_outer_locks(records, address);
    REQUIRE(found.size() == 1);
    CHECK(found[0].address == address);
    CHECK(found[0].held_lock.owner == outer.owner);
    CHECK(found[0].process.pid == (address == alias ? inside.pid : kProcess.pid));
  }
}

TEST_CASE("a nested run leaves one record, however deep, with the pid of the innermost run") {
  const lock::HeldLock outer = fresh_lock();
  auto records = inherited_records({}, kAddress, outer);
  for (pid_t pid : {4712, 4713}) {
    records = inherited_records(records, kAddress, nested(outer), {pid, kProcess.at, Millis(0)});
    REQUIRE(records.size() == 1);
    CHECK(records[0].held_lock.owner == outer.owner);
    CHECK(records[0].process.pid == pid);
  }
}

TEST_CASE("an entry that is not a record is skipped, and the others count") {
  const lock::HeldLock held_lock = fresh_lock();
  const std::string good = encode_held(records_for_command({}, {kAddress, held_lock, kProcess}));
  const std::string owner = held_lock.owner.text();
  const std::string process = ",1,1,1";
  for (const std::string& bad :
       std::vector<std::string>{"",
                                ";;;",
                                ",,,,,,,,,",
                                "%",
                                "s,p,n," + owner + ",-1,1,0" + process,
                                "s,p,n," + owner + ",1,0,0" + process,
                                "s,p,n," + owner + ",1,1" + process,
                                "s,p,n," + owner + ",1,1,0",
                                "s,p,n," + owner + ",1,1,0" + process + ",",
                                "s,p,n," + owner + ",1,1,0" + process + ",zz",
                                "%zz,p,n," + owner + ",1,1,0" + process,
                                "s,p%4,n," + owner + ",1,1,0" + process,
                                "s,p,n,owner,1,1,0" + process,
                                "s,p,n," + owner + ",99999999999999999999,1,0" + process,
                                "s,p,n," + owner + ",1,1,99999999999999999" + process,
                                "s,p,n," + owner + ",1,1,0,-1,1,1",
                                "s,p,n," + owner + ",1,1,0,4294967296,1,1",
                                "s,p,n," + owner + ",1,1,0,1,99999999999999999,1",
                                "s,p,n," + owner + ",1,1,0,1,1,99999999999999999",
                                std::string(100'000, ','),
                                "\xFF\x01"}) {
    CAPTURE(bad);
    CHECK(decode_held(bad).empty());
    CHECK(decode_held(bad + ";" + good + ";" + bad).size() == 1);
  }
}

TEST_CASE("no text crashes the reader") {
  util::SystemRandom random;
  const std::string good =
      encode_held(records_for_command({}, {kAddress, nested(fresh_lock()), kProcess}));
  for (int round = 0; round < 2'000; ++round) {
    std::string text = good + ";" + good;
    for (int change = 0; change < 3; ++change) {
      text[random.next() % text.size()] = static_cast<char>(random.next() % 255 + 1);
    }
    text.resize(random.next() % (text.size() + 1));
    CAPTURE(text);
    CHECK(decode_held(encode_held(decode_held(text))).size() == decode_held(text).size());
  }
}
