#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/render.hpp"
#include "cli/output/view.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The change to one waiter, which is named by an owner id, the beginning of one, or a position.
struct WaiterChange {
  Opt option;  // remove or first
  std::string waiter;

  std::string text() const { return shown_name(option) + " " + waiter; }
};

struct QueueSettings {
  std::optional<lock::LockName> name;  // nullopt: all locks
  std::optional<WaiterChange> change;

  const lock::LockName& lock() const { return *name; }
};

// A number of a few digits is a position; no listing has more waiters.
std::optional<uint64_t> position_in(std::string_view text) {
  constexpr size_t kMostDigits = 6;
  return text.size() <= kMostDigits ? util::parse_number<uint64_t>(text) : std::nullopt;
}

Status check_change(const WaiterChange& change) {
  constexpr size_t kOwnerLength = 32;
  const std::string& text = change.waiter;
  const bool is_hex = text.find_first_not_of("0123456789abcdef") == text.npos;
  if (!text.empty() && is_hex && text.size() <= kOwnerLength && position_in(text) != 0U) {
    return Done{};
  }
  return usage(util::format(
      "{} {}: give a position, an owner id or its beginning; rlock queue NAME lists both",
      shown_name(change.option), quoted_word(text)));
}

Result<QueueSettings> queue_settings(const Invocation& invocation) {
  QueueSettings settings;
  TRY(settings.name, optional_name(invocation));
  for (Opt option : {Opt::remove, Opt::first}) {
    auto waiter = invocation.choices.last(option);
    if (!waiter) continue;
    if (settings.change) return usage("--remove and --first cannot be used together");
    settings.change = WaiterChange{option, *std::move(waiter)};
    TRY_STATUS(check_change(*settings.change));
  }
  if (settings.change && !settings.name) {
    const std::string option = shown_name(settings.change->option);
    return usage(util::format("{} needs a NAME: rlock queue NAME {} OWNER", option, option));
  }
  if (!settings.change && invocation.choices.has(Opt::reason)) {
    return usage("--reason needs --remove OWNER or --first OWNER");
  }
  return settings;
}

// Only the forecast is missing if the server does not answer, or if there are not enough successes.
std::vector<Millis> forecast(const lock::LockName& name, const lock::Snapshot& seen,
                             const std::vector<lock::Waiter>& waiters, Session& session) {
  constexpr uint64_t kRows = 100;
  constexpr size_t kLeastSuccesses = 3;
  if (waiters.empty()) return {};
  auto rows = session.ask([&](auto& store) { return store.history(name, kRows); });
  const auto usual = rows ? usual_duration(*rows, kLeastSuccesses) : std::nullopt;
  if (!usual) return {};
  return expected_starts(seen, waiters, *usual);
}

Result<QueueView> read_queue(const lock::LockName& name, Session& session) {
  TRY(auto queue, inspect_queue(session, name));
  QueueView view{
      name.text(), std::move(queue.waiters), {}, std::move(queue.closure), std::move(queue.needs)};
  if (view.waiters.empty()) return view;
  TRY(auto seen, inspect_holders(session, name));
  view.starts = forecast(name, seen, view.waiters, session);
  return view;
}

std::string table_of(std::span<const QueueView> queues, NameColumn name_column, size_t servers) {
  return queue_table(queues, name_column, line_width(STDOUT_FILENO), servers);
}

std::string text_of(const QueueView& queue, size_t servers) {
  const std::string name = in_quotes(queue.name);
  std::string text;
  if (queue.needs) {
    text = util::format("to acquire {} needs {}\n", name, needs_phrase(*queue.needs));
  }
  if (queue.closure) text += util::format("{} is {}\n", name, closure_phrase(*queue.closure));
  return text + (queue.waiters.empty() ? util::format("no run is waiting for {}\n", name)
                                       : table_of({&queue, 1}, NameColumn::hidden, servers));
}

Result<Report> list_queue(const QueueSettings& settings, Session& session, const Choices& choices) {
  TRY(auto queue, read_queue(settings.lock(), session));
  if (queue.waiters.empty()) report_unknown_name(session, settings.lock(), choices);
  const size_t servers = session.servers();
  return Report{[=, name = settings.name] {
                  return queue_json(name, {&queue, 1}, {}, servers);
                },
                [=] { return text_of(queue, servers); }};
}

// The queue of a lock whose holders and first waiters have been read.
Result<QueueView> whole_queue(const lock::LockName& name, Result<lock::Snapshot> first,
                              Session& session) {
  TRY(auto seen, std::move(first));
  QueueView view{name.text(), std::move(seen.waiters)};
  if (seen.more_waiters) {
    TRY(auto queue, inspect_queue(session, name));
    view.waiters = std::move(queue.waiters);
  }
  view.starts = forecast(name, seen, view.waiters, session);
  return view;
}

Result<Report> list_queues(Session& session) {
  TRY(auto all, all_names(session, ListedNames::in_use));
  int code = report_missing(all.missing);
  const auto names = selected(std::move(all.names));
  auto firsts = inspect_first_waiter(session, names);
  std::vector<QueueView> queues;
  for (size_t i = 0; i < names.size(); ++i) {
    auto queue = whole_queue(names[i], std::move(firsts[i]), session);
    if (!queue) {
      code = print_error(queue.error(), {names[i].text()});
    } else if (!queue->waiters.empty()) {
      queues.push_back(*std::move(queue));
    }
  }
  const size_t servers = session.servers();
  return Report{[=] { return queue_json({}, queues, {}, servers); },
                [=] {
                  if (!queues.empty()) return table_of(queues, NameColumn::shown, servers);
                  return std::string(code == kSuccess ? "no run is waiting\n" : "");
                },
                code};
}

// The waiter that --remove or --first names; nullopt if none matches.
Result<std::optional<lock::Waiter>> waiter_to_change(const QueueSettings& settings,
                                                     Session& session) {
  const std::string& text = settings.change->waiter;
  TRY(auto queue, inspect_queue(session, settings.lock()));
  auto& waiters = queue.waiters;
  // Digits that are not a position may begin an owner id.
  const auto position = position_in(text);
  if (position && *position <= waiters.size()) return std::optional(waiters[*position - 1]);
  std::erase_if(waiters, [&](const auto& waiter) { return !waiter.owner.starts_with(text); });
  if (waiters.size() == 1) return std::optional(waiters.front());
  if (waiters.empty()) {
    // The owner may hold the lock already.
    auto whole = lock::Owner::parse(text);
    return whole ? std::optional(lock::Waiter{whole->text()}) : std::optional<lock::Waiter>();
  }
  constexpr size_t kShown = 3;
  std::vector<std::string> owners;
  for (size_t i = 0; i < std::min(waiters.size(), kShown); ++i) {
    owners.push_back(util::printable(waiters[i].owner));
  }
  return usage(
      util::format("{}: {} waiters have an owner id that begins with this: {}{}; give more "
                   "characters, or a position",
                   settings.change->text(), waiters.size(), util::joined(owners, ", "),
                   waiters.size() > kShown ? ", …" : ""));
}

// `changed`: who was removed or moved, if anyone.
std::string change_text(const QueueSettings& settings, const std::optional<lock::Waiter>& changed) {
  const bool removes = settings.change->option == Opt::remove;
  const std::string name = in_quotes(settings.lock().text());
  if (changed) {
    const Record record = decode_record(changed->record);
    const std::string command = record.command ? ": " + util::printable(*record.command) : "";
    return util::format("{} {} {} the queue of {}{}\n", removes ? "removed" : "moved",
                        process_phrase(record, changed->owner), removes ? "from" : "to the head of",
                        name, command);
  }
  const std::string& wanted = settings.change->waiter;
  return util::format(
      "{}: nothing to {}\n",
      position_in(wanted)
          ? util::format("the queue of {0} has no position {1} and no owner id that "
                         "begins with {1} (rlock queue {2} lists them)",
                         name, wanted, typed_name(settings.lock().text()))
          : util::format("{} is not waiting for {}", wanted, name),
      removes ? "remove" : "move");
}

// JSON has the present queue.
Result<Report> report_change(const QueueSettings& settings,
                             const std::optional<lock::Waiter>& changed, Session& session,
                             const Choices& choices) {
  Report report{.text = [=] { return change_text(settings, changed); }};
  if (!choices.has(Opt::json)) return report;
  TRY(auto queue, read_queue(settings.lock(), session));
  const QueueChange done{settings.change->option == Opt::remove ? "removed" : "moved",
                         changed ? std::optional(changed->owner) : std::nullopt};
  report.json = [=, name = settings.name, servers = session.servers()] {
    return queue_json(name, {&queue, 1}, done, servers);
  };
  return report;
}

// holds: the waiter has been granted the lock in the meantime.
Result<lock::MoveReply> change_queue(const QueueSettings& settings, const lock::Waiter& waiter,
                                     const lock::Owner& owner, Session& session,
                                     const std::string& note) {
  if (settings.change->option == Opt::first) {
    const lock::MoveCall call{settings.lock(), owner, moved_record(waiter.record, note_text(note))};
    return session.change([&](auto& store) { return store.move_first(call); });
  }
  const lock::CancelCall call{settings.lock(), owner, lock::CancelHow::removed, note};
  TRY(auto reply, session.change([&](auto& store) { return store.cancel(call); }));
  if (reply == lock::CancelReply::still_holds) return lock::MoveReply::holds;
  return reply == lock::CancelReply::not_found ? lock::MoveReply::not_found
                                               : lock::MoveReply::moved;
}

Result<Report> change_waiter(const QueueSettings& settings, Session& session,
                             const Choices& choices) {
  const std::string& name = settings.lock().text();
  if (settings.change->option == Opt::first && session.servers() > 1) {
    return usage("--first works with one server only; start later runs with --urgent");
  }
  TRY(auto waiter, waiter_to_change(settings, session));
  if (!waiter) return report_change(settings, std::nullopt, session, choices);
  const lock::Owner owner = lock::Owner::external(waiter->owner);
  TRY(auto reply,
      change_queue(settings, *waiter, owner, session, operator_note(choices.last(Opt::reason))));
  if (reply == lock::MoveReply::holds) {
    const std::string text = util::format(
        "{} is held by {}, which is not waiting: to break the lock, use rlock force-unlock",
        in_quotes(name), util::printable(owner.text()));
    return failure({ErrorKind::busy, text}, {name, owner.text()});
  }
  const bool found = reply == lock::MoveReply::moved;
  return report_change(settings, found ? waiter : std::nullopt, session, choices);
}

}  // namespace

Result<Report> queue_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto settings, queue_settings(invocation));
  TRY(auto session, Session::open(choices));
  if (!settings.name) return list_queues(session);
  return reported(settings.change ? change_waiter(settings, session, choices)
                                  : list_queue(settings, session, choices),
                  {settings.lock().text()});
}

}  // namespace rlock::cli
