#include <algorithm>

#include "cli/commands.hpp"
#include "cli/connect.hpp"
#include "cli/describe.hpp"
#include "cli/doctor_group.hpp"
#include "cli/doctor_json.hpp"
#include "redis/acl.hpp"
#include "redis/open.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using redis::Standing;
using util::ErrorKind;

constexpr int kFailed = 1;

std::string check_line(const Check& check) {
  std::string line = "  " + std::string(word_of(check.grade));
  line.resize(8, ' ');
  line += check.name;
  line.resize(std::max<size_t>(line.size() + 2, 22), ' ');
  line += util::printable(check.detail) + "\n";
  if (!check.advice.empty())
    line += std::string(22, ' ') + "-> " + util::printable(check.advice) + "\n";
  return line;
}

std::string text_of(const std::vector<Diagnosis>& servers, const std::optional<Check>& together) {
  std::string text;
  for (const Diagnosis& server : servers) {
    text += util::printable(server.server) + "\n";
    for (const Check& check : server.checks) text += check_line(check);
  }
  if (together) text += "all servers\n" + check_line(*together);
  return text;
}

bool failed(const std::vector<Diagnosis>& servers, const std::optional<Check>& together,
            const Choices& choices) {
  const bool strict = choices.has(Opt::strict);
  auto bad = [strict](const Check& check) {
    return check.grade == Grade::fail || (strict && check.grade == Grade::warn);
  };
  return (together && bad(*together)) ||
         std::any_of(servers.begin(), servers.end(), [&](const Diagnosis& server) {
           return std::any_of(server.checks.begin(), server.checks.end(), bad);
         });
}

// Each place with all that is found there.
class Examination {
 public:
  explicit Examination(const redis::OpenOptions& options) : options_(options) {}

  void operator()(const redis::Server& server) {
    const bool quorum = options_.urls.size() > 1;
    examine(server, quorum ? Standing::of_quorum : Standing::alone);
    const bool local = options_.urls[surveys_.size() - 1].starts_with("local:");
    if (local) found_.back().checks.push_back(local_check(server));
  }

  void operator()(const redis::SentinelGroup& group) {
    const redis::GroupSurvey survey = redis::survey_group(group);
    found_.push_back(diagnose(survey));
    standing_ = Standing::of_sentinels;
    if (survey.master) examine(*survey.master, standing_);
  }

  void operator()(const redis::ClusterSeeds& cluster) {
    const redis::ClusterSurvey survey = redis::survey_cluster(cluster);
    found_.push_back(diagnose(survey));
    standing_ = Standing::of_cluster;
    for (const redis::Server& master : survey.masters) examine(master, standing_);
  }

  const std::vector<Diagnosis>& found() const { return found_; }
  std::string acl_rule() const { return redis::least_acl(options_.prefix, standing_); }
  std::optional<Check> together() const {
    if (options_.urls.size() == 1) return std::nullopt;
    return independence_check(surveys_);
  }

 private:
  void examine(const redis::Server& server, Standing standing) {
    standing_ = standing;
    surveys_.push_back(redis::survey(server, options_.prefix, standing));
    found_.push_back(diagnose(surveys_.back(), options_.prefix, standing));
  }

  const redis::OpenOptions& options_;
  Standing standing_ = Standing::alone;
  std::vector<redis::Survey> surveys_;
  std::vector<Diagnosis> found_;
};

bool no_names(const Invocation& invocation) {
  return invocation.names.empty() && !invocation.after_dashes;
}

}  // namespace

int doctor_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  if (!no_names(invocation)) {
    return fail({ErrorKind::usage, "doctor takes no NAME: it looks at the server"}, choices);
  }
  auto options = connection_options(choices, system_getenv);
  if (!options) return fail(options.error(), choices);
  // No server to examine where its private one cannot be started.
  auto places = redis::places(*options);
  if (!places) return fail(places.error(), choices);
  Examination examination(*options);
  for (const redis::Place& place : *places) std::visit(examination, place);
  const std::vector<Diagnosis>& servers = examination.found();
  const std::optional<Check> together = examination.together();
  const int code = failed(servers, together, choices) ? kFailed : 0;
  if (choices.has(Opt::json)) {
    return deliver(doctor_json(servers, together, examination.acl_rule()), code);
  }
  return deliver(choices.has(Opt::quiet) ? std::string() : text_of(servers, together), code);
}

}  // namespace rlock::cli
