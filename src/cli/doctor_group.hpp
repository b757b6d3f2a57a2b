#pragma once

#include "cli/doctor_checks.hpp"
#include "redis/survey_group.hpp"

// What the answers of servers that are one place together mean for locks. [CLI.md, doctor]
namespace rlock::cli {

Diagnosis diagnose(const redis::GroupSurvey& survey);
Diagnosis diagnose(const redis::ClusterSurvey& survey);

}  // namespace rlock::cli
