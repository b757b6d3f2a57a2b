#include "cli/commands/doctor_findings.hpp"

#include <algorithm>
#include <utility>

#include "redis/net/redis_cli.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr std::pair<Cause, const char*> kRemedies[] = {
    {Cause::certificate_name, "use --sni NAME with a name that is in the certificate"},
    {Cause::certificate_authority,
     "use --cacert FILE with the authority that signed the certificate"},
    {Cause::other_kind, "correct the URL"},
    {Cause::read_only, kUseMaster},
    {Cause::unknown_host, "correct the host name in the URL, or the name server"},
    {Cause::tls, "check the URL's scheme, --cert, --key and the certificate's dates"},
    {Cause::too_many_clients,
     "close connections that are not needed, or raise the server's maxclients"},
    {Cause::out_of_memory, "free memory on the server, or raise its maxmemory"},
    {Cause::cannot_save,
     "the server cannot save its data: read its log, and free space on its disk"},
    {Cause::loading, "wait until the server has loaded its data"},
    {Cause::busy_script, "a script of another client blocks the server: stop it with SCRIPT KILL"}};

// `+config|get` for `CONFIG GET`.
std::string acl_word(std::string_view command) {
  std::string word = "+" + util::lower_case(command);
  std::replace(word.begin(), word.end(), ' ', '|');
  return word;
}

}  // namespace

Check graded(Grade grade, std::string detail, std::string advice) {
  return {{}, grade, std::move(detail), std::move(advice)};
}
Check ok(std::string detail) {
  return graded(Grade::ok, std::move(detail), {});
}
Check warn(std::string detail, std::string advice) {
  return graded(Grade::warn, std::move(detail), std::move(advice));
}
Check fail(std::string detail, std::string advice) {
  return graded(Grade::fail, std::move(detail), std::move(advice));
}
Check unreported(const std::string& what) {
  return warn("not tested: this server does not report " + what,
              "look it up in the server's own documentation or console");
}

std::string admin_cli(redis::Server server, const std::string& words) {
  if (!redis::is_default_user(server)) {
    server.user.clear();
    server.password.clear();
  }
  return redis::redis_cli(server, words);
}

std::string comment(const redis::Login& login, std::string text) {
  if (!redis::is_default_user(login)) {
    util::append(text, "; ",
                 "if the default user may not, add --user NAME --askpass for one who may");
  }
  return text.empty() ? text : "  # " + text;
}

const char* remedy_for(const Error& error, const char* otherwise) {
  for (const auto& [cause, remedy] : kRemedies) {
    if (error.cause == cause) return remedy;
  }
  if (error.text.find("NOREPLICAS") != error.text.npos) {
    return "connect replicas to the server, or lower its min-replicas-to-write";
  }
  return otherwise;
}

const Error* failure_of(const redis::Failures& failures, std::string_view command) {
  const auto found = failures.find(command);
  return found == failures.end() ? nullptr : &found->second;
}

Check not_tested(const std::string& command, const Error& error, const std::string& at) {
  if (error.kind == ErrorKind::denied) {
    return warn(util::format("not tested: this user may not run {}{}", command, at),
                util::format("allow this user to run {} ({})", command, acl_word(command)));
  }
  if (error.cause == Cause::missing_command) {
    return warn(util::format("not tested: there is no command {}{}", command, at),
                "enable it (check rename-command and any proxy), or test this by hand");
  }
  return warn("not tested: " + error.text, remedy_for(error, kFixFirst));
}

Check named(const char* name, Check check) {
  check.name = name;
  return check;
}

}  // namespace rlock::cli
