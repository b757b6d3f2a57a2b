#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/render.hpp"
#include "cli/output/view.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

struct HistorySettings {
  std::optional<lock::LockName> name;  // nullopt: all locks
  uint64_t runs = 20;
};

Result<HistorySettings> history_settings(const Invocation& invocation) {
  HistorySettings settings;
  TRY(settings.name, optional_name(invocation));
  settings.runs = invocation.choices.number(Opt::runs).value_or(settings.runs);
  return settings;
}

// There may be a row of skips before and after each run. Each closure adds more rows.
constexpr uint64_t rows_for(uint64_t runs) {
  return 2 * runs + 1;
}

// Returns whether the server may have more of the `runs` than are in these rows, which are as many
// as were asked for.
bool lacks_runs(const lock::HistoryRows& rows, uint64_t asked, uint64_t runs) {
  const auto found = std::count_if(rows.begin(), rows.end(), [](const lock::HistoryRow& row) {
    return std::holds_alternative<lock::Run>(row);
  });
  return rows.size() >= asked && static_cast<uint64_t>(found) < runs;
}

Result<lock::HistoryRows> rows_of(const lock::LockName& name, uint64_t runs, Session& session) {
  for (uint64_t most = rows_for(runs);; most *= 8) {
    TRY(auto rows, session.ask([&](auto& store) { return store.history(name, most); }));
    if (!lacks_runs(rows, most, runs)) return rows;
  }
}

// Says that the only run of the lock so far has not ended.
void report_first_run(Session& session, const lock::LockName& name, const Choices& choices) {
  if (choices.has(Opt::quiet) || choices.has(Opt::json)) return;
  const auto seen = inspect_holders(session, name);
  if (!seen || seen->holders.empty()) return;
  print_message(
      util::format("{} at {}: the first run is in progress and is recorded when it ends: {}; rlock "
                   "status{} {} shows it",
                   in_quotes(name.text()), util::printable(session.server()),
                   holder_phrase(seen->holders.front()), session.lock_options(),
                   typed_name(name.text())),
      Weight::notice);
}

// `name`: nullopt for all locks.
std::string text_of(const std::optional<lock::LockName>& name, const History& history) {
  if (history.empty()) {
    return util::format("no runs {}are recorded\n",
                        name ? util::format("of {} ", in_quotes(name->text())) : "");
  }
  return history_table(history, name ? NameColumn::hidden : NameColumn::shown,
                       line_width(STDOUT_FILENO));
}

// `name`: nullopt for all locks.
Report report_of(const std::optional<lock::LockName>& name, const History& history, int code) {
  return {[=] { return history_json(name, history); }, [=] { return text_of(name, history); },
          code};
}

Result<Report> history_of_all(const HistorySettings& settings, Session& session) {
  constexpr std::ptrdiff_t kAtOnce = 100;
  const uint64_t runs = settings.runs;
  TRY(auto all, all_names(session));
  int code = report_missing(all.missing);
  const auto names = selected(std::move(all.names));
  History lines;
  for (auto from = names.begin(); from != names.end();) {
    const std::vector<lock::LockName> some(from, from + std::min(kAtOnce, names.end() - from));
    from += std::ssize(some);
    auto batch = session.ask([&](auto& store) { return store.histories(some, rows_for(runs)); });
    for (size_t i = 0; i < some.size(); ++i) {
      const std::string& name = some[i].text();
      auto rows = batch ? std::move((*batch)[i]) : Result<lock::HistoryRows>(batch.error());
      const bool may_pass = batch && !rows && rows.error().retry == Retry::later;
      if (may_pass || (rows && lacks_runs(*rows, rows_for(runs), runs))) {
        rows = rows_of(some[i], runs, session);
      }
      if (!rows) {
        if (!concerns_one_lock(rows.error())) return failure(rows.error(), {name});
        code = print_error(rows.error(), {name});
        continue;
      }
      History history = to_history(name, *rows, runs);
      std::move(history.begin(), history.end(), std::back_inserter(lines));
      keep_newest(lines, runs);
    }
  }
  return report_of({}, lines, code);
}

}  // namespace

Result<Report> history_command(const Invocation& invocation) {
  TRY(auto settings, history_settings(invocation));
  TRY(auto session, Session::open(invocation.choices));
  if (!settings.name) return history_of_all(settings, session);
  const std::string& name = settings.name->text();
  auto rows = rows_of(*settings.name, settings.runs, session);
  if (!rows) return failure(rows.error(), {name});
  if (rows->empty()) {
    report_first_run(session, *settings.name, invocation.choices);
    report_unknown_name(session, *settings.name, invocation.choices);
  }
  return report_of(settings.name, to_history(name, *rows, settings.runs), kSuccess);
}

}  // namespace rlock::cli
