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

// As the command of a run under `use` would find it.
std::vector<HeldRecord> handed_on(const std::vector<HeldRecord>& around, const HeldPlace& place,
                                  const run::Use& use) {
  return decode_held(encode_held(held_inside(around, place, use)));
}

}  // namespace

TEST_CASE("a record comes back as it was written, whatever the names hold") {
  for (auto limit : {lock::Limit::exclusive(), lock::Limit::slots(7), lock::Limit::shared()}) {
    const run::Use use = use_of(limit);
    auto records = handed_on({}, kPlace, use);
    REQUIRE(records.size() == 1);
    auto found = held_around(records, kPlace);
    REQUIRE(found);
    CHECK(found->owner == use.owner);
    CHECK(found->token == use.token);
    CHECK(found->limit == use.limit);
    CHECK(found->min_hold == use.min_hold);
    CHECK_FALSE(found->nested());
  }
}

TEST_CASE("only the same server, prefix and name are the same lock") {
  auto records = handed_on({}, kPlace, use_of());
  CHECK_FALSE(held_around(records, {"db2:6379/2", kPlace.prefix, kPlace.name}));
  CHECK_FALSE(held_around(records, {kPlace.server, "other:", kPlace.name}));
  CHECK_FALSE(held_around(records, {kPlace.server, kPlace.prefix, "a"}));
}

TEST_CASE("A inside B inside A finds A again, and the innermost of two holds counts") {
  const HeldPlace other{kPlace.server, kPlace.prefix, "other"};
  const run::Use outer = use_of();
  auto records = handed_on(handed_on({}, kPlace, outer), other, use_of());
  REQUIRE(held_around(records, kPlace));
  CHECK(held_around(records, kPlace)->owner == outer.owner);
  const run::Use second = use_of();
  records = handed_on(records, kPlace, second);
  CHECK(records.size() == 3);
  CHECK(held_around(records, kPlace)->owner == second.owner);
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
  const std::string good = encode_held(held_inside({}, kPlace, use));
  const std::string owner = use.owner.text();
  for (const std::string& bad : std::vector<std::string>{
           "", ";;;", ",,,,,,", "%", "s,p,n," + owner + ",-1,1,0", "s,p,n," + owner + ",1,0,0",
           "s,p,n," + owner + ",1,1", "s,p,n," + owner + ",1,1,0,", "s,p,n," + owner + ",1,1,0,zz",
           "%zz,p,n," + owner + ",1,1,0", "s,p%4,n," + owner + ",1,1,0", "s,p,n,owner,1,1,0",
           "s,p,n," + owner + ",99999999999999999999,1,0",
           "s,p,n," + owner + ",1,1,99999999999999999", std::string(100'000, ','), "\xFF\x01"}) {
    CAPTURE(bad);
    CHECK(decode_held(bad).empty());
    CHECK(decode_held(bad + ";" + good + ";" + bad).size() == 1);
  }
}

TEST_CASE("no text crashes the reader") {
  util::SystemRandom random;
  const std::string good = encode_held(held_inside({}, kPlace, nested(use_of())));
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
