#include <algorithm>
#include <limits>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/history_rows.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
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
  TRY(settings.within, duration_choice(choices, Opt::within));
  TRY(settings.max_held, duration_choice(choices, Opt::max_held));
  TRY(settings.max_wait, duration_choice(choices, Opt::max_wait));
  TRY(settings.max_waiters,
      number_choice(choices, Opt::max_waiters, std::numeric_limits<uint32_t>::max()));
  settings.critical = choices.has(Opt::critical);
  return settings;
}

// `|` ends the text of a plugin.
int print_verdict(Verdict verdict, std::string text, const std::string& performance = {}) {
  std::replace(text.begin(), text.end(), '|', '/');
  constexpr const char* kWords[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  const int code = static_cast<int>(verdict);
  const std::string line =
      std::string("RLOCK ") + kWords[code] + " - " + util::printable(text) + performance + "\n";
  return print_result(line, code) == code ? code : static_cast<int>(Verdict::unknown);
}

Millis since(lock::ServerTime now, lock::ServerTime then) {
  return std::max(Millis(0), Millis(now.ms - then.ms));
}

// What is wrong, the worst first.
class Findings {
 public:
  void add(Verdict verdict, const std::string& text) {
    verdict_ = std::max(verdict_, verdict);
    text_ += (text_.empty() ? "" : "; ") + text;
  }
  Verdict verdict() const { return verdict_; }
  const std::string& text() const { return text_; }

 private:
  Verdict verdict_ = Verdict::ok;
  std::string text_;
};

void check_success(const CheckSettings& settings, const lock::Snapshot& lock, Findings& findings) {
  if (!settings.within) return;
  if (!lock.last_success) return findings.add(Verdict::critical, "no run has succeeded");
  const Millis age = since(lock.now, lock.last_success->at);
  if (age <= *settings.within) return;
  findings.add(Verdict::critical, "no run has succeeded for " + util::format_duration(age) +
                                      " (at most " + util::format_duration(*settings.within) + ")");
}

// A closure excuses what is missing because of it: a success, and an end of the wait.
Findings findings_of(const CheckSettings& settings, const lock::Snapshot& lock) {
  Findings findings;
  const Verdict lesser = settings.critical ? Verdict::critical : Verdict::warning;
  auto longer = [&](const char* what, Millis length, const std::optional<Millis>& most) {
    if (!most || length <= *most) return;
    findings.add(lesser, what + util::format_duration(length) + " (at most " +
                             util::format_duration(*most) + ")");
  };
  const bool closed = is_closed(lock);
  if (!closed) check_success(settings, lock, findings);
  if (last_run_failed(lock)) {
    const uint64_t times = lock.failures_in_a_row;
    const lock::Failure& last = *lock.last_failure;
    const std::string who = who_text(decode_record(last.record));
    const std::string death =
        (who.empty() ? "" : ", by " + who + ",") + " died " + age_and_time(last.at, lock.now);
    if (last.result == "expired") {
      findings.add(lesser, times > 1 ? "the last " + std::to_string(times) +
                                           " runs failed; the last one" + death
                                     : "the last run" + death);
    } else {
      findings.add(lesser,
                   (times > 1 ? "the last " + std::to_string(times) + " runs failed, at last: "
                              : "the last run failed: ") +
                       result_text(last.result));
    }
  }
  for (const lock::Holder& holder : lock.holders) {
    const auto late = overdue(holder);
    if (!late) continue;
    const Record record = decode_record(holder.record);
    const std::string who = who_text(record);
    findings.add(lesser, "the renewal" + (who.empty() ? "" : " by " + who) + " is overdue by " +
                             util::format_duration(*late) + ": the holder " +
                             (is_gone(record) ? "is dead" : "may be dead"));
  }
  longer("held for ", longest_hold(lock), settings.max_held);
  if (!closed) longer("the first waiter has waited for ", longest_wait(lock), settings.max_wait);
  if (settings.max_waiters && lock.live_waiters > *settings.max_waiters) {
    findings.add(lesser, std::to_string(lock.live_waiters) + " wait (at most " +
                             std::to_string(*settings.max_waiters) + ")");
  }
  return findings;
}

// `held by …; last success 2h ago, at 2026-…Z, by alice@web1 (took 4m)`
std::string summary(const LockView& view) {
  const lock::Snapshot& lock = *view.snapshot;
  std::string text(to_string(state_of(lock)));
  if (is_closed(lock))
    text = (lock.holders.empty() ? "" : text + ", ") + closure_phrase(*lock.closure);
  if (!lock.last_success) return text + "; no run has succeeded yet";
  const lock::Success& last = *lock.last_success;
  const std::string who = who_text(decode_record(last.record));
  return text + "; last success " + age_and_time(last.at, lock.now) +
         (who.empty() ? "" : ", by " + who) + " (took " + util::format_duration(last.took) + ")";
}

std::string in_seconds(Millis length) {
  const auto ms = length.count();
  const std::string rest = std::to_string(1000 + ms % 1000).substr(1);
  return std::to_string(ms / 1000) + "." + rest;
}

std::string performance(const CheckSettings& settings, const lock::Snapshot& lock) {
  auto limits = [&](const std::string& most) {
    return ";" + (settings.critical ? "" : most) + ";" + (settings.critical ? most : "");
  };
  auto most = [&](const std::optional<Millis>& limit) {
    return limits(limit ? in_seconds(*limit) : "") + ";0";
  };
  std::string text = " |";
  if (lock.last_success) {
    text += " age=" + in_seconds(since(lock.now, lock.last_success->at)) + "s;;" +
            (settings.within ? in_seconds(*settings.within) : "") + ";0";
  }
  if (auto took = last_duration(lock)) text += " took=" + in_seconds(*took) + "s;;;0";
  text += " held=" + in_seconds(longest_hold(lock)) + "s" + most(settings.max_held);
  text += " wait=" + in_seconds(longest_wait(lock)) + "s" + most(settings.max_wait);
  return text + " waiters=" + std::to_string(lock.live_waiters) +
         limits(settings.max_waiters ? std::to_string(*settings.max_waiters) : "") + ";0";
}

}  // namespace

int unknown_check(const Error& error) {
  return print_verdict(Verdict::unknown, error.text);
}

Result<int> check_command(const Invocation& invocation) {
  TRY(auto settings, check_settings(invocation));
  TRY(auto session, Session::open(invocation.choices));
  auto seen = inspect_first_waiter(session, {&settings.name, 1});
  TRY(auto snapshot, std::move(seen.front()));
  const LockView lock{settings.name.text(), std::move(snapshot)};
  const std::string name = in_quotes(lock.name) + ": ";
  if (!is_known(lock)) {
    // A job that is to succeed in time, and whose timer never started it, is an outage.
    return print_verdict(settings.within ? Verdict::critical : Verdict::unknown,
                         name + "never held, or not within 30 days");
  }
  const Findings findings = findings_of(settings, *lock.snapshot);
  const bool well = findings.verdict() == Verdict::ok;
  return print_verdict(findings.verdict(), name + (well ? summary(lock) : findings.text()),
                       performance(settings, *lock.snapshot));
}

}  // namespace rlock::cli
