#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/exit_code.hpp"
#include "cli/past.hpp"
#include "cli/render_history.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"
#include "cli/values.hpp"

namespace rlock::cli {
namespace {

using util::Result;

struct HistorySettings {
  std::optional<lock::LockName> name;  // none: all
  uint64_t runs = 20;
};

Result<HistorySettings> settings_of(const Invocation& invocation) {
  constexpr uint64_t kMost = 1'000'000;  // the server keeps a hundred
  HistorySettings settings;
  if (!invocation.names.empty() || invocation.after_dashes) {
    auto text = only_name(invocation);
    if (!text) return std::move(text).error();
    auto name = lock::LockName::parse(*text);
    if (!name) return std::move(name).error();
    settings.name = *std::move(name);
  }
  auto runs = number_choice(invocation.choices, Opt::runs, kMost);
  if (!runs) return std::move(runs).error();
  if (*runs == 0U) return util::Error{util::ErrorKind::usage, "--runs must be at least 1"};
  settings.runs = runs->value_or(settings.runs);
  return settings;
}

Result<Chronicle> history_of(const lock::LockName& name, uint64_t runs, Session& session) {
  // A row of skips may stand before and after each run.
  auto past = session.ask([&](auto& store) { return store.history(name, 2 * runs + 1); });
  if (!past) return std::move(past).error();
  return chronicle_of(*past, runs);
}

std::string text_of(const HistorySettings& settings, const Chronicle& chronicle,
                    const Choices& choices) {
  const std::string& name = settings.name->text();
  if (choices.has(Opt::json)) return history_json(*settings.name, chronicle);
  if (choices.has(Opt::quiet)) return {};
  if (chronicle.chapters.empty() && !chronicle.skips) {
    return "no runs of " + in_quotes(name) + " are remembered\n";
  }
  return history_table(lines_of(name, chronicle), Names::hidden, line_width(STDOUT_FILENO));
}

std::string text_of_all(const std::vector<HistoryLine>& lines, const Choices& choices) {
  if (choices.has(Opt::json)) return history_json(lines);
  if (choices.has(Opt::quiet)) return {};
  if (lines.empty()) return "no runs are remembered\n";
  return history_table(lines, Names::shown, line_width(STDOUT_FILENO));
}

int of_all(const HistorySettings& settings, Session& session, const Choices& choices) {
  auto all = all_names(session);
  if (!all) return fail(all.error(), choices);
  for (const util::Error& why : all->missing) fail(why, Choices{});
  int code = all->missing.empty() ? 0 : exit_code(all->missing.front().kind);
  std::vector<HistoryLine> lines;
  for (const std::string& text : all->names) {
    auto name = lock::LockName::parse(text);
    if (!name) continue;
    auto chronicle = history_of(*name, settings.runs, session);
    if (!chronicle && chronicle.error().kind != util::ErrorKind::foreign) {
      return fail(chronicle.error(), choices, {text});
    }
    if (!chronicle) {
      code = fail(chronicle.error(), Choices{}, {text});
      continue;
    }
    auto more = lines_of(text, *chronicle);
    std::move(more.begin(), more.end(), std::back_inserter(lines));
    keep_newest(lines, settings.runs);
  }
  return deliver(text_of_all(lines, choices), code);
}

}  // namespace

int history_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  if (!settings->name) return of_all(*settings, *session, choices);
  auto chronicle = history_of(*settings->name, settings->runs, *session);
  if (!chronicle) return fail(chronicle.error(), choices, {settings->name->text()});
  return deliver(text_of(*settings, *chronicle, choices));
}

}  // namespace rlock::cli
