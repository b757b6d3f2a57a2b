#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/server.hpp"
#include "model/world.hpp"

namespace rlock::model {

// What is explored: all orders in which these clients, faults and operators may act.
struct Bounds {
  std::string name{};
  std::vector<int64_t>
      limits{};               // of the clients: 1 is exclusive; so are all that it does not name
  std::vector<Work> works{};  // of the clients, in their order; the others have none
  int rounds = 1;             // acquisitions of each client
  int faults = 0;             // slow or lost messages, deaths, stops: so many in all
  int losses = 0;             // of the server's data
  int forces = 0;             // by an operator
  int forgets = 0;            // likewise
  int closures = 0;           // likewise; each may be opened
  int failures = 0;           // of commands that are to be done once, and whose lease lasts
  bool rest = false;          // waiters are at rest in every place, as if many were before them

  size_t clients() const { return std::max(limits.size(), works.size()); }
};

struct Findings {
  std::string broken;              // the invariant, or "" where all hold
  std::vector<std::string> trace;  // the shortest way there
  size_t states = 0;
  size_t transitions = 0;
  size_t depth = 0;            // most steps from the start to a state
  size_t whole_depth = 0;      // if the search was cut: every order of so many steps was explored
  long long longest_wait = 0;  // ms that a live waiter needs at most once nothing fails any more
  std::string text() const;
};

// Breadth first, with changes of the scripts; stops at the first broken invariant, and cuts the
// search at `most_states`. Throws where there is no place for a change.
Findings explore(const Bounds& bounds, std::vector<test::TextChange> changes = {},
                 size_t most_states = SIZE_MAX);

}  // namespace rlock::model
