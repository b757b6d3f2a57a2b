#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/doctor_checks.hpp"

namespace rlock::cli {

// The document of `doctor --json`. `together`: what is said of several servers at once.
std::string doctor_json(const std::vector<Diagnosis>& servers,
                        const std::optional<Check>& independence, const std::string& acl_rule);

}  // namespace rlock::cli
