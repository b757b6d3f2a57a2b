#include <doctest/doctest.h>

#include <cstdlib>

#include "model/explore.hpp"

namespace rlock::model {
namespace {

constexpr int64_t kShared = 1'000'000'000;

const std::vector<Bounds>& bounds() {
  static const std::vector<Bounds> list{
      {"two clients, one fault", {1, 1}, 1, 1, 0, 0},
      {"two clients, an operator and a fault", {1, 1}, 1, 1, 0, 1},
      {"three clients, data loss", {1, 1, 1}, 1, 0, 1, 0},
      {"three clients, an operator", {1, 1, 1}, 1, 0, 0, 1},
      {"two clients, twice each, data loss", {1, 1}, 2, 0, 1, 0},
      {"exclusive, two slots and shared", {1, 2, kShared}, 1, 0, 0, 0},
  };
  return list;
}

}  // namespace

TEST_CASE("the scripts keep the promises in every order of events within the bounds") {
  Server server;
  for (const Bounds& bound : bounds()) {
    Findings findings = explore(server, bound);
    MESSAGE(bound.name, ": ", findings.text());
    CHECK(findings.broken.empty());
  }
}

}  // namespace rlock::model
