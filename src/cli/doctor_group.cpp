#include "cli/doctor_group.hpp"

namespace rlock::cli {
namespace {

using redis::ClusterSurvey;
using redis::GroupSurvey;
using redis::SentinelSurvey;

std::string of(size_t some, size_t all) {
  return std::to_string(some) + " of " + std::to_string(all);
}

Check sentinels(const GroupSurvey& survey) {
  size_t answer = 0;
  std::string troubles;
  bool denied = false;
  for (const SentinelSurvey& one : survey.sentinels) {
    if (!one.trouble) {
      ++answer;
      continue;
    }
    troubles += "; " + one.trouble->text;
    denied = denied || one.trouble->kind == util::ErrorKind::denied;
  }
  const std::string text = of(answer, survey.sentinels.size()) + " answer" + troubles;
  if (answer == survey.sentinels.size()) return {"sentinels", Grade::ok, text};
  return {"sentinels", answer == 0 ? Grade::fail : Grade::warn, text,
          denied ? "check sentinel_username and sentinel_password; such a user needs " +
                       std::string(redis::kSentinelAcl)
                 : "check these sentinels, and the master's name in the URL"};
}

Check agreement(const GroupSurvey& survey) {
  std::string named;
  bool one_word = true;
  const std::string* first = nullptr;
  for (const SentinelSurvey& one : survey.sentinels) {
    if (one.trouble) continue;
    if (first == nullptr) first = &one.master;
    one_word = one_word && one.master == *first;
    named += (named.empty() ? "" : ", ") + one.server.label() + " names " + one.master;
  }
  if (!survey.master) {
    return {"master", Grade::fail, named.empty() ? "nobody names one" : "no majority: " + named,
            "runs wait until most of the sentinels in the URL name the same master"};
  }
  if (one_word) return {"master", Grade::ok, survey.master->label() + ", by the word of all"};
  return {"master", Grade::warn, named, "a failover is under way, or a sentinel is cut off"};
}

Check failover(const GroupSurvey& survey) {
  for (const SentinelSurvey& one : survey.sentinels) {
    if (!one.no_quorum) continue;
    const bool denied = one.no_quorum->kind == util::ErrorKind::denied;
    return {"failover", Grade::warn, one.no_quorum->text,
            denied ? "let the doctor ask (+sentinel|ckquorum)"
                   : "when the master dies now, nobody is put in its place"};
  }
  return {"failover", Grade::ok, "enough sentinels for one"};
}

Check state(const ClusterSurvey& survey) {
  if (survey.state == "ok") return {"cluster", Grade::ok, "its state is ok"};
  return {"cluster", Grade::fail,
          survey.state.empty() ? "its state is not told" : "its state is " + survey.state,
          "redis-cli --cluster check HOST:PORT"};
}

Check slots(const ClusterSurvey& survey) {
  const std::string text = of(survey.slots_served, redis::kSlots) + " slots are served";
  if (survey.slots_served == redis::kSlots) return {"slots", Grade::ok, text};
  return {"slots", Grade::fail, text,
          "locks whose slot nobody serves cannot be had: redis-cli --cluster fix HOST:PORT"};
}

}  // namespace

Diagnosis diagnose(const GroupSurvey& survey) {
  Diagnosis diagnosis{survey.label, {sentinels(survey), agreement(survey)}};
  if (survey.master) diagnosis.checks.push_back(failover(survey));
  return diagnosis;
}

Diagnosis diagnose(const ClusterSurvey& survey) {
  if (survey.trouble) {
    const bool denied = survey.trouble->kind == util::ErrorKind::denied;
    return {survey.label,
            {{"cluster", Grade::fail, survey.trouble->text,
              denied ? "check user and password, and let the doctor ask "
                       "(+cluster|info +cluster|nodes)"
                     : "check the URL, and that these are nodes of a cluster"}}};
  }
  return {survey.label, {state(survey), slots(survey)}};
}

}  // namespace rlock::cli
