#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/render.hpp"
#include "cli/output/view.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

struct HistorySettings {
  std::optional<lock::LockName> name;  // none: all locks
  uint64_t runs = 20;
};

Result<HistorySettings> history_settings(const Invocation& invocation) {
  constexpr uint64_t kMost = 1'000'000;  // the server keeps at most 1000
  HistorySettings settings;
  TRY(settings.name, optional_name(invocation));
  TRY(auto runs, number_choice(invocation.choices, Opt::runs, kMost));
  if (runs == 0U) return usage("--runs must be at least 1");
  settings.runs = runs.value_or(settings.runs);
  return settings;
}

Result<History> history_of(const lock::LockName& name, uint64_t runs, Session& session) {
  // There may be a row of skips before and after each run.
  TRY(auto rows, session.ask([&](auto& store) { return store.history(name, 2 * runs + 1); }));
  return to_history(name.text(), rows, runs);
}

// `name`: none of all locks.
std::string text_of(const std::optional<lock::LockName>& name, const History& history,
                    const Choices& choices) {
  if (choices.has(Opt::json)) return history_json(name, history);
  if (choices.has(Opt::quiet)) return {};
  if (history.empty()) {
    return util::format("no runs {}are recorded\n",
                        name ? util::format("of {} ", in_quotes(name->text())) : "");
  }
  return history_table(history, name ? NameColumn::hidden : NameColumn::shown,
                       line_width(STDOUT_FILENO));
}

// Of each of `names`, in one batch.
std::vector<Result<History>> histories_of(const std::vector<lock::LockName>& names, uint64_t runs,
                                          Session& session) {
  auto batch = session.ask([&](auto& store) { return store.histories(names, 2 * runs + 1); });
  std::vector<Result<History>> all;
  for (size_t i = 0; i < names.size(); ++i) {
    auto rows = batch ? std::move((*batch)[i]) : Result<lock::HistoryRows>(batch.error());
    const bool may_pass = batch && !rows && rows.error().retry == Retry::later;
    if (may_pass) {
      all.push_back(history_of(names[i], runs, session));
    } else {
      all.push_back(rows ? Result<History>(to_history(names[i].text(), *rows, runs))
                         : rows.error());
    }
  }
  return all;
}

Result<int> print_all(const HistorySettings& settings, Session& session, const Choices& choices) {
  constexpr size_t kAtOnce = 100;
  TRY(auto all, all_names(session));
  int code = report_missing(all.missing);
  History lines;
  for (size_t from = 0; from < all.names.size(); from += kAtOnce) {
    std::vector<lock::LockName> names;
    const size_t end = std::min(from + kAtOnce, all.names.size());
    for (size_t i = from; i < end; ++i) names.push_back(all.names[i].name);
    auto histories = histories_of(names, settings.runs, session);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& text = names[i].text();
      auto& history = histories[i];
      if (!history && !concerns_one_lock(history.error())) {
        return fail(history.error(), choices, {text});
      }
      if (!history) {
        print_error(history.error(), {text});
        code = exit_code(history.error().kind);
        continue;
      }
      std::move(history->begin(), history->end(), std::back_inserter(lines));
      keep_newest(lines, settings.runs);
    }
  }
  return print_result(text_of({}, lines, choices), code);
}

}  // namespace

Result<int> history_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto settings, history_settings(invocation));
  TRY(auto session, Session::open(choices));
  if (!settings.name) return print_all(settings, session, choices);
  auto history = history_of(*settings.name, settings.runs, session);
  if (!history) return fail(history.error(), choices, {settings.name->text()});
  return print_result(text_of(settings.name, *history, choices));
}

}  // namespace rlock::cli
