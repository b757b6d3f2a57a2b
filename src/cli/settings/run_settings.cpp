#include "cli/settings/run_settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "cli/options/exit_codes.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/inherited.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/connect.hpp"
#include "util/clock.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::array kOnceOptions{Opt::once, Opt::once_per, Opt::once_within};

// The periods. Day, week (ISO 8601, from Monday) and month use the local date, so a day of 25 hours
// ends summer time. Minute and hour use UTC, so that the change to summer time repeats and skips
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
    return usage(
        util::format("--once-per {}: not a number of whole minutes below 24h that divides a day, "
                     "such as 15m or 6h",
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

// The period that contains `now`: `day:2026-11-22`, `week:2026-W47`, `hour:2026-11-22T09Z`.
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

// The last of these options, because they exclude each other.
std::optional<Opt> chosen(const Choices& choices) {
  std::optional<Opt> found;
  for (Opt option : kOnceOptions) {
    if (choices.has(option)) found = option;
  }
  return found;
}

// A name for --exit-code, and the option that it depends on.
struct ExitCodeName {
  std::string_view what;
  int ExitCodes::*code;
  bool (*applies)(const Choices&);
  const char* needs;
};
constexpr ExitCodeName kExitCodeNames[] = {
    {"busy", &ExitCodes::busy, [](const Choices&) { return true; }, ""},
    {"done", &ExitCodes::done, [](const Choices& choices) { return chosen(choices).has_value(); },
     "--once, --once-per or --once-within"},
    {"superseded", &ExitCodes::superseded,
     [](const Choices& choices) { return choices.has(Opt::supersede); }, "--supersede"},
    {"failures", &ExitCodes::failures,
     [](const Choices& choices) { return choices.has(Opt::max_failures); }, "--max-failures"},
    {"unavailable", &ExitCodes::unavailable, [](const Choices&) { return true; }, ""},
    {"denied", &ExitCodes::denied, [](const Choices&) { return true; }, ""},
    {"config", &ExitCodes::config, [](const Choices&) { return true; }, ""}};

// Sets the code of one `WHAT=N` of --exit-code.
Status set_exit_code(ExitCodes& codes, std::string_view text, const Choices& choices) {
  std::string_view digits = text;
  const std::string_view what = util::take_until(digits, '=');
  const auto code = parse_exit_code(digits);
  for (const ExitCodeName& name : kExitCodeNames) {
    if (name.what != what) continue;
    if (!code)
      return usage(util::format("--exit-code {}: not a number from 0 to 255: {}", what,
                                quoted_word(digits)));
    if (!name.applies(choices))
      return usage(util::format("--exit-code {}={} needs {}", what, *code, name.needs));
    if (name.code == &ExitCodes::busy && choices.has(Opt::conflict_exit_code)) {
      return usage(
          "-E and --exit-code busy= cannot be used together: both say what a busy lock exits with");
    }
    codes.*name.code = *code;
    return Done{};
  }
  return usage(
      "--exit-code takes busy=N, done=N, superseded=N, failures=N, unavailable=N, denied=N or "
      "config=N, separated by commas, not " +
      quoted_word(text));
}

Result<ExitCodes> exit_codes(const Choices& choices) {
  ExitCodes codes;
  if (const auto busy = choices.number(Opt::conflict_exit_code))
    codes.busy = static_cast<int>(*busy);
  for (const std::string& word : choices.all(Opt::exit_code)) {
    for (std::string_view text : util::split(word, ',')) {
      TRY_STATUS(set_exit_code(codes, text, choices));
    }
  }
  return codes;
}

Result<lock::Once> once_of(Opt option, const Choices& choices, time_t now) {
  if (option == Opt::once_per) return period_choice(*choices.last(option), now);
  if (option == Opt::once_within) {
    return lock::Once{lock::OnceKind::within, {}, *choices.duration(option), {}};
  }
  TRY(auto key, once_key_choice(choices));
  // The server would remember it for as long as somebody asks, so the job would never run again. A
  // number is that of a build.
  if (util::leading_digits(*key) != *key && period_choice(*key, now)) {
    return usage(util::format("--once {0}: did you mean --once-per {0}?", *key));
  }
  return lock::Once{lock::OnceKind::key, *std::move(key), Millis(0), {}};
}

Result<lock::Limit> limit_choice(const Choices& choices) {
  const auto slots = choices.number(Opt::slots);
  if (!choices.has(Opt::shared))
    return slots ? lock::Limit::slots(*slots) : lock::Limit::exclusive();
  if (!slots) return lock::Limit::shared();
  return usage("--slots and --shared cannot be used together: shared holders have no limit");
}

Result<WaitSettings> wait_settings(const Choices& choices) {
  WaitSettings settings{choices.duration(Opt::wait)};
  if (choices.has(Opt::nonblock)) {
    if (settings.wait.value_or(Millis(0)) > Millis(0)) {
      return usage("--nonblock and --wait cannot be used together");
    }
    settings.wait = Millis(0);
  }
  TRY(settings.codes, exit_codes(choices));
  return settings;
}

std::optional<lock::Supersede> supersede_choice(const Choices& choices) {
  if (!choices.has(Opt::supersede)) return std::nullopt;
  return lock::Supersede{choices.number(Opt::supersede)};
}

Millis urgent_choice(const Choices& choices) {
  if (!choices.has(Opt::urgent)) return Millis(0);
  return choices.duration(Opt::urgent).value_or(1h);
}

std::optional<FailOpen> fail_open_choice(const Choices& choices) {
  if (!choices.has(Opt::fail_open)) return std::nullopt;
  return FailOpen{choices.duration(Opt::fail_open)};
}

constexpr Millis kKillAfter{5000};  // at most; a sixth of the ttl if that is less
constexpr std::string_view kUsageLine = "rlock run NAME -- COMMAND [ARG...]";

Result<lock::LockName> name_of(const Invocation& invocation) {
  if (invocation.names.empty()) return usage("no lock name given: " + std::string(kUsageLine));
  if (invocation.names.size() > 1) {
    return usage("more than one lock name before --: " + in_quotes(invocation.names[1]) +
                 "; write " + std::string(kUsageLine));
  }
  return parse_name(invocation.names.front(), invocation.choices);
}

// Whether this is the shell of an account that nobody may log in to.
bool runs_nothing(std::string_view shell) {
  const std::string_view name = shell.substr(shell.rfind('/') + 1);
  return name == "nologin" || name == "false";
}

Result<std::vector<std::string>> command_of(const Invocation& invocation, Getenv getenv) {
  const auto& after = invocation.after_dashes;
  if (auto text = invocation.choices.last(Opt::shell_text)) {
    if (after) return usage("-c TEXT and a COMMAND cannot be used together");
    const char* shell = getenv("SHELL");
    if (shell == nullptr || *shell == '\0') shell = "/bin/sh";
    if (runs_nothing(shell)) {
      return usage(util::format(
          "-c: SHELL is {}, which runs no command: set SHELL=/bin/sh, or give a COMMAND after --",
          quoted_word(shell)));
    }
    return std::vector<std::string>{shell, "-c", *text};
  }
  if (!after) return usage("no command given: " + std::string(kUsageLine));
  if (after->empty() || after->front().empty()) {
    return usage("the command after -- is empty: " + std::string(kUsageLine));
  }
  return *after;
}

run::Contain contain_choice(const Choices& choices) {
  if (!choices.has(Opt::contain)) return run::Contain::no;
  return choices.last(Opt::contain) == kFlagValue ? run::Contain::with_rights
                                                  : run::Contain::as_user;
}

// 0: no limit, as with timeout(1).
std::optional<Millis> time_limit(const Choices& choices, Opt option) {
  const auto limit = choices.duration(option);
  return limit == Millis(0) ? std::nullopt : limit;
}

// Whether work that is done once can be done under a lock with this limit.
Status check_once(const Choices& choices, const lock::AcquireCall& call) {
  if (!call.once || call.limit == lock::Limit::exclusive()) return Done{};
  const Opt limit = choices.has(Opt::shared) ? Opt::shared : Opt::slots;
  return usage(shown_name(*chosen(choices)) + " and " + shown_name(limit) +
               " cannot be used together: several runs could do the work at once");
}

Error bad(std::string_view what, std::string_view text, std::string_view why) {
  return usage(util::format("bad {} {}: {}", what, quoted_word(text), why));
}

Status check_resolved(std::string_view what, std::string_view text) {
  return has_variable(text) ? Status(bad(what, text, kDefineVariable)) : Done{};
}

// If a variable in `shop/$JOB` is empty, every such job would have the lock `shop/`. A path begins
// with a slash, and a URL contains `://`.
bool has_empty_part(std::string_view name) {
  const size_t scheme = name.find("://");
  const size_t from = scheme == name.npos ? 0 : scheme + 3;
  return name.ends_with('/') || name.find("//", from) != name.npos;
}

// `/nightly`, which `"$PROJECT/nightly"` becomes if PROJECT is empty. Containers call their working
// folder so, too: /app, /workspace.
bool has_one_part_after_slash(std::string_view name) {
  return name.starts_with('/') && name.find('/', 1) == name.npos;
}

// `$JOB` of a shell, and `%JOB%` of Windows. Empty if there is none.
std::string_view variable_in(std::string_view name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = 0; (at = name.find_first_of("$%", at)) != name.npos; ++at) {
    const auto rest = name.substr(at + 1);
    const size_t length =
        static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_word) - rest.begin());
    if (length == 0 || util::leading_digits(rest).size() == length) continue;
    if (name[at] == '$') return name.substr(at, length + 1);
    if (length < rest.size() && rest[length] == '%') return name.substr(at, length + 2);
  }
  return {};
}

// Why the author of a name may have meant another; empty: no reason.
std::string doubt_about(std::string_view name) {
  if (const auto variable = variable_in(name); !variable.empty()) {
    return util::format("it contains {}; is that a variable that was left as it is?", variable);
  }
  constexpr std::string_view kJoints = "-_:.";
  const auto is_joint = [&](char c) { return kJoints.find(c) != kJoints.npos; };
  if (has_one_part_after_slash(name) || name.starts_with(':')) {
    return util::format("it begins with \"{}\"; is the variable before it empty?", name.front());
  }
  const bool ends_after_word = name.size() > 1 && is_joint(name.back()) &&
                               std::isalnum(static_cast<unsigned char>(name[name.size() - 2])) != 0;
  if (!ends_after_word) return {};
  return util::format("it ends with \"{}\"; is the variable after it empty?", name.back());
}

void add_doubt(Warnings& warnings, std::string_view what, const std::string& name) {
  const std::string doubt = doubt_about(name);
  if (doubt.empty()) return;
  warnings.push_back(util::format("warning: {} {}: {}", what, quoted_word(name), doubt));
}

// The time with the offset, because day, week and month depend on the time zone.
std::optional<std::string> asked_in_zone(const std::optional<lock::Once>& once, time_t now) {
  const bool local = once && once->kind == lock::OnceKind::period && !once->key.ends_with('Z');
  return local ? std::optional(local_time(now)) : std::nullopt;
}

std::string ending_record(Record record, const std::string& why) {
  record.ending = why;
  return encode_record(record);
}

}  // namespace

int ExitCodes::of(ErrorKind kind) const {
  switch (kind) {
    case ErrorKind::unavailable:
      return unavailable;
    case ErrorKind::denied:
      return denied;
    case ErrorKind::config:
      return config;
    default:
      return exit_code(kind);
  }
}

ExitCodes chosen_codes(const Choices& choices) {
  const auto codes = exit_codes(choices);
  return codes ? *codes : ExitCodes{};
}

Status check_new_name(const lock::LockName& name, const Choices& choices) {
  if (format_choice(choices) != redis::Format::native) return Done{};
  const std::string& text = name.text();
  if (is_blank(text)) return bad("lock name", text, "it is blank; is its variable set?");
  if (is_quoted(text)) return bad("lock name", text, kRemoveQuotes);
  TRY_STATUS(check_resolved("lock name", text));
  if (has_empty_part(text)) {
    return bad("lock name", text,
               "a part between slashes is empty, probably because a variable is empty or not set; "
               "correct the variable, or leave the slash out");
  }
  // Two projects would take each other's work for their own.
  const auto once = chosen(choices);
  if (!once || !has_one_part_after_slash(text)) return Done{};
  return bad("lock name", text,
             util::format("with {} it must not begin with a slash, because the variable before it "
                          "is probably empty; correct the variable, or leave the slash out",
                          shown_name(*once)));
}

Result<std::optional<lock::Once>> once_choice(const Choices& choices, time_t now) {
  const auto option = chosen(choices);
  if (!option) {
    if (!choices.has(Opt::max_failures)) return std::optional<lock::Once>();
    return usage("--max-failures needs --once, --once-per or --once-within");
  }
  for (Opt other : kOnceOptions) {
    if (other == *option || !choices.has(other)) continue;
    return usage(shown_name(other) + " and " + shown_name(*option) +
                 " cannot be used together: each says on its own when the work is done");
  }
  TRY(auto once, once_of(*option, choices, now));
  once.max_failures = choices.number(Opt::max_failures);
  return std::optional(std::move(once));
}

Result<std::optional<std::string>> once_key_choice(const Choices& choices) {
  auto key = choices.last(Opt::once);
  if (!key) return key;
  if (key->starts_with('-')) {
    return usage("--once: bad KEY " + quoted_word(*key) +
                 ": it must not begin with \"-\"; put quotes around a variable (--once \"$KEY\")");
  }
  if (const char* why = lock::why_bad_name(*key)) {
    return usage("--once: bad KEY " + quoted_word(*key) + ": " + why);
  }
  return key;
}

// The address of the CI job, whose host and command say nothing: without what may be a secret, a
// user's name and a query. nullopt outside a CI job, and for an address that is none or is too
// long.
std::optional<std::string> job_address(Getenv getenv) {
  constexpr size_t kLongest = 200;
  auto value = [&](const char* variable) {
    const char* text = getenv(variable);
    return std::string(text == nullptr ? "" : text);
  };
  std::string url;
  for (const char* variable :
       {"CI_JOB_URL", "BUILD_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL"}) {
    if (url.empty()) url = value(variable);
  }
  const std::string server = value("GITHUB_SERVER_URL"), repository = value("GITHUB_REPOSITORY"),
                    id = value("GITHUB_RUN_ID");
  if (url.empty() && !server.empty() && !repository.empty() && !id.empty()) {
    url = util::format("{}/{}/actions/runs/{}", server, repository, id);
  }
  const size_t scheme = url.find("://");
  if (!url.starts_with("http://") && !url.starts_with("https://")) return std::nullopt;
  url.erase(std::min(url.find_first_of("?#"), url.size()));
  const size_t host = scheme + 3;
  if (const size_t at = url.rfind('@'); at != url.npos && at > host) url.erase(host, at + 1 - host);
  const bool plain =
      std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return plain && url.size() > host && url.size() <= kLongest ? std::optional(url) : std::nullopt;
}

Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices,
                     Getenv getenv) {
  Record record = own_record();
  record.pid = pid;
  record.processes = own_processes();
  record.renews = !choices.has(Opt::no_renew);
  if (!choices.has(Opt::hide_command)) record.command = command_text(argv);
  if (auto reason = choices.last(Opt::reason)) {
    record.reason = util::to_utf8(*reason);
  } else if (!choices.has(Opt::hide_command)) {
    record.reason = job_address(getenv);
  }
  record.urgent = urgent_choice(choices);
  record.supersede = choices.number(Opt::supersede);
  if (const char* trace = getenv("TRACEPARENT")) record.traceparent = parse_traceparent(trace);
  return record;
}

// With an older ticket a run would be superseded although the lock is free. A run that does not
// wait has no use for a ticket, and an urgent run chooses its position itself.
Status check_ticket(const Choices& choices, const WaitSettings& waiting) {
  if (!choices.has(Opt::ticket)) return Done{};
  if (waiting.wait == Millis(0)) return usage("--ticket and --nonblock cannot be used together");
  for (const auto& [other, text] :
       {std::pair(Opt::supersede, "--supersede"), std::pair(Opt::urgent, "--urgent")}) {
    if (choices.has(other)) {
      return usage(util::format("--ticket and {} cannot be used together", text));
    }
  }
  return Done{};
}

Result<ClaimSettings> claim_settings(lock::LockName name, Millis ttl, lock::Responsive responsive,
                                     std::string record, const Choices& choices) {
  TRY_STATUS(check_format(choices));
  TRY_STATUS(check_new_name(name, choices));
  TRY(auto waiting, wait_settings(choices));
  TRY_STATUS(check_ticket(choices, waiting));
  TRY(auto limit, limit_choice(choices));
  const auto supersede = supersede_choice(choices);
  const Millis urgent = urgent_choice(choices);
  // The latest run to arrive would no longer be the last in the queue.
  if (urgent > Millis(0) && supersede && !supersede->number) {
    return usage("--urgent with --supersede needs a number: --supersede=N");
  }
  util::SystemRandom random;
  const bool queues = waiting.wait != Millis(0);
  lock::AcquireCall call{{
      .name = std::move(name),
      .owner = lock::Owner::fresh(random),
      .limit = limit,
      .ttl = ttl,
      .min_hold = choices.duration(Opt::min_hold).value_or(Millis(0)),
      .responsive = responsive,
      .record = std::move(record),
      .supersede = supersede,
      .history_rows = choices.number(Opt::history_rows),
  }};
  call.queueing = queues ? lock::Queueing::wait : lock::Queueing::never;
  call.max_queue = choices.number(Opt::max_queue);
  call.numbered = choices.has(Opt::slots);
  call.while_closed = choices.has(Opt::while_closed);
  call.urgent = urgent;
  Warnings warnings;
  if (format_choice(choices) == redis::Format::native) {
    add_doubt(warnings, "lock name", call.name.text());
  }
  return ClaimSettings{std::move(call), waiting, std::move(warnings)};
}

Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv) {
  const Choices& choices = invocation.choices;
  TRY(auto name, name_of(invocation));
  TRY(auto argv, command_of(invocation, getenv));
  const Millis ttl = choices.duration(Opt::ttl).value_or(kDefaultTtl);
  const time_t now = wall_seconds();
  TRY(auto once, once_choice(choices, now));
  if (once && once->kind == lock::OnceKind::key) {
    TRY_STATUS(check_resolved("KEY of --once", once->key));
  }
  Record record = holder_record(getpid(), argv, choices, getenv);
  record.asked = asked_in_zone(once, now);
  TRY(auto claim,
      claim_settings(std::move(name), ttl, lock::Responsive::run, encode_record(record), choices));
  if (once && once->kind == lock::OnceKind::key) {
    add_doubt(claim.warnings, "KEY of --once", once->key);
  }
  claim.call.once = std::move(once);
  TRY_STATUS(check_once(choices, claim.call));
  const bool ignores_loss = choices.last(Opt::on_lost) == "ignore";
  const bool whole_tree = choices.has(Opt::wait_descendants);
  run::Plan plan{
      .claim = std::move(claim.call),
      .limits = {},
      .argv = std::move(argv),
      .environment = {},
      .record_ending = [record](const std::string& why) { return ending_record(record, why); },
      .kill_after = choices.duration(Opt::kill_after).value_or(std::min(kKillAfter, ttl / 6)),
      .max_run = time_limit(choices, Opt::max_run),
      .stop_after = time_limit(choices, Opt::stop_after),
      .on_lost = ignores_loss ? run::OnLost::ignore : run::OnLost::terminate,
      .until = whole_tree ? run::ReleaseAfter::descendants : run::ReleaseAfter::command,
      .watchdog = choices.has(Opt::no_renew) ? lock::Watchdog::none : lock::Watchdog::renew,
      .contain = contain_choice(choices),
  };
  const auto event_log = choices.last(Opt::event_log);
  if (event_log == "-") {
    return usage("--event-log needs a FILE; for standard error: --event-log /dev/stderr");
  }
  if (event_log && names_closed_output(*event_log)) {
    return usage(util::format("--event-log {}: that descriptor is closed", *event_log));
  }
  return RunSettings{
      .plan = std::move(plan),
      .waiting = claim.waiting,
      .warnings = std::move(claim.warnings),
      .ticket = choices.last(Opt::ticket),
      .event_log = event_log,
      .report = choices.has(Opt::report),
      .fail_open = fail_open_choice(choices),
  };
}

}  // namespace rlock::cli
