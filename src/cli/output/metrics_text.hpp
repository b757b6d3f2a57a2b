#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/view.hpp"

namespace rlock::cli {

// The text format of Prometheus: what `rlock metrics` prints. `omitted`: how many locks there were
// no room for. A lock that could not be read is left out.
std::string metrics_text(const std::vector<LockView>& locks, uint64_t omitted);

// That the server did not answer.
std::string metrics_of_no_server();

// The later one of the last success and the last failure: how long that run took.
std::optional<Millis> last_duration(const lock::Snapshot& snapshot);

// Whether the last run whose result is known failed.
bool last_run_failed(const lock::Snapshot& snapshot);

// The longest that a holder has held it, and that one of the listed waiters has waited; 0: nobody.
Millis longest_hold(const lock::Snapshot& snapshot);
Millis longest_wait(const lock::Snapshot& snapshot);

}  // namespace rlock::cli
