#include "cli/commands/closures.hpp"

#include <algorithm>

#include "cli/options/values.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// It is shown in one line, and stored at the server.
Result<std::string> note_of(const Choices& choices) {
  constexpr size_t kMost = 200;
  const auto reason = choices.last(Opt::reason);
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (reason && reason->size() > kMost) return usage("--reason: at most 200 bytes");
  if (reason && std::any_of(reason->begin(), reason->end(), is_control)) {
    return usage("--reason: no control characters");
  }
  return operator_note(reason);
}

Error unanswered(Error error, const lock::LockName& name) {
  if (error.kind == ErrorKind::unavailable) {
    error.text += "; " + in_quotes(name.text()) + " may be closed: look with rlock status " +
                  shell_quoted(name.text());
  }
  return error;
}

}  // namespace

Result<ClosureSettings> closure_settings(const Invocation& invocation) {
  ClosureSettings settings;
  TRY(settings.locks, selection_of(invocation));
  if (settings.locks.empty()) {
    return usage("no lock name given: rlock " + std::string(row_of(invocation.command).name) +
                 " NAME...");
  }
  TRY(settings.note, note_of(invocation.choices));
  return settings;
}

Result<std::vector<lock::LockName>> locks_to_change(Session& session, const Selection& locks) {
  std::vector<lock::LockName> names = locks.names;
  if (locks.patterns.empty()) return names;
  TRY(auto all, all_names(session));
  if (!all.missing.empty()) return all.missing.front();
  for (auto& [name, in_use] : all.names) {
    if (locks.lists(name)) names.push_back(std::move(name));
  }
  return names;
}

ClosureResult change_closure(Session& session, const lock::LockName& name,
                             const ClosureSettings& settings) {
  ClosureResult result{name};
  auto seen = inspect_holders(session, name);
  if (!seen) {
    result.error = std::move(seen).error();
    return result;
  }
  if (seen->closure) result.before = seen->closure->owner;
  if (!settings.length && !result.before) {
    result.after = *std::move(seen);
    return result;
  }
  lock::ClosureCall call{name};
  util::SystemRandom random;
  if (settings.length) call.id = util::random_hex(random);
  call.seen = result.before;
  call.looked = seen->now;
  call.length = settings.length.value_or(Millis(0));
  call.record = settings.note;
  auto reply = session.ask([&](auto& store) { return store.set_closure(call); });
  if (!reply) {
    const bool unsure = settings.length && session.servers() == 1;
    result.error = unsure ? unanswered(std::move(reply).error(), name) : std::move(reply).error();
    return result;
  }
  if (*reply == lock::ClosureReply::changed) {
    result.error = Error{ErrorKind::busy, in_quotes(name.text()) +
                                              " was closed or opened by somebody else at the same "
                                              "moment: nothing was changed"};
    return result;
  }
  if (auto after = inspect_holders(session, name)) result.after = *std::move(after);
  return result;
}

std::string closures_json(const std::vector<ClosureResult>& results) {
  std::vector<LockView> locks;
  for (const ClosureResult& result : results) {
    auto after = result.error ? Result<lock::Snapshot>(*result.error) : Result(result.after);
    locks.push_back({result.name.text(), std::move(after)});
  }
  return status_json(locks);
}

int report_failures(const std::vector<ClosureResult>& results) {
  int code = kSuccess;
  for (const ClosureResult& result : results) {
    if (!result.error) continue;
    print_error(*result.error, {result.name.text()});
    code = exit_code(result.error->kind);
  }
  return code;
}

}  // namespace rlock::cli
