#include "cli/held.hpp"

#include <doctest/doctest.h>

#include "util/random.hpp"

using namespace rlock;
using namespace rlock::cli;
using util::Millis;

namespace {

const HeldPlace kPlace{"db1:6379/2", "rlock:", "a,b;c%\xC3\xA9 d"};

run::Use use_of(lock::Limit limit = lock::Limit::exclusive()) {
  util::SystemRandom random;
  return {lock::Owner::fresh(random), lock::Token{1'795'233'967'434'283}, limit, Millis(60'000)};
}

run::Use nested(const run::Use& around) {
  util::SystemRandom random;
  run::Use use = around;
  use.entry = lock::Entry::fresh(random);
  return use;
}

const HeldBy kBy{4711, util::TimePoint(Millis(86'400'123)), Millis(30'000)};

// As the command of a run under `use` would find it.
std::vector<HeldRecord> handed_on(const std::vector<HeldRecord>& around, const HeldPlace& place,
                                  const run::Use& use, const HeldBy& by = kBy) {
  return decode_held(encode_held(held_inside(around, {place, use, by})));
}

std::vector<lock::Owner> owners(const std::vector<HeldRecord>& records) {
  std::vector<lock::Owner> owners;
  for (const HeldRecord& record : records) owners.push_back(record.use.owner);
  return owners;
}

}  // namespace

TEST_CASE("a record comes back as it was written, whatever the names hold") {
  for (auto limit : {lock::Limit::exclusive(), lock::Limit::slots(7), lock::Limit::shared()}) {
    const run::Use use = use_of(limit);
    auto records = handed_on({}, kPlace, use);
    REQUIRE(records.size() == 1);
    auto found = held_around(records, kPlace);
    REQUIRE(found.size() == 1);
    CHECK(found[0].place == kPlace);
    CHECK(found[0].use.owner == use.owner);
    CHECK(found[0].use.token == use.token);
    CHECK(found[0].use.limit == use.limit);
    CHECK(found[0].use.min_hold == use.min_hold);
    CHECK_FALSE(found[0].use.nested());
    CHECK(found[0].by.pid == kBy.pid);
    CHECK(found[0].by.at == kBy.at);
    CHECK(found[0].by.renewing == kBy.renewing);
  }
}

TEST_CASE("a process is never younger than its record") {
  const HeldBy by{1, util::TimePoint(std::chrono::nanoseconds(1'000'001)), Millis(0)};
  CHECK(handed_on({}, kPlace, use_of(), by)[0].by.at == util::TimePoint(Millis(2)));
}

TEST_CASE("only the same prefix and name can be the same lock, at whatever spelling of a server") {
  auto records = handed_on({}, kPlace, use_of());
  CHECK(held_around(records, {"db2:6379/2", kPlace.prefix, kPlace.name}).size() == 1);
  CHECK(held_around(records, {kPlace.server, "other:", kPlace.name}).empty());
  CHECK(held_around(records, {kPlace.server, kPlace.prefix, "a"}).empty());
}

TEST_CASE("A inside B inside A finds A again, and the innermost of two holds is the first") {
  const HeldPlace other{kPlace.server, kPlace.prefix, "other"};
  const run::Use outer = use_of();
  auto records = handed_on(handed_on({}, kPlace, outer), other, use_of());
  CHECK(owners(held_around(records, kPlace)) == std::vector{outer.owner});
  const run::Use second = use_of();
  records = handed_on(records, kPlace, second);
  CHECK(records.size() == 3);
  CHECK(owners(held_around(records, kPlace)) == std::vector{second.owner, outer.owner});
}

TEST_CASE("a server that is spelled alike comes before those inside that are not") {
  const HeldPlace alias{"db1.example:6379/2", kPlace.prefix, kPlace.name};
  const run::Use outer = use_of();
  const run::Use elsewhere = use_of();
  auto records = handed_on(handed_on({}, kPlace, outer), alias, elsewhere);
  CHECK(owners(held_around(records, kPlace)) == std::vector{outer.owner, elsewhere.owner});
  CHECK(owners(held_around(records, alias)) == std::vector{elsewhere.owner, outer.owner});
}

TEST_CASE("a lock entered under another spelling is found under both, each owner once") {
  const HeldPlace alias{"db1.example:6379/2", kPlace.prefix, kPlace.name};
  const run::Use outer = use_of();
  const run::Use inner = nested(outer);
  const HeldBy inside{4712, kBy.at + Millis(5), Millis(10'000)};
  auto records = handed_on(handed_on({}, kPlace, outer), alias, inner, inside);
  for (const HeldPlace& place : {kPlace, alias}) {
    auto found = held_around(records, place);
    REQUIRE(found.size() == 1);
    CHECK(found[0].place == place);
    CHECK(found[0].use.owner == outer.owner);
    CHECK(found[0].by.pid == (place == alias ? inside.pid : kBy.pid));
  }
}

TEST_CASE("a command of a nested run carries the owner and the entries of all runs around it") {
  const run::Use outer = use_of();
  const run::Use middle = nested(outer);
  const run::Use inner = nested(outer);
  auto records = handed_on(handed_on(handed_on({}, kPlace, outer), kPlace, middle), kPlace, inner);
  REQUIRE(records.size() == 1);
  CHECK(records[0].entries == std::vector{middle.entry.text(), inner.entry.text()});
  CHECK(encode_held(records).find(outer.owner.text()) != std::string::npos);
}

TEST_CASE("what is no record is left out, and those beside it count") {
  const run::Use use = use_of();
  const std::string good = encode_held(held_inside({}, {kPlace, use, kBy}));
  const std::string owner = use.owner.text();
  const std::string by = ",1,1,1";
  for (const std::string& bad :
       std::vector<std::string>{"",
                                ";;;",
                                ",,,,,,,,,",
                                "%",
                                "s,p,n," + owner + ",-1,1,0" + by,
                                "s,p,n," + owner + ",1,0,0" + by,
                                "s,p,n," + owner + ",1,1" + by,
                                "s,p,n," + owner + ",1,1,0",
                                "s,p,n," + owner + ",1,1,0" + by + ",",
                                "s,p,n," + owner + ",1,1,0" + by + ",zz",
                                "%zz,p,n," + owner + ",1,1,0" + by,
                                "s,p%4,n," + owner + ",1,1,0" + by,
                                "s,p,n,owner,1,1,0" + by,
                                "s,p,n," + owner + ",99999999999999999999,1,0" + by,
                                "s,p,n," + owner + ",1,1,99999999999999999" + by,
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
  const std::string good = encode_held(held_inside({}, {kPlace, nested(use_of()), kBy}));
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
