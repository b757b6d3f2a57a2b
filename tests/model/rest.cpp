// Waiters at rest: the scripts changed so that everybody who waits is far from the head.
#include <doctest/doctest.h>

#include "model/mutants.hpp"

namespace rlock::model {
namespace {

using Mutations = std::vector<contract::Mutation>;

const Mutations kAtRest{{"1 + math.floor(place / NEAR)", "2 + place"},
                        {"rank < NEAR", "rank < 0"},
                        {"n_queue > NEAR", "n_queue > 0"}};

const Bounds kFault{"two clients at rest and a fault", {1, 1}, 1, 1, 0, 0, true};
const Bounds kThree{"three clients at rest", {1, 1, 1}, 1, 0, 0, 0, true};
const Bounds kLoss{"two clients at rest, twice each, data loss", {1, 1}, 2, 0, 1, 0, true};

Findings explore_at_rest(const Bounds& within, const Mutations& change = {}) {
  Mutations mutations = kAtRest;
  mutations.insert(mutations.end(), change.begin(), change.end());
  Server server(contract::Way::short_ways, mutations);
  REQUIRE_MESSAGE(server.mutations_applied(), within.name, ": no place to change");
  return explore(server, within);
}

const std::vector<Mutant> kMutants{
    {"one that has been silent is granted the lock",
     {{"return math.floor(beat) - now <= HEARTBEAT * (beat % 1 * 4)", "return false"}},
     "H:",
     kFault},
    {"the heartbeat of a waiter at rest is not prolonged",
     {{"redis.pcall('ZADD', ALIVE, beat_score(slices), owner)", "1"}},
     "H:",
     kThree},
    {"heartbeats do not grow with the slices",
     {{"now + HEARTBEAT * slices +", "now + HEARTBEAT +"}},
     "H:",
     kThree},
};

}  // namespace

TEST_CASE("the scripts keep every invariant with waiters at rest") {
  for (const Bounds& bound : {kFault, kThree, kLoss}) {
    Findings findings = explore_at_rest(bound);
    MESSAGE(bound.name, ": ", findings.text());
    CHECK(findings.broken.empty());
  }
}

TEST_CASE("each rule for waiters at rest, removed, breaks its invariant") {
  for (const Mutant& mutant : kMutants) {
    Findings findings = explore_at_rest(mutant.within, mutant.change);
    CHECK_MESSAGE(findings.broken.starts_with(mutant.breaks), std::string(mutant.rule), ": ",
                  findings.text());
  }
}

}  // namespace rlock::model
