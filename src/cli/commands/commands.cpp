#include "cli/commands/commands.hpp"

#include <algorithm>

#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/connect.hpp"
#include "util/text.hpp"

namespace rlock::cli {

Verbosity verbosity_of(const Choices& choices) {
  if (choices.has(Opt::quiet)) return Verbosity::quiet;
  return choices.has(Opt::verbose) ? Verbosity::verbose : Verbosity::normal;
}

void print_error(const Error& error, const Subject& subject) {
  const auto& lock = subject.lock;
  bool named = !lock || error.text.find("\"" + *lock + "\"") != error.text.npos;
  print_message((named ? "" : in_quotes(*lock) + ": ") + util::printable(error.text) +
                std::string(next_step(error.kind)));
}

int fail(const Error& error, const Choices& choices, const Subject& subject) {
  print_error(error, subject);
  int code = exit_code(error.kind);
  return choices.has(Opt::json) ? print_result(error_json(error, subject), code) : code;
}

int print_result(const std::string& output, int code) {
  auto written = print(output);
  if (written) return code;
  print_message(written.error().text);
  return exit_code(written.error().kind);
}

namespace {

// Words after `--` are names, too.
std::vector<std::string> all_names_of(const Invocation& invocation) {
  std::vector<std::string> names = invocation.names;
  if (invocation.after_dashes) {
    names.insert(names.end(), invocation.after_dashes->begin(), invocation.after_dashes->end());
  }
  return names;
}

}  // namespace

Result<lock::LockName> only_name(const Invocation& invocation) {
  const std::vector<std::string> names = all_names_of(invocation);
  std::string form = "rlock " + std::string(row_of(invocation.command).name) + " NAME";
  if (names.empty()) {
    return Error{ErrorKind::usage, "no lock name given: " + form};
  }
  if (names.size() > 1) {
    return Error{ErrorKind::usage, "only one lock name is allowed, but " + in_quotes(names[1]) +
                                       " was given, too: " + form};
  }
  return lock::LockName::parse(names.front());
}

bool Selection::lists(const lock::LockName& name) const {
  if (std::find(names.begin(), names.end(), name) != names.end()) return false;
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return util::matches(pattern, name.text());
         });
}

Result<Selection> selection_of(const Invocation& invocation) {
  Selection selection;
  for (const std::string& text : all_names_of(invocation)) {
    std::string rest = text;
    std::erase_if(rest, [](char c) { return c == '*' || c == '?'; });
    if (rest.size() < text.size()) {
      if (!rest.empty()) TRY_STATUS(lock::LockName::parse(rest));
      selection.patterns.push_back(text);
      continue;
    }
    TRY(auto name, lock::LockName::parse(text));
    auto& names = selection.names;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return selection;
}

Result<LeaseId> parse_lease_id(const Invocation& invocation) {
  TRY(auto name, only_name(invocation));
  TRY_STATUS(check_format(invocation.choices));
  auto id = invocation.choices.last(Opt::owner);
  if (!id) {
    std::string command(row_of(invocation.command).name);
    return Error{ErrorKind::usage,
                 command + " needs --owner ID, the owner id that rlock acquire printed"};
  }
  TRY(auto owner, lock::Owner::parse(*id));
  return LeaseId{std::move(name), std::move(owner)};
}

Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server) {
  std::string text = in_quotes(lease.name.text()) + " at " + util::printable(server) +
                     " is no longer held by " + lease.owner.text() + ": " + how;
  if (now) text += "; it is now " + holder_phrase(now);
  return {ErrorKind::lost, text};
}

}  // namespace rlock::cli
