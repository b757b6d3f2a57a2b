#include "cli/output/metrics_text.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>

namespace rlock::cli {
namespace {

// Nothing where it is unknown: no line is printed then.
using Value = std::function<std::optional<std::string>(const lock::Snapshot&)>;

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  Value value;
};

std::string seconds(int64_t ms) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ms / 1000),
                static_cast<long long>(ms % 1000));
  return text;
}

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

template <class T>
Value timestamp_of(std::optional<T> lock::Snapshot::*last) {
  return [last](const lock::Snapshot& lock) -> std::optional<std::string> {
    if (!(lock.*last)) return std::nullopt;
    return seconds((lock.*last)->at.ms);
  };
}

std::optional<std::string> took(const lock::Snapshot& lock) {
  auto length = last_duration(lock);
  return length ? std::optional(seconds(length->count())) : std::nullopt;
}

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all{
      {"rlock_holders", "gauge", "Holders of the lock, cool-downs included.",
       [](const lock::Snapshot& lock) { return std::to_string(lock.live_holders); }},
      {"rlock_closed", "gauge", "Whether the lock is closed.",
       [](const lock::Snapshot& lock) { return std::string(is_closed(lock) ? "1" : "0"); }},
      {"rlock_waiters", "gauge", "Clients that wait for the lock.",
       [](const lock::Snapshot& lock) { return std::to_string(lock.live_waiters); }},
      {"rlock_oldest_wait_seconds", "gauge", "How long the first waiter has waited.",
       [](const lock::Snapshot& lock) { return seconds(longest_wait(lock).count()); }},
      {"rlock_held_seconds", "gauge", "How long the lock has been held, by the oldest holder.",
       [](const lock::Snapshot& lock) { return seconds(longest_hold(lock).count()); }},
      {"rlock_last_success_timestamp_seconds", "gauge", "When the last successful run ended.",
       timestamp_of(&lock::Snapshot::last_success)},
      {"rlock_last_failure_timestamp_seconds", "gauge", "When the last failed run ended.",
       timestamp_of(&lock::Snapshot::last_failure)},
      {"rlock_last_duration_seconds", "gauge", "How long the last run took.", took},
      {"rlock_runs_total", "counter", "Runs that have ended.", counter(&lock::Counters::runs)},
      {"rlock_failures_total", "counter", "Runs that failed, died or lost the lock.",
       counter(&lock::Counters::failures)},
      {"rlock_losses_total", "counter", "Runs whose lease ended or was broken.",
       counter(&lock::Counters::losses)},
      {"rlock_skips_total", "counter", "Runs that did not get the lock.",
       counter(&lock::Counters::skips)},
      {"rlock_done_total", "counter", "Runs that found their work done.",
       counter(&lock::Counters::done)},
  };
  return all;
}

std::string header(const std::string& name, const char* type, const char* help) {
  return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

std::string of_server(bool up) {
  return header("rlock_up", "gauge", "Whether the server answered.") + "rlock_up " +
         (up ? "1\n" : "0\n");
}

}  // namespace

std::optional<Millis> last_duration(const lock::Snapshot& snapshot) {
  if (last_run_failed(snapshot)) return snapshot.last_failure->took;
  if (snapshot.last_success) return snapshot.last_success->took;
  return std::nullopt;
}

bool last_run_failed(const lock::Snapshot& snapshot) {
  if (!snapshot.last_failure) return false;
  return !snapshot.last_success || snapshot.last_failure->at > snapshot.last_success->at;
}

Millis longest_hold(const lock::Snapshot& snapshot) {
  Millis longest{0};
  for (const lock::Holder& holder : snapshot.holders) {
    const bool runs = holder.state != lock::HolderState::cooldown;
    if (runs) longest = std::max(longest, holder.held);
  }
  return longest;
}

Millis longest_wait(const lock::Snapshot& snapshot) {
  Millis longest{0};
  for (const lock::Waiter& waiter : snapshot.waiters) longest = std::max(longest, waiter.waiting);
  return longest;
}

std::string metrics_text(const std::vector<LockView>& locks, uint64_t omitted) {
  std::string text = of_server(true);
  for (const Metric& metric : metrics()) {
    std::string lines;
    for (const LockView& lock : locks) {
      auto value = lock.snapshot ? metric.value(*lock.snapshot) : std::nullopt;
      if (!value) continue;
      lines += metric.name;
      lines += "{name=\"" + label_text(lock.name) + "\"} " + *value + "\n";
    }
    if (!lines.empty()) text += header(metric.name, metric.type, metric.help) + lines;
  }
  return text + header("rlock_omitted_locks", "gauge", "Locks that there was no room for.") +
         "rlock_omitted_locks " + std::to_string(omitted) + "\n";
}

std::string metrics_of_no_server() {
  return of_server(false);
}

}  // namespace rlock::cli
