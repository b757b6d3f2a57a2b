#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/diagnosis.hpp"
#include "lock/lease.hpp"
#include "redis/doctor.hpp"

// The checks of `rlock doctor`: whether a server is suitable for locks.
namespace rlock::cli {

// Diagnoses one server.
Diagnosis diagnose(const redis::ServerReport& report);
// Diagnoses a group as a whole.
Diagnosis diagnose(const redis::GroupReport& report);
Diagnosis diagnose(const redis::ClusterReport& report);
// Checks whether several URLs lead to as many different servers.
Check independence(const std::vector<redis::ServerReport>& reports);

// Checks whether a run with this lease survives a failover of the group. Returns nullopt if no
// server reports after which time it replaces a master.
std::optional<Check> outage(const redis::GroupReport& report,
                            const lock::LeaseMonitor::Settings& lease);
std::optional<Check> outage(const redis::ClusterReport& report,
                            const lock::LeaseMonitor::Settings& lease);
// Checks whether a run with this lease survives an outage that a failover ends after `takes`,
// according to `setting`. Otherwise advises the shortest --ttl that does, in steps of at least 10
// s.
Check outage(const lock::LeaseMonitor::Settings& lease, Millis takes, const std::string& setting);

}  // namespace rlock::cli
