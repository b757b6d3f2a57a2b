#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/server.hpp"
#include "model/world.hpp"

namespace rlock::model {

// What is explored to the end: all orders in which these clients, faults and operators may act.
struct Bounds {
  std::string name;
  std::vector<int64_t> limits;  // of the clients: 1 is exclusive
  int rounds = 1;               // acquisitions of each client
  int faults = 0;               // slow or lost messages, deaths, stops: so many in all
  int losses = 0;               // of the server's data
  int forces = 0;               // by an operator
  bool rest = false;            // waiters are at rest in every place, as if many were before them
  std::vector<Work> works{};    // of the clients, in their order; the others have none
  int forgets = 0;              // by an operator
  int failures = 0;             // of commands that are to be done once, and whose lease lasts
  size_t states = 0;            // found when they were last explored to the end; 0: unknown
};

struct Findings {
  std::string broken;              // the invariant, or "" where all hold
  std::vector<std::string> trace;  // the shortest way there
  size_t states = 0;
  size_t transitions = 0;
  size_t depth = 0;
  long long longest_wait = 0;  // ms that a live waiter needs at most once nothing fails any more
  std::string text() const;
};

// Breadth first; stops at the first broken invariant. Where it takes long it prints how far it is.
Findings explore(Server& server, const Bounds& bounds);

}  // namespace rlock::model
