#pragma once

#include "cli/commands/doctor_checks.hpp"
#include "redis/doctor/group_report.hpp"

// What the answers of servers that are one place together mean for locks.
namespace rlock::cli {

Diagnosis diagnose(const redis::GroupReport& report);
Diagnosis diagnose(const redis::ClusterReport& report);

}  // namespace rlock::cli
