#include "cli/commands/blocking_key.hpp"

#include "cli/run_exit.hpp"
#include "redis/net/redis_cli.hpp"
#include "redis/stored_keys.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {

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
  return redis::redis_cli(found.server, words);
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

// The error ends with the line that deletes the key, unless the server did not say which key it is.
std::string blocking_key_hint(const Error& error, const Session& session,
                              const lock::LockName& name) {
  if (error.kind != ErrorKind::wrong_type) return {};
  const auto found = redis::blocking_keys(session.options(), name);
  std::string kinds;
  for (const redis::StoredKey& key : found.keys) {
    kinds += util::format("{}{} is {}", kinds.empty() ? "  # " : ", ", util::shell_quoted(key.name),
                          kind_of(key));
  }
  if (kinds.empty()) return kinds;
  const bool has_line = error.cause == Cause::blocking_key;
  return util::printable((has_line ? "" : ": " + deletion_of(found)) + kinds);
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
