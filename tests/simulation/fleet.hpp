#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/client.hpp"
#include "simulation/link.hpp"

namespace rlock::sim {

// One script at one server, to be repeated elsewhere.
struct JournalEntry {
  size_t server;
  int64_t micros;  // by the server's clock
  Command words;
  std::string reply;              // as sent
  std::vector<std::string> keys;  // after it; of a few entries of the first server
};

struct Outcome {
  std::vector<Violation> violations;
  Counts counts;
  Nanos lasted{0};                    // in the world
  uint64_t digest = 0;                // of every script, when it ran, and its reply
  std::vector<JournalEntry> journal;  // where wanted
  std::vector<std::string> trace;     // likewise
};

struct Wanted {
  bool journal = false;
  bool trace = false;
};

// What several histories showed.
struct Sums {
  Counts counts;
  double simulated = 0;  // seconds
  uint64_t histories = 0, violations = 0, worlds_violated = 0;

  void add(const Outcome& outcome);
};

// Lets one history happen: the same one each time.
Outcome play(const Scenario& scenario, const Broken& broken = {}, const Wanted& wanted = {});

// The keys of a server as text, one a line: type, contents, expiry.
std::vector<std::string> keys_as_text(Database& database);

}  // namespace rlock::sim
