#include "cli/commands/doctor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

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

using Json = nlohmann::ordered_json;

std::string_view grade_text(Grade grade) {
  return util::to_string<Grade::fail>(grade, {"ok", "no", "warn", "fail"});
}

Json check_json(const Check& check) {
  return {{"check", check.name},
          {"state", grade_text(check.grade)},
          {"detail", check.detail},
          {"advice", check.advice.empty() ? Json() : Json(check.advice)}};
}

std::string check_line(const Check& check) {
  std::string line = util::format("  {:<6}{:<12}  {}\n", grade_text(check.grade), check.name,
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

struct Host {
  std::optional<Check> password;
  Check proc = proc_check();
  Check contain = contain_check(run::Contain::with_rights);
  Check contain_user = contain_check(run::Contain::as_user);
};

// Checks that concern all servers.
struct Whole {
  std::optional<Check> independence{};  // with several servers
  // Nullopt if that cannot be asked.
  std::optional<Check> versions{};
  std::optional<Check> deadlocks{};  // with one server
};

// The origins of the settings of the connection.
struct Places {
  std::string url{};
  std::optional<std::string>
      password{};  // the origin of the password for the server in the URL; nullopt: no password
  std::vector<std::string> ignored{};  // a sentence for each setting that is not used
};

bool has_password(const redis::Url& url) {
  const redis::Server* server = redis::server_in(url);
  return server != nullptr && !server->password.empty();
}

Places places_of(const redis::OpenOptions& options, const Choices& choices) {
  Places places{choices[Opt::url].place, {}, ignored_settings(choices)};
  if (std::any_of(options.urls.begin(), options.urls.end(), has_password)) {
    places.password = places.url;
  }
  for (Opt id : {Opt::password, Opt::password_file, Opt::password_command}) {
    if (choices.has(id)) places.password = choices[id].place;
  }
  return places;
}

std::string text_of(const Places& places, const std::vector<Diagnosis>& servers, const Whole& whole,
                    const Host& host) {
  std::string text = util::printable(
      util::format("the URL comes from {}, {}", places.url,
                   places.password ? "the password from " + *places.password : "without password"));
  text += "\n";
  for (const std::string& sentence : places.ignored) text += util::printable(sentence) + "\n";
  for (const Diagnosis& server : servers) {
    text += util::printable(server.server) + "\n";
    for (const Check& check : server.checks) text += check_line(check);
  }
  if (whole.independence) text += "all servers\n" + check_line(*whole.independence);
  if (whole.versions) text += "all locks\n" + check_line(*whole.versions);
  if (whole.deadlocks) text += check_line(*whole.deadlocks);
  text += "this host\n";
  if (host.password) text += check_line(*host.password);
  return text + check_line(host.proc) + check_line(host.contain) + check_line(host.contain_user);
}

std::string doctor_json(const Places& places, const std::vector<Diagnosis>& servers,
                        const Whole& whole, const Host& host, const std::string& acl_rule) {
  Json list = Json::array();
  for (const Diagnosis& server : servers) {
    Json checks = Json::array();
    for (const Check& check : server.checks) checks.push_back(check_json(check));
    list.push_back({{"server", server.server}, {"checks", std::move(checks)}});
  }
  return document({{"url_place", places.url},
                   {"password_place", places.password ? Json(*places.password) : Json()},
                   {"ignored", places.ignored},
                   {"servers", std::move(list)},
                   {"independence", whole.independence ? check_json(*whole.independence) : Json()},
                   {"versions", whole.versions ? check_json(*whole.versions) : Json()},
                   {"deadlocks", whole.deadlocks ? check_json(*whole.deadlocks) : Json()},
                   {"password", host.password ? check_json(*host.password) : Json()},
                   {"proc", check_json(host.proc)},
                   {"contain", check_json(host.contain)},
                   {"contain_user", check_json(host.contain_user)},
                   {"acl_rule", acl_rule}});
}

bool any_has(const std::vector<Diagnosis>& servers, Grade least) {
  return std::any_of(servers.begin(), servers.end(), [&](const Diagnosis& server) {
    return std::any_of(server.checks.begin(), server.checks.end(),
                       [&](const Check& check) { return check.grade >= least; });
  });
}

bool failed(const std::vector<Diagnosis>& servers, const Whole& whole,
            const std::optional<Check>& password, bool strict) {
  const Grade least = strict ? Grade::warn : Grade::fail;
  auto is_bad = [&](const std::optional<Check>& check) { return check && check->grade >= least; };
  return is_bad(password) || is_bad(proc_check()) || is_bad(whole.independence) ||
         is_bad(whole.versions) || is_bad(whole.deadlocks) || any_has(servers, least);
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
void check_locks(Whole& whole, redis::OpenOptions options) {
  const bool quorum = options.urls.size() > 1;
  auto session = Session::open(std::move(options));
  auto locks = session ? locks_in_use(*session) : Result<std::vector<LockView>>(session.error());
  if (!locks) {
    whole.versions =
        Check{"versions", Grade::warn, "not tested: " + locks.error().text, "try again"};
    return;
  }
  whole.versions = versions(*locks);
  if (!quorum) whole.deadlocks = deadlocks(*session, *std::move(locks));
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
  const std::vector<Diagnosis> servers = doctor.diagnoses();
  Whole whole{doctor.independence()};
  if (!any_has(servers, Grade::fail)) check_locks(whole, options);
  const auto password = password_file_check(choices);
  const int code = failed(servers, whole, password, choices.has(Opt::strict)) ? kFailed : 0;
  const Places places = places_of(options, choices);
  return Report{[=, rule = doctor.acl_rule()] {
                  return doctor_json(places, servers, whole, Host{password}, rule);
                },
                [=] { return text_of(places, servers, whole, Host{password}); }, code};
}

}  // namespace rlock::cli
