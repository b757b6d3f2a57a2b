#include <algorithm>
#include <limits>

#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/view.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The exit codes of a monitoring plugin.
enum class Verdict { ok = 0, warning = 1, critical = 2, unknown = 3 };

struct CheckSettings {
  lock::LockName name;
  std::optional<Millis> within{}, max_held{}, max_wait{};
  std::optional<uint64_t> max_waiters{};
  bool critical = false;
};

Result<CheckSettings> check_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto name, only_name(invocation));
  CheckSettings settings{std::move(name)};
  settings.within = choices.duration(Opt::within);
  settings.max_held = choices.duration(Opt::max_held);
  settings.max_wait = choices.duration(Opt::max_wait);
  settings.max_waiters = choices.number(Opt::max_waiters);
  settings.critical = choices.has(Opt::critical);
  return settings;
}

// Removes `|`, which ends the text of a plugin.
Report print_verdict(Verdict verdict, std::string text, const std::string& performance = {}) {
  std::replace(text.begin(), text.end(), '|', '/');
  const auto word =
      util::to_string<Verdict::unknown>(verdict, {"OK", "WARNING", "CRITICAL", "UNKNOWN"});
  const int code = static_cast<int>(verdict);
  const auto line = util::format("RLOCK {} - {}{}\n", word, util::printable(text), performance);
  return {.code = print_result(line, code) == code ? code : static_cast<int>(Verdict::unknown)};
}

Millis since(lock::ServerTime now, lock::ServerTime then) {
  return std::max(Millis(0), Millis(now.ms - then.ms));
}

// The problems, the worst first.
struct Findings {
  Verdict verdict = Verdict::ok;
  std::string text{};

  void add(Verdict one, const std::string& what) {
    verdict = std::max(verdict, one);
    util::append(text, "; ", what);
  }
};

// A closure excuses what is missing because of it: a success, and the end of a wait.
Findings findings_of(const CheckSettings& settings, const lock::Snapshot& lock) {
  Findings findings;
  const Verdict lesser = settings.critical ? Verdict::critical : Verdict::warning;
  auto longer = [&](Verdict verdict, const char* what, Millis length,
                    const std::optional<Millis>& most) {
    if (!most || length <= *most) return;
    findings.add(verdict, util::format("{} {} (at most {})", what, util::format_duration(length),
                                       util::format_duration(*most)));
  };
  if (lock.needs) findings.add(lesser, "to acquire it needs " + needs_phrase(*lock.needs));
  const bool closed = is_closed(lock);
  if (settings.within && !closed && !lock.last_success) {
    findings.add(Verdict::critical, "no run has succeeded");
  } else if (!closed && lock.last_success) {
    longer(Verdict::critical, "no run has succeeded for", since(lock.now, lock.last_success->at),
           settings.within);
  }
  if (last_run_failed(lock)) {
    const uint64_t times = lock.failures_in_a_row;
    const lock::Failure& last = *lock.last_failure;
    const bool several = times > 1;
    const std::string runs = several ? util::format("the last {} runs failed", times) : "";
    if (last.result == "expired") {
      const std::string by = by_phrase(last.record);
      findings.add(
          lesser, util::format("{}{}{} died {}", several ? runs + "; the last one" : "the last run",
                               by, by.empty() ? "" : ",", age_and_time(last.at, lock.now)));
    } else {
      findings.add(
          lesser, util::format("{}: {}", several ? runs + ", most recently" : "the last run failed",
                               result_text(last)));
    }
  }
  for (const lock::Holder& holder : lock.holders) {
    const Life life = life_of(holder);
    if (life != Life::died && life != Life::overdue) continue;
    findings.add(lesser, util::format("held by {}: {}",
                                      process_phrase(decode_record(holder.record), holder.owner),
                                      life_phrase(holder)));
  }
  longer(lesser, "held for", longest_hold(lock), settings.max_held);
  if (!closed) {
    longer(lesser, "the first waiter has waited for", longest_wait(lock), settings.max_wait);
  }
  if (settings.max_waiters && lock.live_waiters > *settings.max_waiters) {
    findings.add(lesser,
                 util::format("{} waiting (at most {})", lock.live_waiters, *settings.max_waiters));
  }
  return findings;
}

// `held by …; last success 2h ago, at 2026-…Z, by alice@web1 (took 4m)`
std::string summary(const LockView& view) {
  const lock::Snapshot& lock = *view.snapshot;
  std::string text(to_string(state_of(lock)));
  if (is_closed(lock)) {
    text = (lock.holders.empty() ? "" : text + ", ") + closure_phrase(*lock.closure);
  }
  if (!lock.last_success) return text + "; no run has succeeded yet";
  const lock::Success& last = *lock.last_success;
  return util::format("{}; last success {}{} (took {})", text, age_and_time(last.at, lock.now),
                      by_phrase(last.record), util::format_duration(last.took));
}

std::string performance(const CheckSettings& settings, const lock::Snapshot& lock) {
  auto limits = [&](const std::string& most) {
    return settings.critical ? ";;" + most : util::format(";{};", most);
  };
  auto timed = [&](const char* label, Millis length, const std::optional<Millis>& most) {
    return util::format(" {}={}s{};0", label, in_seconds(length),
                        limits(most ? in_seconds(*most) : ""));
  };
  std::string text = " |";
  if (lock.last_success) {
    text += util::format(" age={}s;;{};0", in_seconds(since(lock.now, lock.last_success->at)),
                         settings.within ? in_seconds(*settings.within) : "");
  }
  if (auto took = last_duration(lock)) text += util::format(" took={}s;;;0", in_seconds(*took));
  text += timed("held", longest_hold(lock), settings.max_held);
  text += timed("wait", longest_wait(lock), settings.max_wait);
  return util::format("{} waiters={}{};0", text, lock.live_waiters,
                      limits(settings.max_waiters ? std::to_string(*settings.max_waiters) : ""));
}

}  // namespace

Report unknown_check(const Error& error) {
  return print_verdict(Verdict::unknown, error.text);
}

Result<Report> check_command(const Invocation& invocation) {
  TRY(auto settings, check_settings(invocation));
  TRY(auto session, Session::open(invocation.choices));
  auto seen = inspect_first_waiter(session, {&settings.name, 1});
  TRY(auto snapshot, std::move(seen.front()));
  const LockView lock{settings.name.text(), std::move(snapshot)};
  const std::string name = in_quotes(lock.name) + ": ";
  if (!is_known(lock)) {
    // If a job must succeed in time, and its timer never started it, that is an outage.
    return print_verdict(settings.within ? Verdict::critical : Verdict::unknown,
                         name + "never held, not within 30 days, or the server has lost its data" +
                             near_name_hint(session, settings.name));
  }
  const Findings findings = findings_of(settings, *lock.snapshot);
  const bool well = findings.verdict == Verdict::ok;
  if (well && invocation.choices.has(Opt::quiet)) return Report{};
  return print_verdict(findings.verdict, name + (well ? summary(lock) : findings.text),
                       performance(settings, *lock.snapshot));
}

}  // namespace rlock::cli
