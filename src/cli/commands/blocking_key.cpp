#include "cli/commands/blocking_key.hpp"

#include "cli/run_exit.hpp"
#include "redis/net/tls.hpp"
#include "redis/stored_keys.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {

bool is_default_user(const redis::Login& login) {
  return login.user.empty() || login.user == "default";
}

std::string redis_cli(const redis::Server& server, const std::string& words) {
  std::string text = "redis-cli";
  auto add = [&text](const char* option, const std::string& value) {
    if (!value.empty()) text.append(option).append(util::shell_quoted(value));
  };
  if (server.is_unix()) {
    add(" -s ", server.path);
  } else {
    add(" -h ", server.host);
    add(" -p ", std::to_string(server.port));
  }
  if (server.tls != nullptr) {
    const redis::TlsOptions& tls = server.tls->options();
    text += tls.verify == redis::Verify::nothing ? " --tls --insecure" : " --tls";
    add(" --cacert ", tls.cacert);
    add(" --cert ", tls.cert);
    add(" --key ", tls.key.empty() ? tls.cert : tls.key);
    add(" --sni ", tls.sni);
  }
  if (is_default_user(server) && !server.password.empty()) text += " --askpass";
  return text + " " + words;
}

namespace {

// `a list without an expiry`
std::string kind_of(const redis::StoredKey& key) {
  return util::format("a {} {}", key.type,
                      key.left < Millis(0) ? "without an expiry"
                                           : "that expires in " + util::format_duration(key.left));
}

std::string deletion_of(const redis::BlockingKeys& found) {
  std::string words = "DEL";
  for (const redis::StoredKey& key : found.keys) words += " " + util::shell_quoted(key.name);
  return redis_cli(found.server, words);
}

}  // namespace

std::string blocking_key_text(const Session& session, const lock::LockName& name) {
  const auto found = redis::blocking_keys(session.options(), name);
  if (found.keys.empty()) return {};
  const redis::StoredKey& key = found.keys.front();
  return util::printable(
      util::format("the key {} is {}, which rlock did not write; if no program needs it: {}",
                   util::shell_quoted(key.name), kind_of(key), deletion_of(found)));
}

// The error names the key already.
std::string blocking_key_hint(const Error& error, const Session& session,
                              const lock::LockName& name) {
  if (error.kind != ErrorKind::wrong_type) return {};
  const auto found = redis::blocking_keys(session.options(), name);
  std::string text;
  for (const redis::StoredKey& key : found.keys) {
    text += (text.empty() ? "; it is " : ", another one ") + kind_of(key);
  }
  return text.empty() ? text : util::printable(text + ": " + deletion_of(found));
}

std::string blocking_key_hint(const run::RunOutcome& outcome, const Session& session,
                              const lock::LockName& name) {
  if (const auto* error = std::get_if<Error>(&outcome)) {
    return blocking_key_hint(*error, session, name);
  }
  const auto obstacle = obstacle_of(outcome);
  const lock::Holder* holder = lock::holder_in(obstacle);
  const bool forever = holder != nullptr && !holder->left;
  const std::string text = forever ? blocking_key_text(session, name) : "";
  return text.empty() ? text : "; " + text;
}

}  // namespace rlock::cli
