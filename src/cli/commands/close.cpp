#include <algorithm>

#include "cli/commands/closures.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/timestamp.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

Result<Millis> length_of(const Choices& choices) {
  constexpr Millis kMost = std::chrono::hours(30 * 24);
  const auto until = choices.last(Opt::until);
  TRY(auto length, duration_choice(choices, Opt::closed_for));
  if (length && until) return usage("--for and --until cannot be used together");
  if (until) {
    TRY(length, time_left(Opt::until, *until, wall_clock().ms));
  }
  if (!length) return usage("close needs --for DUR or --until TIME: a closure ends by itself");
  if (*length < Millis(1)) return usage("the lock would be open again at once");
  if (*length > kMost) return usage("a lock can be closed for at most 30d");
  return *length;
}

// Not what is only in its cool-down.
std::vector<lock::Holder> runs_of(const lock::Snapshot& lock) {
  std::vector<lock::Holder> runs = lock.holders;
  std::erase_if(
      runs, [](const lock::Holder& holder) { return holder.state == lock::HolderState::cooldown; });
  return runs;
}

std::string text_of(const ClosureResult& result) {
  std::string text = (result.before ? "closed again: " : "closed ") + in_quotes(result.name.text());
  if (const auto& closure = result.after.closure) {
    text += " until " + utc_time(end_of_closure(*closure));
    if (result.after.servers > 1) {
      text += ", on " + std::to_string(closure->servers) + " of " +
              std::to_string(result.after.servers) + " servers";
    }
  }
  text += "\n";
  for (const lock::Holder& run : runs_of(result.after)) {
    text += "  goes on: " + holder_phrase(run, TimeStyle::start) + "\n";
  }
  if (result.after.live_waiters > 0) {
    text += "  " + std::to_string(result.after.live_waiters) + " waiting\n";
  }
  return text;
}

std::string text_of(const std::vector<ClosureResult>& results, const Selection& locks) {
  std::string text;
  size_t closed = 0;
  for (const ClosureResult& result : results) {
    if (result.error) continue;
    ++closed;
    text += text_of(result);
  }
  if (locks.patterns.empty()) return text;
  return text + std::to_string(closed) + (closed == 1 ? " lock was" : " locks were") +
         " closed; locks that are made later are open\n";
}

// Until nobody runs under any of them; ErrorKind::busy if somebody does then.
Status wait_for_runs(Session& session, const std::vector<ClosureResult>& results, Millis longest) {
  constexpr Millis kEvery{250};
  lock::SystemPoller poller;
  const TimePoint until = poller.now() + longest;
  for (const ClosureResult& result : results) {
    if (result.error) continue;
    while (true) {
      TRY(auto lock, inspect_holders(session, result.name));
      const auto runs = runs_of(lock);
      if (runs.empty()) break;
      if (poller.now() >= until) {
        return Error{ErrorKind::busy, in_quotes(result.name.text()) + " is closed, and after " +
                                          util::format_duration(longest) + " still " +
                                          holder_phrase(runs.front(), TimeStyle::start)};
      }
      poller.pause(std::min(until, poller.now() + kEvery));
    }
  }
  return Done{};
}

}  // namespace

int close_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = closure_settings(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto length = length_of(choices);
  if (!length) return fail(length.error(), choices);
  settings->length = *length;
  auto wait = duration_choice(choices, Opt::wait);
  if (!wait) return fail(wait.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  auto names = locks_to_change(*session, settings->locks);
  if (!names) return fail(names.error(), choices);

  std::vector<ClosureResult> results;
  for (const lock::LockName& name : *names) {
    results.push_back(change_closure(*session, name, *settings));
  }
  int code = report_failures(results);
  std::string output;
  if (choices.has(Opt::json)) {
    output = closures_json(results);
  } else if (!choices.has(Opt::quiet)) {
    output = text_of(results, settings->locks);
  }
  code = print_result(output, code);
  if (!*wait) return code;
  auto waited = wait_for_runs(*session, results, **wait);
  if (waited) return code;
  print_error(waited.error());
  return exit_code(waited.error().kind);
}

}  // namespace rlock::cli
