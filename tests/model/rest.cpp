// Waiters at rest: the scripts changed so that everybody who waits is far from the head.
#include <doctest/doctest.h>

#include "model/mutants.hpp"

namespace rlock::model {
namespace {

using Mutations = std::vector<contract::Mutation>;

const Mutations kAtRest{{"1 + math.floor(place / 64)", "2 + place"},
                        {"s.n_queue > 64", "s.n_queue > 0"}};

const Bounds kRestFault{"two clients at rest and a fault", {1, 1}, 1, 1, 0, 0, true};
const Bounds kThree{"three clients at rest", {1, 1, 1}, 1, 0, 0, 0, true};
const Bounds kRestLoss{"two clients at rest, twice each, data loss", {1, 1}, 2, 0, 1, 0, true};

Findings explore_at_rest(const Bounds& within, const Mutations& change = {}) {
  Mutations mutations = kAtRest;
  mutations.insert(mutations.end(), change.begin(), change.end());
  Server server(mutations);
  REQUIRE_MESSAGE(server.mutations_applied(), within.name, ": no place to change");
  return explore(server, within);
}

const std::vector<Mutant> kRestMutants{
    {"one that has been silent is granted the lock",
     {{"math.floor(beat) - now <= 15000 * (beat % 1 * 4)", "false"}},
     "H:",
     kRestFault},
    {"the heartbeat of a waiter at rest is not prolonged",
     {{"if ticket then beat() end", ""}},
     "H:",
     kThree},
    {"heartbeats do not grow with the slices",
     {{"now + 15000 * slices +", "now + 15000 +"}},
     "H:",
     kThree},
};

}  // namespace

TEST_CASE("the scripts keep every invariant with waiters at rest") {
  for (const Bounds& bound : {kRestFault, kThree, kRestLoss}) {
    Findings findings = explore_at_rest(bound);
    MESSAGE(bound.name, ": ", findings.text());
    CHECK(findings.broken.empty());
  }
}

TEST_CASE("each rule for waiters at rest, removed, breaks its invariant") {
  for (const Mutant& mutant : kRestMutants) {
    Findings findings = explore_at_rest(mutant.within, mutant.change);
    CHECK_MESSAGE(findings.broken.starts_with(mutant.breaks), std::string(mutant.rule), ": ",
                  findings.text());
  }
}

}  // namespace rlock::model
