#include "model/mutants.hpp"

#include <doctest/doctest.h>

namespace rlock::model {

void check_caught(const Mutant& mutant) {
  Server server(mutant.change);
  CHECK_MESSAGE(server.mutations_applied(), std::string(mutant.rule), ": no place to change");
  if (!server.mutations_applied()) return;
  Findings findings = explore(server, mutant.within);
  CHECK_MESSAGE(findings.broken.starts_with(mutant.breaks), std::string(mutant.rule), ": ",
                findings.text());
  MESSAGE(std::string(mutant.rule), ": ", findings.text());
}

}  // namespace rlock::model
