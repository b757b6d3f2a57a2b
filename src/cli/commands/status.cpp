#include <unistd.h>

#include <algorithm>

#include "cli/commands/blocking_key.hpp"
#include "cli/commands/commands.hpp"
#include "cli/deadlock.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/render.hpp"
#include "cli/run_observer.hpp"
#include "cli/settings/connect.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

struct StatusSettings {
  Selection locks{};
  std::optional<lock::Owner> owner{};
  bool of_nobody = false;  // --owner is empty, which is the value of $RLOCK_OWNER outside a run
  bool quiet = false;
  bool json = false;  // shows more about free locks
  bool all = false;   // also locks that are free
};

Result<StatusSettings> status_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  StatusSettings settings;
  TRY(settings.locks, selection_of(invocation));
  settings.quiet = choices.has(Opt::quiet);
  settings.json = choices.has(Opt::json);
  settings.all = choices.has(Opt::all);
  settings.of_nobody = choices.last(Opt::owner) == "";
  if (!settings.of_nobody) {
    TRY(settings.owner, owner_choice(choices));
  }
  if (settings.all && !settings.locks.empty()) {
    return usage("status --all lists every lock: give it no NAME");
  }
  if (settings.quiet && !settings.locks.patterns.empty()) {
    return usage("status -q takes names of locks, not the pattern " +
                 in_quotes(settings.locks.patterns.front()));
  }
  if (settings.quiet && settings.locks.names.empty()) {
    return usage("status -q needs a NAME: its exit code shows whether that lock is held");
  }
  if (choices.has(Opt::owner) && !settings.quiet) {
    return usage("status --owner needs -q: rlock status -q --owner ID NAME");
  }
  return settings;
}

// Free locks are counted, not listed.
bool counts_free(const StatusSettings& settings) {
  return settings.locks.empty() && !settings.all;
}

struct StatusResult {
  std::vector<LockView> locks{};
  std::vector<Error> missing{};    // why other locks are missing
  std::optional<uint64_t> free{};  // the number of locks that are not listed, all of them free
};

// The progress of a long listing, in a line on the terminal that is erased at the end.
class ListingProgress {
 public:
  explicit ListingProgress(const StatusSettings& settings)
      : shown_(!settings.quiet && is_terminal(STDERR_FILENO)) {}

  void draw(const std::string& text) {
    constexpr Millis kEvery{200};
    const TimePoint now = BootClock::now();
    if (!shown_ || now < next_) return;
    line_.draw(text);
    next_ = now + kEvery;
  }

 private:
  static constexpr Millis kFirst{500};
  const bool shown_;
  TimePoint next_ = BootClock::now() + kFirst;
  WaitingLine line_;
};

Result<std::vector<LockView>> inspect_locks(Session& session,
                                            const std::vector<lock::LockName>& names,
                                            ListingProgress& progress) {
  auto snapshots = inspect_holders(session, names, [&](uint64_t count) {
    progress.draw(util::format("reading {} locks: {}", names.size(), count));
  });
  std::vector<LockView> locks;
  for (size_t i = 0; i < names.size(); ++i) {
    auto& snapshot = snapshots[i];
    if (!snapshot && !concerns_one_lock(snapshot.error())) return std::move(snapshot).error();
    locks.push_back({names[i].text(), std::move(snapshot), session.format()});
  }
  return locks;
}

// Leaves out locks that vanished after the listing.
Status add_listed(StatusResult& result, Session& session, const StatusSettings& settings,
                  ListingProgress& progress) {
  const auto listed = counts_free(settings) ? ListedNames::in_use : ListedNames::all;
  TRY(auto all, all_names(session, listed, [&](uint64_t count) {
        progress.draw(util::format("listing locks: {}", count));
      }));
  result.missing = std::move(all.missing);
  std::vector<lock::LockName> names;
  std::vector<LockView> free_locks;  // known by their keys: they need not be read
  lock::Snapshot unused;
  unused.known = true;
  for (const auto& [name, in_use] : all.names) {
    if (!settings.locks.lists(name)) continue;
    // A quorum's locks are read to show which servers are silent, and JSON contains the counters of
    // each lock.
    if (in_use || session.servers() > 1 || settings.json) {
      names.push_back(name);
    } else {
      free_locks.push_back({name.text(), unused});
    }
  }
  TRY(auto locks, inspect_locks(session, names, progress));
  std::erase_if(locks, [](const LockView& lock) { return lock.snapshot && !lock.snapshot->known; });
  if (counts_free(settings)) result.free = all.others + std::erase_if(locks, is_idle);
  std::move(free_locks.begin(), free_locks.end(), std::back_inserter(locks));
  std::sort(locks.begin(), locks.end(),
            [](const LockView& one, const LockView& other) { return one.name < other.name; });
  std::move(locks.begin(), locks.end(), std::back_inserter(result.locks));
  return Done{};
}

// Adds a key of another program that prevents every run from acquiring the lock.
void explain_key(LockView& lock, const Session& session, const lock::LockName& name) {
  if (!lock.snapshot) {
    Error error = lock.snapshot.error();
    error.text += blocking_key_hint(error, session, name);
    lock.snapshot = std::move(error);
    return;
  }
  const auto& holders = lock.snapshot->holders;
  if (!holders.empty() && !holders.front().left) {
    lock.blocking_key = blocking_key_text(session, name);
  }
}

// The named locks, then those of the listing.
Result<StatusResult> collect_locks(Session& session, const StatusSettings& settings) {
  ListingProgress progress(settings);
  StatusResult result;
  TRY(result.locks, inspect_locks(session, settings.locks.names, progress));
  for (size_t i = 0; i < result.locks.size(); ++i) {
    if (settings.quiet || session.servers() != 1) break;
    explain_key(result.locks[i], session, settings.locks.names[i]);
  }
  if (settings.locks.is_listing()) TRY_STATUS(add_listed(result, session, settings, progress));
  if (!settings.quiet) mark_deadlocks(session, result.locks);
  return result;
}

bool is_held(const LockView& lock, const std::optional<lock::Owner>& owner) {
  if (!lock.snapshot) return false;
  const auto& holders = lock.snapshot->holders;
  return std::any_of(holders.begin(), holders.end(), [&](const lock::Holder& holder) {
    bool theirs = !owner || holder.owner == owner->text();
    return theirs && holder.state != lock::HolderState::cooldown;
  });
}

// The table of locks has no room for the servers that did not answer.
void warn_of_silent(const std::vector<LockView>& locks) {
  if (locks.empty() || !locks.front().snapshot) return;
  for (const lock::SilentServer& server : locks.front().snapshot->silent) print_message(server.why);
}

std::string table_of(const StatusResult& result, const StatusSettings& settings, size_t width) {
  const std::string table = result.locks.empty() ? "" : status_table(result.locks, width);
  if (result.free.value_or(0) > 0) {
    return util::format("{}{} free; --all lists {}\n", table, *result.free,
                        *result.free == 1 ? "it" : "them");
  }
  if (!table.empty() || !result.missing.empty()) return table;
  if (settings.locks.patterns.empty()) return "no locks\n";
  return util::format("no lock matches {}\n", in_quotes(settings.locks.patterns.front()));
}

std::string text_of(const StatusResult& result, const StatusSettings& settings) {
  const size_t width = line_width(STDOUT_FILENO);
  if (settings.locks.is_listing()) return table_of(result, settings, width);
  std::string text;
  for (const LockView& lock : result.locks) text += lock_details(lock, width);
  return text;
}

// At most the first unknown name, because each costs a search of the server.
std::span<const lock::LockName> names_of_no_lock(const StatusResult& result,
                                                 const StatusSettings& settings) {
  const auto& names = settings.locks.names;
  for (size_t i = 0; i < names.size(); ++i) {
    const LockView& lock = result.locks[i];
    if (lock.snapshot && !is_known(lock)) return {&names[i], 1};
  }
  return {};
}

int code_of(const StatusResult& result, const StatusSettings& settings) {
  const std::vector<LockView>& locks = result.locks;
  if (!result.missing.empty()) return exit_code(result.missing.front().kind);
  for (const LockView& lock : locks) {
    if (!lock.snapshot) return exit_code(lock.snapshot.error().kind);
  }
  if (!settings.quiet) return kSuccess;
  bool all = !settings.of_nobody && std::all_of(locks.begin(), locks.end(), [&](const auto& lock) {
    return is_held(lock, settings.owner);
  });
  return all ? kSuccess : kNotHeld;
}

}  // namespace

Result<Report> status_command(const Invocation& invocation) {
  TRY(auto settings, status_settings(invocation));
  // The result does not depend on the server.
  if (settings.of_nobody && !settings.json) return Report{.code = kNotHeld};
  TRY(auto session, Session::open(invocation.choices));
  TRY(auto result, collect_locks(session, settings));
  report_missing(result.missing);
  for (const LockView& lock : result.locks) {
    if (!lock.snapshot) print_error(lock.snapshot.error(), {lock.name});
  }
  for (const lock::LockName& name : names_of_no_lock(result, settings)) {
    report_near_name(session, name, invocation.choices);
  }
  if (settings.locks.is_listing() && !settings.json) warn_of_silent(result.locks);
  const int code = code_of(result, settings);
  return Report{[result] { return status_json(result.locks, result.free); },
                [result, settings] { return text_of(result, settings); }, code};
}

}  // namespace rlock::cli
