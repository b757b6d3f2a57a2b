#include "cli/commands/doctor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/deadlock.hpp"
#include "cli/options/values.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/resolve.hpp"
#include "cli/settings/run_settings.hpp"
#include "redis/net/secret.hpp"
#include "redis/net/url.hpp"
#include "redis/open.hpp"
#include "run/contain.hpp"
#include "run/requests.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr int kFailed = 1;

std::string check_line(const Check& check) {
  std::string line = util::format("  {:<6}{:<12}  {}\n", to_string(check.grade), check.name,
                                  util::printable(check.detail));
  if (!check.advice.empty())
    line += util::format("{:22}-> {}\n", "", util::printable(check.advice));
  return line;
}

// Neither a failure nor a warning, because few runs need containment.
Check contain_check(run::Contain how) {
  const bool as_user = how == run::Contain::as_user;
  auto contained = run::try_to_contain(how);
  return {as_user ? "contain user" : "contain", contained ? Grade::ok : Grade::no,
          contained
              ? util::format("rlock run --contain{} works on this host", as_user ? "=user" : "")
              : contained.error().text};
}

Check proc_check() {
  const bool seen = util::proc_is_ours();
  if (seen && util::may_adopt_orphans())
    return {"proc", Grade::ok, "/proc shows the processes of a command"};
  return {"proc", Grade::warn,
          seen ? "the kernel refuses PR_SET_CHILD_SUBREAPER"
               : "/proc is not mounted, or does not show this process",
          util::format("{}: without it, what a command starts in a session of its own may outlive "
                       "the lease",
                       seen ? "allow it in the seccomp filter or sandbox" : "mount /proc")};
}

// Whether another user owns the password file. That user decides how rlock logs in. Never a
// failure, because root may run jobs of an application, and in a container a mounted file may
// belong to a user of the host. nullopt without such a file.
std::optional<Check> password_file_check(const Choices& choices) {
  constexpr const char* kCheck = "password";
  const auto path = choices.last(Opt::password_file);
  struct stat info {};
  if (!path || stat(path->c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_uid == 0 || info.st_uid == geteuid()) {
    return Check{kCheck, Grade::ok, "root or this user owns the password file"};
  }
  const std::string name = util::name_in_passwd(info.st_uid);
  return Check{
      kCheck, Grade::warn,
      util::format(
          "{} owns the password file, and can change the password with which rlock logs in",
          name.empty() ? util::format("user {}", info.st_uid) : name),
      "if you do not trust this user, become the owner: chown \"$(id -u)\" " +
          util::shell_quoted(*path)};
}

bool has_password(const redis::Url& url) {
  const redis::Server* server = redis::server_in(url);
  return server != nullptr && !server->password.empty();
}

// The origin of the password for the server in the URL.
std::optional<std::string> password_place(const redis::OpenOptions& options,
                                          const Choices& choices) {
  for (Opt id : {Opt::password_command, Opt::password_file, Opt::password}) {
    if (choices.has(id)) return choices[id].place;
  }
  const bool in_url = std::any_of(options.urls.begin(), options.urls.end(), has_password);
  return in_url ? std::optional(choices[Opt::url].place) : std::nullopt;
}

std::string text_of(const DoctorReport& found) {
  std::string text = util::printable(util::format(
      "the URL comes from {}, {}", found.url_place,
      found.password_place ? "the password from " + *found.password_place : "without password"));
  text += "\n";
  for (const std::string& sentence : found.ignored) text += util::printable(sentence) + "\n";
  for (const Diagnosis& server : found.servers) {
    text += util::printable(server.server) + "\n";
    for (const Check& check : server.checks) text += check_line(check);
  }
  if (found.independence) text += "all servers\n" + check_line(*found.independence);
  if (found.versions) text += "all locks\n" + check_line(*found.versions);
  if (found.deadlocks) text += check_line(*found.deadlocks);
  text += "this host\n";
  if (found.password) text += check_line(*found.password);
  return text + check_line(found.proc) + check_line(found.contain) + check_line(found.contain_user);
}

bool any_has(const std::vector<Diagnosis>& servers, Grade least) {
  return std::any_of(servers.begin(), servers.end(), [&](const Diagnosis& server) {
    return std::any_of(server.checks.begin(), server.checks.end(),
                       [&](const Check& check) { return check.grade >= least; });
  });
}

bool failed(const DoctorReport& found, bool strict) {
  const Grade least = strict ? Grade::warn : Grade::fail;
  auto is_bad = [&](const std::optional<Check>& check) { return check && check->grade >= least; };
  return is_bad(found.password) || is_bad(found.proc) || is_bad(found.independence) ||
         is_bad(found.versions) || is_bad(found.deadlocks) || any_has(found.servers, least);
}

Result<std::vector<LockView>> locks_in_use(Session& session) {
  TRY(auto all, all_names(session, ListedNames::in_use));
  const auto names = selected(std::move(all.names));
  auto snapshots = inspect_holders(session, names);
  std::vector<LockView> locks;
  for (size_t i = 0; i < names.size(); ++i) {
    locks.push_back({names[i].text(), std::move(snapshots[i]), session.format()});
  }
  return locks;
}

// Whether this rlock knows all that the locks in use need.
Check versions(const std::vector<LockView>& locks) {
  constexpr const char* kCheck = "versions";
  for (const LockView& lock : locks) {
    std::string detail;
    if (lock.snapshot && lock.snapshot->needs) {
      detail = util::format("to acquire {} needs {}", in_quotes(lock.name),
                            needs_phrase(*lock.snapshot->needs));
    } else if (!lock.snapshot && lock.snapshot.error().cause == Cause::other_version) {
      detail = lock.snapshot.error().text;
    } else {
      continue;
    }
    return {kCheck, Grade::warn, detail, "rlock status shows all locks of this kind"};
  }
  return {kCheck, Grade::ok,
          util::format("this rlock stores locks in form {}, and knows every rule of these locks",
                       redis::stored_form())};
}

// Whether runs wait for each other.
Check deadlocks(Session& session, std::vector<LockView> locks) {
  constexpr const char* kCheck = "deadlocks";
  mark_deadlocks(session, locks);
  auto found = std::find_if(locks.begin(), locks.end(),
                            [](const LockView& lock) { return !lock.deadlock.empty(); });
  if (found == locks.end()) return {kCheck, Grade::ok, "no runs wait for each other"};
  return {kCheck, Grade::warn, found->deadlock,
          "stop one of these runs, or break a lock with rlock force-unlock"};
}

// The locks of a quorum are not checked for deadlocks.
void check_locks(DoctorReport& found, redis::OpenOptions options) {
  const bool quorum = options.urls.size() > 1;
  auto session = Session::open(std::move(options));
  auto locks = session ? locks_in_use(*session) : Result<std::vector<LockView>>(session.error());
  if (!locks) {
    found.versions =
        Check{"versions", Grade::warn, "not tested: " + locks.error().text, "try again"};
    return;
  }
  found.versions = versions(*locks);
  if (!quorum) found.deadlocks = deadlocks(*session, *std::move(locks));
}

// Examines each target of the URLs and checks the result.
class Doctor {
 public:
  Doctor(const redis::OpenOptions& options, const lock::LeaseMonitor::Settings& lease)
      : options_(options), lease_(lease) {}

  void operator()(const redis::Server& server) {
    const bool quorum = options_.urls.size() > 1;
    check_server(server, quorum ? redis::ServerKind::quorum_member : redis::ServerKind::single);
    const redis::Url& url = options_.urls[reports_.size() - 1];
    if (std::holds_alternative<redis::LocalUrl>(url)) {
      diagnoses_.back().checks.push_back(
          {"local", Grade::ok,
           "rlock started this server and keeps it for the next run; rlock stop-local stops it"});
    }
  }

  void operator()(const redis::SentinelGroup& group) {
    const redis::GroupReport report = redis::examine_group(group);
    add(diagnose(report), outage(report, lease_));
    kind_ = redis::ServerKind::sentinel_master;
    if (report.master) check_server(*report.master, kind_);
  }

  void operator()(const redis::ClusterSeeds& cluster) {
    const redis::ClusterReport report = redis::examine_cluster(cluster);
    add(diagnose(report), outage(report, lease_));
    kind_ = redis::ServerKind::cluster_node;
    for (const redis::Server& master : report.masters) check_server(master, kind_);
  }

  const std::vector<Diagnosis>& diagnoses() const { return diagnoses_; }
  std::string acl_rule() const {
    return redis::least_acl(options_.prefix, kind_, options_.replicas);
  }
  std::optional<Check> independence() const {
    if (options_.urls.size() == 1) return std::nullopt;
    return cli::independence(reports_);
  }

 private:
  void add(Diagnosis diagnosis, std::optional<Check> outage) {
    if (outage) diagnosis.checks.push_back(*std::move(outage));
    diagnoses_.push_back(std::move(diagnosis));
  }

  void check_server(const redis::Server& server, redis::ServerKind kind) {
    kind_ = kind;
    reports_.push_back(redis::examine_server(server, {options_.prefix, kind, options_.replicas}));
    diagnoses_.push_back(diagnose(reports_.back()));
  }

  const redis::OpenOptions& options_;
  const lock::LeaseMonitor::Settings lease_;  // the lease of a run with the same settings
  redis::ServerKind kind_ = redis::ServerKind::single;
  std::vector<redis::ServerReport> reports_;
  std::vector<Diagnosis> diagnoses_;
};

}  // namespace

Result<Report> doctor_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  if (!invocation.names.empty() || invocation.after_dashes) {
    return usage("doctor takes no NAME: it checks the server");
  }
  TRY(auto options, connection_options(choices));
  // Fails if a private server cannot be started.
  TRY(auto targets, redis::targets(options));
  TRY(const auto run,
      run_settings({CommandId::run, choices, {"doctor"}, {{"true"}}}, system_getenv));
  Doctor doctor(options, run::lease_settings(run.plan.claim.ttl, options.replicas,
                                             run.plan.kill_after, run.plan.watchdog));
  for (const redis::ServerTarget& target : targets) std::visit(doctor, target);
  DoctorReport found{choices[Opt::url].place, password_place(options, choices),
                     ignored_settings(choices), doctor.diagnoses(), doctor.acl_rule()};
  found.independence = doctor.independence();
  if (!any_has(found.servers, Grade::fail)) check_locks(found, options);
  found.password = password_file_check(choices);
  found.proc = proc_check();
  found.contain = contain_check(run::Contain::with_rights);
  found.contain_user = contain_check(run::Contain::as_user);
  const int code = failed(found, choices.has(Opt::strict)) ? kFailed : 0;
  return Report{[=] { return doctor_json(found); }, [=] { return text_of(found); }, code};
}

}  // namespace rlock::cli
