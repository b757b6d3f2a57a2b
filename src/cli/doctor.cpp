#include <algorithm>

#include "cli/commands.hpp"
#include "cli/connect.hpp"
#include "cli/describe.hpp"
#include "cli/doctor_json.hpp"
#include "redis/acl.hpp"
#include "redis/open.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

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

bool failed(const std::vector<Diagnosis>& servers, const std::optional<Check>& together) {
  auto bad = [](const Check& check) { return check.grade == Grade::fail; };
  return (together && bad(*together)) ||
         std::any_of(servers.begin(), servers.end(), [&](const Diagnosis& server) {
           return std::any_of(server.checks.begin(), server.checks.end(), bad);
         });
}

// No server to examine where its private one cannot be started.
Result<std::vector<redis::Survey>> survey_all(const redis::OpenOptions& options) {
  auto servers = redis::servers(options);
  if (!servers) return std::move(servers).error();
  std::vector<redis::Survey> surveys;
  for (const redis::Server& server : *servers) {
    surveys.push_back(redis::survey(server, options.prefix));
  }
  return surveys;
}

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
  auto surveys = survey_all(*options);
  if (!surveys) return fail(surveys.error(), choices);
  std::vector<Diagnosis> servers;
  for (size_t i = 0; i < surveys->size(); ++i) {
    const redis::Survey& survey = (*surveys)[i];
    servers.push_back(diagnose(survey, options->prefix));
    bool local = options->urls[i].starts_with("local:");
    if (local) servers.back().checks.push_back(local_check(survey.server));
  }
  std::optional<Check> together;
  if (surveys->size() > 1) together = independence_check(*surveys);
  const int code = failed(servers, together) ? kFailed : 0;
  if (choices.has(Opt::json)) {
    return deliver(doctor_json(servers, together, redis::least_acl(options->prefix)), code);
  }
  return deliver(choices.has(Opt::quiet) ? std::string() : text_of(servers, together), code);
}

}  // namespace rlock::cli
