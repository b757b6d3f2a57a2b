#include "cli/settings/run_settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "util/clock.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::array kOnceOptions{Opt::once, Opt::once_per, Opt::once_within};
constexpr Millis kLongestDistance = 366 * 24h;

// A day, a week (ISO 8601, from Monday) and a month by the local date: a day of 25 hours ends
// summer time. A minute and an hour by UTC, so that the change to summer time repeats and skips
// nothing.
struct Period {
  std::string_view word;
  const char* form;  // for strftime(3)
  bool utc;
  Millis longest;
};
constexpr Period kPeriods[] = {
    {"minute", "%Y-%m-%dT%H:%MZ", true, 1min}, {"hour", "%Y-%m-%dT%HZ", true, 1h},
    {"day", "%Y-%m-%d", false, 25h},           {"week", "%G-W%V", false, 7 * 24h + 1h},
    {"month", "%Y-%m", false, 31 * 24h + 1h},
};

// A part of a day, counted from midnight in UTC: `15m:2026-11-22T09:15Z`.
Result<lock::Once> part_of_day(const std::string& word, Millis length, time_t now) {
  if (length < 1min || length >= 24h || 24h % length != 0min || length % 1min != 0min) {
    return usage(util::format(
        "--once-per {}: a day must consist of such periods, of whole minutes, such as 15m or 6h",
        quoted_word(word)));
  }
  const time_t start = now - now % std::chrono::duration_cast<std::chrono::seconds>(length).count();
  tm date{};
  char text[32];
  gmtime_r(&start, &date);
  const size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%MZ", &date);
  return lock::Once{lock::OnceKind::period,
                    util::format_duration(length) + ":" + std::string(text, size),
                    length,
                    {}};
}

// The one that `now` is in: `day:2026-11-22`, `week:2026-W47`, `hour:2026-11-22T09Z`.
Result<lock::Once> period_choice(const std::string& word, time_t now) {
  for (const Period& period : kPeriods) {
    if (word != period.word) continue;
    tm date{};
    tzset();
    (period.utc ? gmtime_r : localtime_r)(&now, &date);
    char text[64];
    const size_t length = strftime(text, sizeof text, period.form, &date);
    return lock::Once{
        lock::OnceKind::period, word + ":" + std::string(text, length), period.longest, {}};
  }
  auto length = util::parse_duration(word);
  if (length && *length == 1min) return period_choice("minute", now);
  if (length && *length == 1h) return period_choice("hour", now);
  if (length) return part_of_day(word, *length, now);
  return usage(
      "--once-per must be minute, hour, day, week, month, or a part of a day such as 15m or 6h, "
      "not " +
      in_quotes(word));
}

Result<lock::Once> distance_choice(const Choices& choices) {
  TRY(auto distance, duration_choice(choices, Opt::once_within));
  if (*distance == Millis(0) || *distance > kLongestDistance) {
    return usage("--once-within must be longer than 0 and at most 366d");
  }
  return lock::Once{lock::OnceKind::within, {}, *distance, {}};
}

// The last one, since they exclude each other.
std::optional<Opt> chosen(const Choices& choices) {
  std::optional<Opt> found;
  for (Opt option : kOnceOptions) {
    if (choices.has(option)) found = option;
  }
  return found;
}

Result<lock::Once> once_of(Opt option, const Choices& choices, time_t now) {
  if (option == Opt::once_per) return period_choice(*choices.last(option), now);
  if (option == Opt::once_within) return distance_choice(choices);
  TRY(auto key, once_key_choice(choices));
  return lock::Once{lock::OnceKind::key, *std::move(key), Millis(0), {}};
}

constexpr uint64_t kMostHistoryRows = 1000;

Result<lock::Limit> limit_choice(const Choices& choices) {
  TRY(auto slots, number_choice(choices, Opt::slots, lock::Limit::kMostSlots));
  const bool shared = choices.has(Opt::shared);
  if (slots && shared) {
    return usage("--slots and --shared cannot be used together: shared holders have no limit");
  }
  if (slots == 0U) return usage("--slots must be at least 1");
  if (slots) return lock::Limit::slots(*slots);
  return shared ? lock::Limit::shared() : lock::Limit::exclusive();
}

Result<WaitSettings> wait_settings(const Choices& choices) {
  TRY(auto wait, duration_choice(choices, Opt::wait));
  if (choices.has(Opt::nonblock)) {
    if (wait.value_or(Millis(0)) > Millis(0)) {
      return usage("--nonblock and --wait cannot be used together");
    }
    wait = Millis(0);
  }
  const WaitSettings defaults;
  TRY(auto conflict, exit_code_choice(choices, Opt::conflict_exit_code, defaults.conflict_code));
  TRY(auto superseded,
      exit_code_choice(choices, Opt::superseded_exit_code, defaults.superseded_code));
  return WaitSettings{wait, conflict, superseded};
}

Result<std::optional<lock::Supersede>> supersede_choice(const Choices& choices) {
  if (!choices.has(Opt::supersede)) {
    // A configuration file may set it for all runs.
    if (!choices.is_flag(Opt::superseded_exit_code)) return std::optional<lock::Supersede>();
    return usage("--superseded-exit-code needs --supersede");
  }
  if (choices.last(Opt::supersede) == kFlagValue) return std::optional(lock::Supersede{});
  TRY(auto number, number_choice(choices, Opt::supersede, kGreatestToken));
  return std::optional(lock::Supersede{number});
}

Result<Millis> urgent_choice(const Choices& choices) {
  constexpr Millis kUsual = std::chrono::hours(1), kMost = std::chrono::hours(24);
  if (!choices.has(Opt::urgent)) return Millis(0);
  TRY(auto earlier, duration_choice(choices, Opt::urgent));
  if (!earlier) return kUsual;
  if (*earlier > Millis(0) && *earlier <= kMost) return *earlier;
  return usage("--urgent must be longer than 0, and at most 24h");
}

Result<std::optional<FailOpen>> fail_open_choice(const Choices& choices) {
  if (!choices.has(Opt::fail_open)) return std::optional<FailOpen>();
  TRY(auto after, duration_choice(choices, Opt::fail_open));
  if (after == Millis(0)) return usage("--fail-open must be longer than 0");
  return std::optional(FailOpen{after});
}

constexpr Millis kKillAfter{5000};  // at most; a sixth of the ttl where that is less
constexpr std::string_view kUsageLine = "rlock run NAME -- COMMAND [ARG...]";

Result<lock::LockName> name_of(const Invocation& invocation) {
  if (invocation.names.empty()) return usage("no lock name given: " + std::string(kUsageLine));
  if (invocation.names.size() > 1) {
    return usage("more than one lock name before --: " + in_quotes(invocation.names[1]) +
                 "; write " + std::string(kUsageLine));
  }
  return lock::LockName::parse(invocation.names.front());
}

Result<std::vector<std::string>> command_of(const Invocation& invocation, Getenv getenv) {
  const auto& after = invocation.after_dashes;
  if (auto text = invocation.choices.last(Opt::shell_text)) {
    if (after) return usage("-c TEXT and a COMMAND cannot be used together");
    const char* shell = getenv("SHELL");
    bool usable = shell != nullptr && *shell != '\0';
    return std::vector<std::string>{usable ? shell : "/bin/sh", "-c", *text};
  }
  if (!after) return usage("no command given: " + std::string(kUsageLine));
  if (after->empty() || after->front().empty()) {
    return usage("the command after -- is empty: " + std::string(kUsageLine));
  }
  return *after;
}

Result<run::OnLost> on_lost_choice(const Choices& choices) {
  const std::string on_lost = choices.last(Opt::on_lost).value_or("terminate");
  if (on_lost == "terminate") return run::OnLost::terminate;
  if (on_lost == "ignore") return run::OnLost::ignore;
  return usage("--on-lost must be terminate or ignore, not " + in_quotes(on_lost));
}

Result<run::Contain> contain_choice(const Choices& choices) {
  const auto how = choices.last(Opt::contain);
  if (!how) return run::Contain::no;
  if (*how == kFlagValue) return run::Contain::with_rights;
  if (*how == "user") return run::Contain::as_user;
  return usage("--contain takes no value but user, not " + in_quotes(*how));
}

// Whether work that is done once can be done under a lock with this limit.
Status check_once(const Choices& choices, const lock::AcquireCall& call) {
  if (!call.once || call.limit == lock::Limit::exclusive()) return Done{};
  const Opt limit = choices.has(Opt::shared) ? Opt::shared : Opt::slots;
  return usage(shown_name(*chosen(choices)) + " and " + shown_name(limit) +
               " cannot be used together: several runs could do the work at once");
}

// A template or a shell should have replaced it. Kubernetes, for example, leaves $(NAME) as it is:
// all later runs would then mean the same lock, or the same work.
bool is_unresolved(std::string_view text) {
  return text.starts_with('$') || text.find("$(") != text.npos || text.find("${") != text.npos ||
         text.find("{{") != text.npos;
}

Status check_resolved(std::string_view what, std::string_view text) {
  if (!is_unresolved(text)) return Done{};
  return usage(
      util::format("bad {} {}: nobody has replaced the variable in it", what, quoted_word(text)));
}

// A day, a week and a month depend on the time zone.
std::optional<std::string> asked_in_zone(const std::optional<lock::Once>& once, time_t now) {
  const bool local = once && once->kind == lock::OnceKind::period && !once->key.ends_with('Z');
  return local ? std::optional(local_time(now)) : std::nullopt;
}

std::string ending_record(Record record, const std::string& why) {
  record.ending = why;
  return encode_record(record);
}

}  // namespace

Result<std::optional<lock::Once>> once_choice(const Choices& choices, time_t now) {
  TRY(auto max_failures,
      number_choice(choices, Opt::max_failures, std::numeric_limits<uint32_t>::max()));
  if (max_failures == 0U) return usage("--max-failures must be at least 1");
  const auto option = chosen(choices);
  // A configuration file may set them for all runs.
  for (Opt dependent : {Opt::max_failures, Opt::done_exit_code}) {
    if (option || !choices.is_flag(dependent)) continue;
    return usage(shown_name(dependent) + " needs --once, --once-per or --once-within");
  }
  if (!option) return std::optional<lock::Once>();
  for (Opt other : kOnceOptions) {
    if (other == *option || !choices.has(other)) continue;
    return usage(shown_name(other) + " and " + shown_name(*option) +
                 " cannot be used together: each says on its own when the work is done");
  }
  TRY(auto once, once_of(*option, choices, now));
  once.max_failures = max_failures;
  return std::optional(std::move(once));
}

Result<std::optional<std::string>> once_key_choice(const Choices& choices) {
  auto key = choices.last(Opt::once);
  if (!key) return key;
  if (key->empty()) {
    return usage(
        "--once: the KEY is empty; a variable that is not set expands to that (--once \"$UNSET\")");
  }
  if (key->starts_with('-') || key->find_first_not_of(' ') == std::string::npos) {
    return usage("--once: bad KEY " + quoted_word(*key) +
                 ": it must not be blank or begin with \"-\"; put quotes around a variable (--once "
                 "\"$KEY\")");
  }
  if (const char* why = lock::why_bad_name(*key)) {
    return usage("--once: bad KEY " + quoted_word(*key) + ": " + why);
  }
  return key;
}

Result<std::optional<Millis>> ttl_choice(const Choices& choices) {
  auto ttl = duration_choice(choices, Opt::ttl);
  if (ttl && *ttl && **ttl < Millis(1000)) return usage("--ttl must be at least 1s");
  return ttl;
}

Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices,
                     Getenv getenv) {
  Record record = own_record();
  record.pid = pid;
  record.processes = own_processes();
  record.renews = !choices.has(Opt::no_renew);
  if (!choices.has(Opt::hide_command)) record.command = command_text(argv);
  if (auto reason = choices.last(Opt::reason)) record.reason = util::to_utf8(*reason);
  if (const auto urgent = urgent_choice(choices)) record.urgent = *urgent;
  if (const auto newest = supersede_choice(choices); newest && *newest) {
    record.supersede = (*newest)->number;
  }
  if (const char* trace = getenv("TRACEPARENT")) record.traceparent = parse_traceparent(trace);
  return record;
}

Result<ClaimSettings> claim_settings(lock::LockName name, Millis ttl, lock::Responsive responsive,
                                     std::string record, const Choices& choices) {
  TRY_STATUS(check_format(choices));
  TRY(auto format, format_choice(choices));
  if (format == redis::Format::native) TRY_STATUS(check_resolved("lock name", name.text()));
  TRY(auto waiting, wait_settings(choices));
  TRY(auto limit, limit_choice(choices));
  TRY(auto min_hold, duration_choice(choices, Opt::min_hold));
  TRY(auto supersede, supersede_choice(choices));
  TRY(auto urgent, urgent_choice(choices));
  // The latest to arrive would no longer be the last in the queue.
  if (urgent > Millis(0) && supersede && !supersede->number) {
    return usage("--urgent with --supersede needs a number: --supersede=N");
  }
  // Allowed beside -n, which is stricter: a configuration file may set it for all runs.
  TRY(auto max_queue, number_choice(choices, Opt::max_queue, std::numeric_limits<uint32_t>::max()));
  TRY(auto history_rows, number_choice(choices, Opt::history_rows, kMostHistoryRows));
  util::SystemRandom random;
  const bool queues = waiting.wait != Millis(0);
  lock::AcquireCall call{{
      .name = std::move(name),
      .owner = lock::Owner::fresh(random),
      .limit = limit,
      .ttl = ttl,
      .min_hold = min_hold.value_or(Millis(0)),
      .responsive = responsive,
      .record = std::move(record),
      .supersede = supersede,
      .history_rows = history_rows,
  }};
  call.queueing = queues ? lock::Queueing::wait : lock::Queueing::never;
  call.max_queue = max_queue;
  call.numbered = choices.has(Opt::slots);
  call.while_closed = choices.has(Opt::while_closed);
  call.urgent = urgent;
  return ClaimSettings{std::move(call), waiting};
}

Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv) {
  const Choices& choices = invocation.choices;
  TRY(auto name, name_of(invocation));
  TRY(auto argv, command_of(invocation, getenv));
  TRY(auto given_ttl, ttl_choice(choices));
  TRY(auto kill_after, duration_choice(choices, Opt::kill_after));
  TRY(auto max_run, duration_choice(choices, Opt::max_run));
  TRY(auto stop_after, duration_choice(choices, Opt::stop_after));
  TRY(auto on_lost, on_lost_choice(choices));
  TRY(const auto contain, contain_choice(choices));
  TRY(const auto fail_open, fail_open_choice(choices));
  if (max_run == Millis(0)) max_run.reset();  // no limit, as with timeout(1)
  if (stop_after == Millis(0)) stop_after.reset();
  const Millis ttl = given_ttl.value_or(kDefaultTtl);
  const time_t now = wall_seconds();
  TRY(auto once, once_choice(choices, now));
  if (once && once->kind == lock::OnceKind::key) {
    TRY_STATUS(check_resolved("KEY of --once", once->key));
  }
  Record record = holder_record(getpid(), argv, choices, getenv);
  record.asked = asked_in_zone(once, now);
  TRY(auto claim,
      claim_settings(std::move(name), ttl, lock::Responsive::run, encode_record(record), choices));
  claim.call.once = std::move(once);
  TRY_STATUS(check_once(choices, claim.call));
  TRY(auto done_code, exit_code_choice(choices, Opt::done_exit_code, 0));
  const bool whole_tree = choices.has(Opt::wait_descendants);
  run::Plan plan{
      .claim = std::move(claim.call),
      .limits = {},
      .argv = std::move(argv),
      .environment = {},
      .record_ending = [record](const std::string& why) { return ending_record(record, why); },
      .kill_after = kill_after.value_or(std::min(kKillAfter, ttl / 6)),
      .max_run = max_run,
      .stop_after = stop_after,
      .on_lost = on_lost,
      .until = whole_tree ? run::ReleaseAfter::descendants : run::ReleaseAfter::command,
      .watchdog = choices.has(Opt::no_renew) ? lock::Watchdog::none : lock::Watchdog::renew,
      .contain = contain,
  };
  return RunSettings{
      .plan = std::move(plan),
      .waiting = claim.waiting,
      .done_code = done_code,
      .event_log = choices.last(Opt::event_log),
      .report = choices.has(Opt::report),
      .reentry = choices.has(Opt::no_reentrant) ? Reentry::wait : Reentry::enter,
      .fail_open = fail_open,
  };
}

}  // namespace rlock::cli
