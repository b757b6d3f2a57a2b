#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/past.hpp"
#include "cli/render_history.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"
#include "cli/values.hpp"

namespace rlock::cli {
namespace {

using util::Result;

struct HistorySettings {
  lock::LockName name;
  uint64_t runs = 20;
};

Result<HistorySettings> settings_of(const Invocation& invocation) {
  constexpr uint64_t kMost = 1'000'000;  // the server keeps a hundred
  auto text = only_name(invocation);
  if (!text) return std::move(text).error();
  auto name = lock::LockName::parse(*text);
  if (!name) return std::move(name).error();
  HistorySettings settings{*std::move(name)};
  auto runs = number_choice(invocation.choices, Opt::runs, kMost);
  if (!runs) return std::move(runs).error();
  if (*runs == 0U) return util::Error{util::ErrorKind::usage, "--runs must be at least 1"};
  settings.runs = runs->value_or(settings.runs);
  return settings;
}

std::string text_of(const HistorySettings& settings, const Chronicle& chronicle,
                    const Choices& choices) {
  if (choices.has(Opt::json)) return history_json(settings.name, chronicle);
  if (choices.has(Opt::quiet)) return {};
  if (chronicle.chapters.empty() && !chronicle.skips) {
    return "no runs of " + in_quotes(settings.name.text()) + " are remembered\n";
  }
  return history_table(chronicle, line_width(STDOUT_FILENO));
}

}  // namespace

int history_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  // A row of skips may stand before and after each run.
  const uint64_t rows = 2 * settings->runs + 1;
  auto past = session->ask([&](auto& store) { return store.history(settings->name, rows); });
  if (!past) return fail(past.error(), choices, {settings->name.text()});
  return deliver(text_of(*settings, chronicle_of(*past, settings->runs), choices));
}

}  // namespace rlock::cli
