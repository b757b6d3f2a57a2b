#include <unistd.h>

#include <cstdint>
#include "cli/commands/commands.hpp"

#include "cli/commands/session.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/history_rows.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/render.hpp"

namespace rlock::cli {
namespace {

struct HistorySettings {
  std::optional<lock::LockName> name;  // none: all locks
  uint64_t runs = 20;
};

Result<HistorySettings> settings_of(const Invocation& invocation) {
  constexpr uint64_t kMost = 1'000'000;  // the server keeps a hundred
  HistorySettings settings;
  if (!invocation.names.empty() || invocation.after_dashes) {
    TRY(auto name, only_name(invocation));
    settings.name = std::move(name);
  }
  TRY(auto runs, number_choice(invocation.choices, Opt::runs, kMost));
  if (runs == 0U) return Error{ErrorKind::usage, "--runs must be at least 1"};
  settings.runs = runs.value_or(settings.runs);
  return settings;
}

Result<History> history_of(const lock::LockName& name, uint64_t runs, Session& session) {
  // There may be a row of skips before and after each run.
  auto rows = session.ask([&](auto& store) { return store.history(name, 2 * runs + 1); });
  if (!rows) return std::move(rows).error();
  return to_history(*rows, runs);
}

std::string text_of(const HistorySettings& settings, const History& history,
                    const Choices& choices) {
  const std::string& name = settings.name->text();
  if (choices.has(Opt::json)) return history_json(*settings.name, history);
  if (choices.has(Opt::quiet)) return {};
  if (history.runs.empty() && !history.skips) {
    return "no runs of " + in_quotes(name) + " are recorded\n";
  }
  return history_table(lines_of(name, history), NameColumn::hidden, line_width(STDOUT_FILENO));
}

std::string text_of_all(const std::vector<HistoryLine>& lines, const Choices& choices) {
  if (choices.has(Opt::json)) return history_json(lines);
  if (choices.has(Opt::quiet)) return {};
  if (lines.empty()) return "no runs are recorded\n";
  return history_table(lines, NameColumn::shown, line_width(STDOUT_FILENO));
}

int print_all(const HistorySettings& settings, Session& session, const Choices& choices) {
  auto all = all_names(session);
  if (!all) return fail(all.error(), choices);
  for (const Error& why : all->missing) print_error(why);
  int code = all->missing.empty() ? 0 : exit_code(all->missing.front().kind);
  std::vector<HistoryLine> lines;
  for (const auto& [name, in_use] : all->names) {
    const std::string& text = name.text();
    auto history = history_of(name, settings.runs, session);
    if (!history && history.error().kind != ErrorKind::wrong_type) {
      return fail(history.error(), choices, {text});
    }
    if (!history) {
      print_error(history.error(), {text});
      code = exit_code(history.error().kind);
      continue;
    }
    auto more = lines_of(text, *history);
    std::move(more.begin(), more.end(), std::back_inserter(lines));
    keep_newest(lines, settings.runs);
  }
  return print_result(text_of_all(lines, choices), code);
}

}  // namespace

int history_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  if (!settings->name) return print_all(*settings, *session, choices);
  auto history = history_of(*settings->name, settings->runs, *session);
  if (!history) return fail(history.error(), choices, {settings->name->text()});
  return print_result(text_of(*settings, *history, choices));
}

}  // namespace rlock::cli
