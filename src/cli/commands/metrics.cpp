#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kMostLocks = 1000;

// Returns nullopt if the value is unknown; then no line is printed.
using Value = std::function<std::optional<std::string>(const lock::Snapshot&)>;

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  Value value;
};

std::string label_text(const std::string& name) {
  std::string out;
  for (char c : name) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

Value counter(uint64_t lock::Counters::*member) {
  return [member](const lock::Snapshot& lock) { return std::to_string(lock.counters.*member); };
}

Value sum_of(uint64_t lock::Counters::*member) {
  return [member](const lock::Snapshot& lock) {
    return in_seconds(Millis(static_cast<int64_t>(lock.counters.*member)));
  };
}

template <class T>
Value timestamp_of(std::optional<T> lock::Snapshot::*last) {
  return [last](const lock::Snapshot& lock) -> std::optional<std::string> {
    if (!(lock.*last)) return std::nullopt;
    return in_seconds(Millis((lock.*last)->at.ms));
  };
}

std::optional<std::string> took(const lock::Snapshot& lock) {
  auto length = last_duration(lock);
  return length ? std::optional(in_seconds(*length)) : std::nullopt;
}

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all{
      {"rlock_holders", "gauge", "Holders of the lock, cool-downs included.",
       [](const lock::Snapshot& lock) { return std::to_string(lock.live_holders); }},
      {"rlock_closed", "gauge", "Whether the lock is closed.",
       [](const lock::Snapshot& lock) { return std::string(is_closed(lock) ? "1" : "0"); }},
      {"rlock_needs_upgrade", "gauge", "Whether only a newer rlock can acquire the lock.",
       [](const lock::Snapshot& lock) { return std::string(lock.needs ? "1" : "0"); }},
      {"rlock_waiters", "gauge", "Clients that wait for the lock.",
       [](const lock::Snapshot& lock) { return std::to_string(lock.live_waiters); }},
      {"rlock_oldest_wait_seconds", "gauge", "How long the first waiter has waited.",
       [](const lock::Snapshot& lock) { return in_seconds(longest_wait(lock)); }},
      {"rlock_held_seconds", "gauge", "How long the lock has been held, by the oldest holder.",
       [](const lock::Snapshot& lock) { return in_seconds(longest_hold(lock)); }},
      {"rlock_last_success_timestamp_seconds", "gauge", "When the last successful run ended.",
       timestamp_of(&lock::Snapshot::last_success)},
      {"rlock_last_failure_timestamp_seconds", "gauge", "When the last failed run ended.",
       timestamp_of(&lock::Snapshot::last_failure)},
      {"rlock_last_duration_seconds", "gauge", "How long the last run took.", took},
      {"rlock_runs_total", "counter", "Runs that have ended.", counter(&lock::Counters::runs)},
      {"rlock_failures_total", "counter", "Runs that failed, died or lost the lock.",
       counter(&lock::Counters::failures)},
      {"rlock_losses_total", "counter", "Runs whose lease expired or was broken.",
       counter(&lock::Counters::losses)},
      {"rlock_skips_total", "counter", "Runs that did not get the lock.",
       counter(&lock::Counters::skips)},
      {"rlock_superseded_total", "counter",
       "Of the skipped runs, those that a newer run superseded.",
       counter(&lock::Counters::superseded)},
      {"rlock_done_total", "counter", "Runs that found their work done.",
       counter(&lock::Counters::done)},
      {"rlock_held_seconds_total", "counter", "How long runs have held the lock, present ones too.",
       sum_of(&lock::Counters::held_ms)},
      {"rlock_waited_seconds_total", "counter", "How long runs had waited for the lock.",
       sum_of(&lock::Counters::waited_ms)},
  };
  return all;
}

std::string header(const char* name, const char* type, const char* help) {
  return util::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

constexpr const char *kUp = "rlock_up", *kOmitted = "rlock_omitted_locks";

std::string of_server(bool up) {
  return util::format("{}{} {}\n", header(kUp, "gauge", "Whether the server answered."), kUp,
                      up ? 1 : 0);
}

// The text format of Prometheus. `omitted`: the number of locks for which there was no room.
std::string metrics_text(const std::vector<LockView>& locks, uint64_t omitted) {
  std::string text = of_server(true);
  for (const Metric& metric : metrics()) {
    std::string lines;
    for (const LockView& lock : locks) {
      auto value = lock.snapshot ? metric.value(*lock.snapshot) : std::nullopt;
      if (!value) continue;
      lines += util::format("{}{{name=\"{}\"}} {}\n", metric.name, label_text(lock.name), *value);
    }
    if (!lines.empty()) text += header(metric.name, metric.type, metric.help) + lines;
  }
  return util::format("{}{}{} {}\n", text,
                      header(kOmitted, "gauge", "Locks that there was no room for."), kOmitted,
                      omitted);
}

struct MetricsSettings {
  Selection locks{};                  // if empty: locks that are in use, or were used lately
  std::optional<std::string> file{};  // nullopt: stdout
};

Result<MetricsSettings> metrics_settings(const Invocation& invocation) {
  MetricsSettings settings;
  TRY(settings.locks, selection_of(invocation));
  settings.file = invocation.choices.last(Opt::output);
  if (settings.file && settings.file->empty()) {
    return usage("--output needs the name of a file");
  }
  return settings;
}

bool ran_lately(const lock::Snapshot& lock) {
  constexpr int64_t kDay = 24 * 3600 * 1000;
  auto lately = [&](const auto& last) { return last && lock.now.ms - last->at.ms <= kDay; };
  return lately(lock.last_success) || lately(lock.last_failure);
}

struct Collected {
  std::vector<LockView> locks{};
  uint64_t omitted = 0;
  std::vector<Error> missing{};
};

Status add_locks(Collected& all, Session& session, const std::vector<lock::LockName>& names,
                 bool only_busy) {
  auto snapshots = inspect_first_waiter(session, names);
  for (size_t i = 0; i < names.size(); ++i) {
    LockView lock{names[i].text(), std::move(snapshots[i])};
    if (!lock.snapshot) {
      if (!concerns_one_lock(lock.snapshot.error())) return lock.snapshot.error();
      all.missing.push_back(lock.snapshot.error());
      continue;
    }
    if (only_busy && is_idle(lock) && !ran_lately(*lock.snapshot)) continue;
    if (all.locks.size() < kMostLocks) {
      all.locks.push_back(std::move(lock));
    } else {
      ++all.omitted;
    }
  }
  return Done{};
}

Result<Collected> collect(Session& session, const MetricsSettings& settings) {
  Collected all;
  TRY_STATUS(add_locks(all, session, settings.locks.names, false));
  if (!settings.locks.is_listing()) return all;
  TRY(auto listed, all_names(session));
  all.missing.insert(all.missing.end(), listed.missing.begin(), listed.missing.end());
  const auto names = selected(std::move(listed.names), settings.locks);
  TRY_STATUS(add_locks(all, session, names, settings.locks.patterns.empty()));
  return all;
}

// Replacing a device or a pipe would take it away from other programs. A link is not followed
// either, because a user with write access to its folder could have anything replaced.
Status check_replaceable(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return Done{};
  return usage(util::format(
      "--output replaces FILE, but {} is not a regular file; redirect standard output instead",
      util::printable(path)));
}

Result<Report> print_metrics(const std::string& text, const MetricsSettings& settings, int code) {
  if (!settings.file) return Report{.code = print_result(text, code)};
  TRY_STATUS(check_replaceable(*settings.file));
  // Writes under another name first: the collector reads only files whose names end in .prom.
  TRY_STATUS(util::replace_file(*settings.file, text));
  return Report{.code = code};
}

}  // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const char* of_server : {kUp, kOmitted}) {
    names.push_back(util::format("{} gauge", of_server));
  }
  for (const Metric& metric : metrics()) {
    names.push_back(util::format("{}{{name}} {}", metric.name, metric.type));
  }
  return names;
}

Result<Report> metrics_command(const Invocation& invocation) {
  TRY(auto settings, metrics_settings(invocation));
  TRY(auto session, Session::open(invocation.choices));
  auto all = collect(session, settings);
  if (!all) {
    // rlock_up in the file reports the outage, so cron has nothing to mail.
    const bool silent = settings.file && invocation.choices.has(Opt::quiet);
    return print_metrics(of_server(false), settings,
                         silent ? exit_code(all.error().kind) : print_error(all.error()));
  }
  return print_metrics(metrics_text(all->locks, all->omitted), settings,
                       report_missing(all->missing));
}

}  // namespace rlock::cli
