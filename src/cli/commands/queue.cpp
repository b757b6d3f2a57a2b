#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "cli/commands/commands.hpp"
#include "cli/commands/session.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/history_rows.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/render.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

struct QueueSettings {
  std::optional<lock::LockName> name;  // none: all locks
  // An owner, the beginning of one, or a position.
  std::optional<std::string> remove;

  const lock::LockName& lock() const { return *name; }
};

// A few digits are a position; no listing has more waiters.
std::optional<uint64_t> position_in(std::string_view text) {
  constexpr size_t kMostDigits = 6;
  return text.size() <= kMostDigits ? util::parse_number<uint64_t>(text) : std::nullopt;
}

Status check_remove(std::string_view text) {
  constexpr size_t kOwnerLength = 32;
  const bool is_hex = text.find_first_not_of("0123456789abcdef") == text.npos;
  if (!text.empty() && is_hex && text.size() <= kOwnerLength && position_in(text) != 0U) {
    return Done{};
  }
  return Error{ErrorKind::usage,
               "--remove " + quoted_word(text) +
                   ": give the position in the queue, an owner id or its beginning, as rlock queue "
                   "NAME lists them"};
}

Result<QueueSettings> queue_settings(const Invocation& invocation) {
  QueueSettings settings;
  if (!invocation.names.empty() || invocation.after_dashes) {
    TRY(auto name, only_name(invocation));
    settings.name = std::move(name);
  }
  settings.remove = invocation.choices.last(Opt::remove);
  if (settings.remove) {
    if (!settings.name) {
      return Error{ErrorKind::usage, "--remove needs a NAME: rlock queue NAME --remove OWNER"};
    }
    TRY_STATUS(check_remove(*settings.remove));
  } else if (invocation.choices.has(Opt::reason)) {
    return Error{ErrorKind::usage,
                 "--reason needs --remove OWNER: rlock queue NAME --remove OWNER"};
  }
  return settings;
}

// Without an answer, and without enough successes, only the forecast is missing.
std::vector<Millis> forecast(const lock::LockName& name, const std::vector<lock::Holder>& holders,
                             const std::vector<lock::Waiter>& waiters, Session& session) {
  constexpr uint64_t kRows = 100;
  constexpr size_t kLeastSuccesses = 3;
  if (waiters.empty()) return {};
  auto rows = session.ask([&](auto& store) { return store.history(name, kRows); });
  const auto usual = rows ? usual_duration(*rows, kLeastSuccesses) : std::nullopt;
  return usual ? expected_starts(holders, waiters, *usual) : std::vector<Millis>();
}

Result<QueueView> read_queue(const lock::LockName& name, Session& session) {
  TRY(auto queue, inspect_queue(session, name));
  QueueView view{name.text(), std::move(queue.waiters), {}, std::move(queue.closure)};
  if (view.waiters.empty()) return view;
  TRY(auto seen, inspect_holders(session, name));
  view.starts = forecast(name, seen.holders, view.waiters, session);
  return view;
}

int list_queue(const QueueSettings& settings, Session& session, const Choices& choices) {
  auto queue = read_queue(settings.lock(), session);
  const std::string& name = settings.lock().text();
  if (!queue) return fail(queue.error(), choices, {name});
  if (choices.has(Opt::json)) {
    return print_result(queue_json(*queue, std::nullopt, session.servers()));
  }
  if (choices.has(Opt::quiet)) return kSuccess;
  const std::string closed =
      queue->closure ? in_quotes(name) + " is " + closure_phrase(*queue->closure) + "\n" : "";
  return print_result(closed +
                      (queue->waiters.empty()
                           ? "nobody is waiting for " + in_quotes(name) + "\n"
                           : queue_table(*queue, line_width(STDOUT_FILENO), session.servers())));
}

// The queue of a lock whose holders and first waiters have been read.
Result<QueueView> whole_queue(const lock::LockName& name, Result<lock::Snapshot> first,
                              Session& session) {
  if (!first) return std::move(first).error();
  auto& waiters = first->waiters;
  if (first->more_waiters) {
    TRY(waiters, inspect_waiters(session, name));
  }
  auto starts = forecast(name, first->holders, waiters, session);
  return QueueView{name.text(), std::move(waiters), std::move(starts)};
}

int list_queues(Session& session, const Choices& choices) {
  auto all = all_names(session, ListedNames::in_use);
  if (!all) return fail(all.error(), choices);
  for (const Error& why : all->missing) print_error(why);
  int code = all->missing.empty() ? kSuccess : exit_code(all->missing.front().kind);
  std::vector<lock::LockName> names;
  for (auto& [name, in_use] : all->names) names.push_back(std::move(name));
  auto firsts = inspect_first_waiter(session, names);
  std::vector<QueueView> queues;
  for (size_t i = 0; i < names.size(); ++i) {
    auto queue = whole_queue(names[i], std::move(firsts[i]), session);
    if (!queue) {
      print_error(queue.error(), {names[i].text()});
      code = exit_code(queue.error().kind);
    } else if (!queue->waiters.empty()) {
      queues.push_back(*std::move(queue));
    }
  }
  if (choices.has(Opt::json)) return print_result(queue_json(queues, session.servers()), code);
  if (choices.has(Opt::quiet)) return code;
  return print_result(queues.empty()
                          ? "nobody is waiting\n"
                          : queue_table(queues, line_width(STDOUT_FILENO), session.servers()),
                      code);
}

// Whom --remove means; nobody if no waiter fits.
Result<std::optional<lock::Owner>> owner_to_remove(const QueueSettings& settings,
                                                   Session& session) {
  const std::string& text = *settings.remove;
  if (auto whole = lock::Owner::parse(text)) return std::optional(*std::move(whole));
  TRY(auto waiters, inspect_waiters(session, settings.lock()));
  if (const auto position = position_in(text)) {
    if (*position > waiters.size()) return std::optional<lock::Owner>();
    return std::optional(lock::Owner::external(waiters[*position - 1].owner));
  }
  std::erase_if(waiters, [&](const auto& waiter) { return !waiter.owner.starts_with(text); });
  if (waiters.empty()) return std::optional<lock::Owner>();
  if (waiters.size() == 1) return std::optional(lock::Owner::external(waiters.front().owner));
  std::string why = "--remove " + text + ": " + std::to_string(waiters.size()) +
                    " waiters have an owner id that begins with it:";
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(waiters.size(), kShown); ++i) {
    why += (i > 0 ? ", " : " ") + util::printable(waiters[i].owner);
  }
  return Error{ErrorKind::usage,
               why + (waiters.size() > kShown ? ", …" : "") + "; give more of it, or the position"};
}

// Reports what was removed, as JSON with the queue that is left.
int report_removed(const QueueSettings& settings, const std::optional<lock::Owner>& removed,
                   Session& session, const Choices& choices) {
  if (choices.has(Opt::json)) {
    auto queue = read_queue(settings.lock(), session);
    if (!queue) return fail(queue.error(), choices, {settings.lock().text()});
    Removal removal{removed ? std::optional(removed->text()) : std::nullopt};
    return print_result(queue_json(*queue, removal, session.servers()));
  }
  if (choices.has(Opt::quiet)) return kSuccess;
  const std::string name = in_quotes(settings.lock().text());
  if (removed) {
    return print_result("removed " + util::printable(removed->text()) + " from the queue of " +
                        name + "\n");
  }
  const std::string& wanted = *settings.remove;
  return print_result((position_in(wanted) ? "the queue of " + name + " has no position " + wanted
                                           : wanted + " is not waiting for " + name) +
                      ": nothing to remove\n");
}

int remove_waiter(const QueueSettings& settings, Session& session, const Choices& choices) {
  const std::string& name = settings.lock().text();
  auto owner = owner_to_remove(settings, session);
  if (!owner) return fail(owner.error(), choices, {name});
  if (!*owner) return report_removed(settings, std::nullopt, session, choices);
  const lock::CancelCall call{settings.lock(), **owner, lock::CancelHow::removed,
                              operator_note(choices.last(Opt::reason))};
  auto reply = session.ask([&](auto& store) { return store.cancel(call); });
  if (!reply) return fail(reply.error(), choices, {name});
  if (*reply == lock::CancelReply::still_holds) {
    std::string text = in_quotes(name) + " is held by " + util::printable((*owner)->text()) +
                       ", which is not waiting: use rlock force-unlock to break its lock";
    return fail({ErrorKind::busy, text}, choices, {name, (*owner)->text()});
  }
  if (*reply == lock::CancelReply::not_found) owner->reset();
  return report_removed(settings, *owner, session, choices);
}

}  // namespace

int queue_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = queue_settings(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  if (!settings->name) return list_queues(*session, choices);
  return settings->remove ? remove_waiter(*settings, *session, choices)
                          : list_queue(*settings, *session, choices);
}

}  // namespace rlock::cli
