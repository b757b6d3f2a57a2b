// `rlock close` and `rlock open`.
#include <algorithm>
#include <cstdlib>

#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/run_settings.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The locks, and the change to make to each.
struct ClosureSettings {
  Selection locks{};
  std::optional<Millis> length{};  // nullopt: open the lock
  bool may_shorten = false;        // a closure of somebody else, too
  std::string note{};
};

// The result for one lock.
struct ClosureResult {
  lock::LockName name;
  std::optional<Error> error{};
  lock::Snapshot before{};
  std::string id{};  // of the new closure
  lock::Snapshot after{};
};

// The note is shown in one line, and stored on the server.
Result<std::string> note_of(const Choices& choices) {
  constexpr size_t kMost = 200;
  const auto reason = choices.last(Opt::reason);
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (reason && reason->size() > kMost)
    return usage("--reason is longer than 200 bytes; shorten it");
  if (reason && std::any_of(reason->begin(), reason->end(), is_control)) {
    return usage("--reason contains control characters; leave them out");
  }
  return operator_note(reason);
}

Result<ClosureSettings> closure_settings(const Invocation& invocation) {
  ClosureSettings settings;
  TRY(settings.locks, selection_of(invocation));
  if (settings.locks.empty()) {
    return usage(
        util::format("no lock name given: rlock {} NAME...", row_of(invocation.command).name));
  }
  TRY(settings.note, note_of(invocation.choices));
  settings.may_shorten = invocation.choices.has(Opt::replace);
  return settings;
}

Result<Millis> closure_length(const Choices& choices) {
  constexpr Millis kMost = std::chrono::hours(30 * 24);
  const auto until = choices.last(Opt::until);
  auto length = choices.duration(Opt::closed_for);
  if (length && until) return usage("--for and --until cannot be used together");
  if (until) {
    TRY(length, time_left(Opt::until, *until, wall_clock().ms));
  }
  if (!length) return usage("close needs --for DUR or --until TIME: no lock stays closed forever");
  if (*length < Millis(1))
    return usage("the lock would open again immediately: use a later --until or a longer --for");
  if (*length > kMost)
    return usage("a lock can be closed for at most 30d; to keep it closed, run rlock close again");
  return *length;
}

// The named locks, and the locks that match a pattern now. A pattern that matches none is an error,
// because a typing error must not leave open what should be closed.
Result<std::vector<lock::LockName>> locks_to_change(Session& session,
                                                    const ClosureSettings& settings) {
  const Selection& locks = settings.locks;
  std::vector<lock::LockName> names = locks.names;
  if (locks.patterns.empty()) return names;
  TRY(auto all, all_names(session));
  if (!all.missing.empty()) return all.missing.front();
  for (const std::string& pattern : locks.patterns) {
    const bool found = std::any_of(all.names.begin(), all.names.end(), [&](const ListedName& one) {
      return util::matches(pattern, one.name.text());
    });
    if (found) continue;
    const std::string none = "no lock matches " + in_quotes(pattern);
    if (settings.length)
      return usage(none + ": nothing was closed; rlock status --all lists the names");
    print_message(none);
  }
  auto more = selected(std::move(all.names), locks);
  std::move(more.begin(), more.end(), std::back_inserter(names));
  return names;
}

// Adds whether the lock may be closed. A server that is out of memory, or cannot save, has refused
// this write, and would have found the closure of an earlier try.
Error not_closed(Error error, const lock::LockName& name, const Session& session) {
  if (error.cause == Cause::out_of_memory || error.cause == Cause::cannot_save) {
    error.text += util::format("; {} was not closed", in_quotes(name.text()));
  } else if (error.kind == ErrorKind::unavailable) {
    error.text +=
        util::format("; {} may be closed: check with rlock status{} {}", in_quotes(name.text()),
                     session.lock_options(), typed_name(name.text()));
  }
  return error;
}

// Whether another user, or a user of another host, closed the lock.
bool is_of_another(const lock::Closure& closure) {
  const Record theirs = decode_record(closure.record), own = own_record();
  return theirs.user != own.user || theirs.host != own.host;
}

// Refuses to end somebody else's closure earlier.
Status check_shortening(const lock::Snapshot& lock, const lock::LockName& name,
                        const ClosureSettings& settings) {
  if (!lock.closure || settings.may_shorten || !is_of_another(*lock.closure)) return Done{};
  if (lock.now.ms + settings.length->count() >= lock.closure->until.ms) return Done{};
  return Error{ErrorKind::busy,
               util::format("{} stays {}; to let it open sooner, add --replace",
                            in_quotes(name.text()), closure_phrase(*lock.closure))};
}

Status set_closure(ClosureResult& result, Session& session, const ClosureSettings& settings) {
  TRY(result.before, inspect_holders(session, result.name));
  const lock::Snapshot& seen = result.before;
  result.after = seen;
  if (!settings.length && !seen.closure) return Done{};
  if (settings.length) TRY_STATUS(check_shortening(seen, result.name, settings));
  lock::ClosureCall call{result.name};
  util::SystemRandom random;
  if (settings.length) call.id = result.id = util::random_hex(random);
  if (seen.closure) call.seen = seen.closure->id;
  call.looked = seen.now;
  call.length = settings.length.value_or(Millis(0));
  call.record = settings.note;
  auto reply = session.change([&](auto& store) { return store.set_closure(call); });
  if (!reply) {
    const bool unsure = settings.length && session.servers() == 1;
    return unsure ? not_closed(reply.error(), result.name, session) : reply.error();
  }
  if (*reply == lock::ClosureReply::changed) {
    return Error{ErrorKind::busy,
                 util::format("nothing was changed: someone else closed or opened {} at the same "
                              "moment; check with: rlock status{} {}",
                              in_quotes(result.name.text()), session.lock_options(),
                              typed_name(result.name.text()))};
  }
  auto after = inspect_holders(session, result.name);
  result.after = after ? *std::move(after) : lock::Snapshot{};
  return Done{};
}

Result<std::vector<ClosureResult>> set_closures(Session& session, const ClosureSettings& settings) {
  TRY(auto names, locks_to_change(session, settings));
  std::vector<ClosureResult> results;
  for (lock::LockName& name : names) {
    ClosureResult& result = results.emplace_back(ClosureResult{std::move(name)});
    if (auto set = set_closure(result, session, settings); !set) result.error = set.error();
  }
  return results;
}

// The holders without those that are only in their cool-down.
std::vector<lock::Holder> runs_of(const lock::Snapshot& lock) {
  std::vector<lock::Holder> runs = lock.holders;
  std::erase_if(
      runs, [](const lock::Holder& holder) { return holder.state == lock::HolderState::cooldown; });
  return runs;
}

// Whether the lock would be open if one more server lost its closure, for example after a restart
// without its data.
bool an_outage_opens(const lock::Snapshot& lock) {
  const uint64_t majority = lock.servers / 2 + 1;
  return lock.servers + 1 >= lock.closure->servers + majority;
}

std::string closed_text(const ClosureResult& result) {
  const lock::Snapshot& lock = result.after;
  std::string text = util::format("{} {}", result.before.closure ? "closed again:" : "closed",
                                  in_quotes(result.name.text()));
  if (lock.closure) text += " until " + time_text(lock.closure->until);
  if (lock.closure && lock.servers > 1) {
    text += util::format(", on {} of {} servers", lock.closure->servers, lock.servers);
    if (an_outage_opens(lock)) text += "; an outage of one of them opens the lock";
  }
  text += "\n";
  if (const auto& before = result.before.closure) {
    text += util::format("  it was {}\n", closure_phrase(*before));
  }
  for (const lock::Holder& run : runs_of(lock)) {
    text += util::format("  keeps running: {}\n", holder_phrase(run));
  }
  if (lock.live_waiters > 0) text += util::format("  {} waiting\n", lock.live_waiters);
  return text;
}

// Whether the lock was as the user wants it: open, or closed until the same time, to the second.
bool is_unchanged(const ClosureResult& result) {
  const auto &before = result.before.closure, &after = result.after.closure;
  if (!before || !after) return !before && !after;
  return std::abs(before->until.ms - after->until.ms) < 1000;
}

// With a pattern, the locks that were as asked before share this line. Empty if there is none.
std::string summary_of(size_t unchanged, const char* state) {
  if (unchanged == 0) return {};
  return util::format("{} already {}\n",
                      unchanged == 1 ? "1 lock was" : util::format("{} locks were", unchanged),
                      state);
}

std::string closed_text(const std::vector<ClosureResult>& results, const Selection& locks) {
  std::string text;
  size_t closed = 0, unchanged = 0;
  for (const ClosureResult& result : results) {
    if (result.error) continue;
    ++closed;
    const bool idle = runs_of(result.after).empty() && result.after.live_waiters == 0;
    if (!locks.patterns.empty() && result.before.closure && is_unchanged(result) && idle) {
      ++unchanged;
    } else {
      text += closed_text(result);
    }
  }
  if (locks.patterns.empty()) return text;
  return util::format("{}{}{} closed; a lock that is first used later is open\n", text,
                      summary_of(unchanged, "closed until then"),
                      closed == 1 ? "1 lock was" : util::format("{} locks were", closed));
}

std::string opened_text(const std::vector<ClosureResult>& results, const Selection& locks) {
  std::string text;
  size_t unchanged = 0;
  for (const ClosureResult& result : results) {
    if (result.error) continue;
    const std::string name = in_quotes(result.name.text());
    const bool quiet = !locks.patterns.empty() && result.after.silent.empty();
    if (quiet && is_unchanged(result)) {
      ++unchanged;
      continue;
    }
    text += result.before.closure ? util::format("opened {}\n", name)
                                  : util::format("{} is already open\n", name);
    // If the lock was closed on a silent server, it still is.
    for (const lock::SilentServer& silent : result.after.silent) {
      text += util::format("  no answer from {}\n", util::printable(silent.server));
    }
  }
  text += summary_of(unchanged, "open");
  return text.empty() ? "no lock was opened\n" : text;
}

// The locks in their present state, in the form of `status --json`.
std::string closures_json(const std::vector<ClosureResult>& results) {
  std::vector<LockView> locks;
  for (const ClosureResult& result : results) {
    auto after = result.error ? Result<lock::Snapshot>(*result.error) : Result(result.after);
    locks.push_back({result.name.text(), std::move(after)});
  }
  return status_json(locks);
}

// The exit code is that of the last failure.
Report report_of(const std::vector<ClosureResult>& results, const std::string& text) {
  int code = kSuccess;
  for (const ClosureResult& result : results) {
    if (result.error) code = print_error(*result.error, {result.name.text()});
  }
  return {[=] { return closures_json(results); }, [=] { return text; }, code};
}

// The run that still holds a closed lock; nullopt: none. ErrorKind::busy if someone changed the
// closure, because a new run may have started since.
Result<std::optional<lock::Holder>> run_under(Session& session, ClosureResult& closed) {
  TRY(closed.after, inspect_holders(session, closed.name));
  const lock::Snapshot& lock = closed.after;
  if (!lock.closure || lock.closure->id != closed.id) {
    return Error{
        ErrorKind::busy,
        util::format("someone else changed the closure of {}: {}; a new run may have started, so "
                     "close the lock again before you start the work",
                     in_quotes(closed.name.text()),
                     lock.closure ? closure_phrase(*lock.closure) : "it is open")};
  }
  const auto runs = runs_of(lock);
  return runs.empty() ? std::nullopt : std::optional(runs.front());
}

// Waits until no run holds any of the locks; ErrorKind::busy if one still does after `longest`.
Status wait_for_runs(Session& session, std::vector<ClosureResult>& results, Millis longest) {
  constexpr Millis kEvery{250};
  lock::SystemPoller poller;
  const TimePoint until = poller.now() + longest;
  while (true) {
    std::optional<Error> busy;
    for (ClosureResult& result : results) {
      if (result.error) continue;
      TRY(auto run, run_under(session, result));
      if (!run || busy) continue;
      busy = Error{ErrorKind::busy,
                   util::format("{} is closed, but after {} (--wait) it is still {}; wait for "
                                "longer, or stop this run: rlock force-unlock{} {}",
                                in_quotes(result.name.text()), util::format_duration(longest),
                                holder_phrase(*run), session.lock_options(),
                                typed_name(result.name.text()))};
    }
    if (!busy) return Done{};
    if (poller.now() >= until) return *std::move(busy);
    poller.pause(std::min(until, poller.now() + kEvery));
  }
}

}  // namespace

Result<Report> close_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto settings, closure_settings(invocation));
  for (const lock::LockName& name : settings.locks.names) {
    TRY_STATUS(check_new_name(name, choices));
  }
  TRY(settings.length, closure_length(choices));
  const auto wait = choices.duration(Opt::wait);
  TRY(auto session, Session::open(choices));
  TRY(auto results, set_closures(session, settings));
  for (const ClosureResult& result : results) {
    if (!result.error) report_unused_name(session, result.name, result.before, choices);
  }
  const std::string text = closed_text(results, settings.locks);
  // With --json there is one document: about the locks after the wait, or about the error.
  const bool early = wait && !choices.has(Opt::json);
  Report printed{.code = early ? print_report(report_of(results, text), choices) : kSuccess};
  if (wait) TRY_STATUS(wait_for_runs(session, results, *wait));
  return early ? printed : report_of(results, text);
}

Result<Report> open_command(const Invocation& invocation) {
  TRY(auto settings, closure_settings(invocation));
  TRY(auto session, Session::open(invocation.choices));
  TRY(auto results, set_closures(session, settings));
  for (const ClosureResult& result : results) {
    if (!result.error && !result.before.closure) {
      report_unknown_name(session, result.name, invocation.choices);
    }
  }
  return report_of(results, opened_text(results, settings.locks));
}

}  // namespace rlock::cli
