#include "cli/commands/doctor_checks.hpp"

namespace rlock::cli {
namespace {

using redis::ClusterReport;
using redis::GroupReport;
using redis::SentinelReport;

std::string count_of(size_t some, size_t all) {
  return std::to_string(some) + " of " + std::to_string(all);
}

Check sentinels(const GroupReport& report) {
  size_t answer = 0;
  std::string errors;
  bool denied = false;
  for (const SentinelReport& one : report.sentinels) {
    if (!one.error) {
      ++answer;
      continue;
    }
    errors += "; " + one.error->text;
    denied = denied || one.error->kind == ErrorKind::denied;
  }
  const std::string text = count_of(answer, report.sentinels.size()) + " answer" + errors;
  if (answer == report.sentinels.size()) return {"sentinels", Grade::ok, text};
  return {"sentinels", answer == 0 ? Grade::fail : Grade::warn, text,
          denied ? "check sentinel_username and sentinel_password; this user needs " +
                       std::string(redis::kSentinelAcl)
                 : "check these sentinels, and the name of the master in the URL"};
}

Check agreement(const GroupReport& report) {
  std::string named;
  bool unanimous = true;
  const std::string* first = nullptr;
  for (const SentinelReport& one : report.sentinels) {
    if (one.error) continue;
    if (first == nullptr) first = &one.master;
    unanimous = unanimous && one.master == *first;
    named += (named.empty() ? "" : ", ") + one.server.label() + " names " + one.master;
  }
  if (!report.master) {
    return {"master", Grade::fail,
            named.empty() ? "no sentinel names a master" : "no majority: " + named,
            "runs wait until a majority of the sentinels in the URL name the same master"};
  }
  if (unanimous) return {"master", Grade::ok, report.master->label() + " (all sentinels agree)"};
  return {"master", Grade::warn, named, "a failover is under way, or a sentinel is cut off"};
}

Check failover(const GroupReport& report) {
  for (const SentinelReport& one : report.sentinels) {
    if (!one.no_quorum) continue;
    const bool denied = one.no_quorum->kind == ErrorKind::denied;
    return {"failover", Grade::warn, one.no_quorum->text,
            denied ? "allow this user to run SENTINEL CKQUORUM (+sentinel|ckquorum)"
                   : "if the master fails now, no replica will take its place"};
  }
  return {"failover", Grade::ok, "there are enough sentinels for a failover"};
}

Check state(const ClusterReport& report) {
  if (report.state == "ok") return {"cluster", Grade::ok, "the state of the cluster is ok"};
  return {"cluster", Grade::fail,
          "the state of the cluster is " + (report.state.empty() ? "unknown" : report.state),
          "redis-cli --cluster check HOST:PORT"};
}

Check slots(const ClusterReport& report) {
  const std::string text = count_of(report.slots_served, redis::kSlots) + " slots are served";
  if (report.slots_served == redis::kSlots) return {"slots", Grade::ok, text};
  return {"slots", Grade::fail, text,
          "locks in the other slots cannot be acquired: redis-cli --cluster fix HOST:PORT"};
}

}  // namespace

Diagnosis diagnose(const GroupReport& report) {
  Diagnosis diagnosis{report.label, {sentinels(report), agreement(report)}};
  if (report.master) diagnosis.checks.push_back(failover(report));
  return diagnosis;
}

Diagnosis diagnose(const ClusterReport& report) {
  if (report.error) {
    const bool denied = report.error->kind == ErrorKind::denied;
    return {
        report.label,
        {{"cluster", Grade::fail, report.error->text,
          denied ? "check the user and the password, and allow this user to run CLUSTER INFO and "
                   "CLUSTER NODES (+cluster|info +cluster|nodes)"
                 : "check the URL, and that its servers are nodes of a cluster"}}};
  }
  return {report.label, {state(report), slots(report)}};
}

}  // namespace rlock::cli
