#include "cli/output/view.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "cli/output/record.hpp"
#include "lock/timing.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The number in `exit:7`, up to 255, for the label `exit:`.
std::optional<int> number_after(std::string_view label, std::string_view text) {
  if (!text.starts_with(label)) return std::nullopt;
  text.remove_prefix(label.size());
  return util::parse_number<uint8_t>(text);
}

// Translates the server's word for an end.
std::string shown_end(std::string how) {
  return how == "forced" ? "broken" : how;
}

int64_t start_of(const HistoryLine& line) {
  if (line.closing) return line.closing->at.ms;
  return line.run ? line.run->since.ms : line.skips->first.ms;
}

void sort_by_start(History& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const HistoryLine& a, const HistoryLine& b) {
    return start_of(a) > start_of(b);
  });
}

// Lets each closing end when its lock was opened, or closed anew. The client chose the planned end
// some milliseconds before the server noted the start, so that two hours would be shown as 1h59m.
// `rows`: newest first.
void end_closings(History& rows) {
  std::map<std::string, lock::ServerTime> later;
  for (HistoryLine& row : rows) {
    if (!row.closing) continue;
    const auto [next, is_last] = later.try_emplace(row.name, row.closing->at);
    if (row.closing->until.ms != 0) {
      row.closing->until.ms += 500;
      if (!is_last) row.closing->until.ms = std::min(row.closing->until.ms, next->second.ms);
    }
    next->second = row.closing->at;
  }
}

// Adds the skips of an older row, which a closure separates from these.
void add_older(lock::Skips& skips, const lock::Skips& older) {
  skips.count += older.count;
  skips.first = older.first;
  skips.done += older.done;
  skips.superseded += older.superseded;
}

}  // namespace

using lock::HolderState;

bool Selection::lists(const lock::LockName& name) const {
  if (std::find(names.begin(), names.end(), name) != names.end()) return false;
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return util::matches(pattern, name.text());
         });
}

std::optional<Millis> overdue(const lock::Holder& holder) {
  if (holder.state != HolderState::held || holder.responsive == lock::Responsive::no) return {};
  if (holder.ttl <= Millis(0) || !holder.left) return {};
  const Millis interval = timing::renew_interval(holder.ttl);
  const Millis late = holder.ttl - *holder.left - interval;
  if (late < interval / 2 || !decode_record(holder.record).renews) return {};
  return late;
}

Life life_of(const lock::Holder& holder) {
  if (holder.died) return Life::died;
  if (overdue(holder)) return Life::overdue;
  const bool renews = holder.state == HolderState::held && holder.ttl > Millis(0) && holder.left &&
                      holder.responsive != lock::Responsive::no &&
                      decode_record(holder.record).renews;
  return renews ? Life::alive : Life::unknown;
}

bool is_closed(const lock::Snapshot& snapshot) {
  return snapshot.closure &&
         2 * (snapshot.closure->servers + snapshot.silent.size()) > snapshot.servers;
}

LockState state_of(const lock::Snapshot& snapshot) {
  auto in = [](HolderState state) {
    return [state](const lock::Holder& holder) { return holder.state == state; };
  };
  const auto& holders = snapshot.holders;
  if (holders.empty()) return is_closed(snapshot) ? LockState::closed : LockState::free;
  if (std::any_of(holders.begin(), holders.end(), in(HolderState::revoked))) {
    return LockState::broken;
  }
  if (std::any_of(holders.begin(), holders.end(), overdue)) return LockState::overdue;
  bool cooling = std::all_of(holders.begin(), holders.end(), in(HolderState::cooldown));
  return cooling ? LockState::cooldown : LockState::held;
}

std::string_view to_string(LockState state) {
  return util::to_string<LockState::broken>(
      state, {"free", "closed", "held", "overdue", "cooldown", "broken"});
}

std::optional<lock::Limit> limit_of(const lock::Snapshot& snapshot) {
  auto least = std::min_element(snapshot.holders.begin(), snapshot.holders.end(),
                                [](const lock::Holder& a, const lock::Holder& b) {
                                  return a.limit.value() < b.limit.value();
                                });
  return least == snapshot.holders.end() ? std::nullopt : std::optional(least->limit);
}

std::string_view to_string(lock::Mode mode) {
  return util::to_string<lock::Mode::shared>(mode, {"exclusive", "slots", "shared"});
}

std::string_view to_string(redis::Format format) {
  return util::to_string<redis::Format::redisson>(format, {"native", "plain", "redisson"});
}

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

std::vector<Millis> expected_starts(const lock::Snapshot& present,
                                    const std::vector<lock::Waiter>& waiters, Millis usual) {
  constexpr size_t kMostWaiters = 128, kMostHolders = 1024;
  constexpr Millis kLongest{3'650LL * 24 * 60 * 60 * 1000};  // hostile numbers must not overflow
  struct Run {
    Millis end;
    uint64_t limit;
  };
  if (present.holders.size() > kMostHolders) return {};
  usual = std::min(usual, kLongest);
  std::vector<Run> runs;
  auto add = [&](Millis end, lock::Limit limit) {
    runs.push_back({std::clamp(end, Millis(0), kLongest), limit.value()});
  };
  for (const lock::Holder& holder : present.holders) {
    const bool cooling = holder.state == HolderState::cooldown;
    add(cooling ? holder.left.value_or(Millis(0))
                : usual - std::clamp(holder.held, Millis(0), kLongest),
        holder.limit);
  }
  if (present.closure) add(present.closure->left, lock::Limit::exclusive());
  std::vector<Millis> starts;
  Millis now{0};
  for (size_t i = 0; i < std::min(waiters.size(), kMostWaiters); ++i) {
    const uint64_t limit = waiters[i].limit.value();
    auto is_full = [&] {
      const uint64_t together = runs.size() + 1;
      return limit < together || std::any_of(runs.begin(), runs.end(),
                                             [&](const Run& run) { return run.limit < together; });
    };
    while (!runs.empty() && is_full()) {
      auto first = std::min_element(runs.begin(), runs.end(),
                                    [](const Run& a, const Run& b) { return a.end < b.end; });
      now = std::max(now, first->end);
      runs.erase(first);
    }
    starts.push_back(now);
    runs.push_back({now + usual, limit});
  }
  return starts;
}

bool is_known(const LockView& lock) {
  if (!lock.snapshot || lock.format != redis::Format::native) return true;
  return lock.snapshot->known || !lock.snapshot->holders.empty();
}

bool is_idle(const LockView& lock) {
  if (!lock.snapshot) return false;
  const lock::Snapshot& snapshot = *lock.snapshot;
  return snapshot.holders.empty() && snapshot.partial.empty() && snapshot.live_waiters == 0 &&
         !snapshot.closure && !snapshot.needs;
}

History to_history(const std::string& name, const lock::HistoryRows& rows, uint64_t most) {
  History lines, closings;
  uint64_t runs = 0;
  for (const lock::HistoryRow& row : rows) {
    if (const auto* run = std::get_if<lock::Run>(&row)) {
      if (runs++ == most) break;
      lines.push_back({name, *run});
    } else if (const auto* closing = std::get_if<lock::Closing>(&row)) {
      closings.push_back({name, std::nullopt, std::nullopt, *closing});
    } else {
      if (lines.empty()) lines.push_back({name});
      const auto& skips = std::get<lock::Skips>(row);
      if (lines.back().skips) {
        add_older(*lines.back().skips, skips);
      } else {
        lines.back().skips = skips;
      }
    }
  }
  std::move(closings.begin(), closings.end(), std::back_inserter(lines));
  return lines;
}

History by_start(const History& lines) {
  History rows;
  for (const HistoryLine& line : lines) {
    if (line.run) rows.push_back({line.name, line.run, std::nullopt});
    if (line.skips) rows.push_back({line.name, std::nullopt, line.skips});
    if (line.closing) rows.push_back(line);
  }
  sort_by_start(rows);
  end_closings(rows);
  return rows;
}

void keep_newest(History& lines, uint64_t most) {
  sort_by_start(lines);
  uint64_t runs = 0;
  auto first_excess = std::find_if(lines.begin(), lines.end(), [&](const HistoryLine& line) {
    return line.run && ++runs > most;
  });
  lines.erase(first_excess, lines.end());
}

HistoryEnd end_of(const lock::Run& run) {
  HistoryEnd end{shown_end(run.how), number_after("exit:", run.result),
                 number_after("signal:", run.result)};
  constexpr std::string_view kWords[] = {"lost", "max-run", "no-guard", "no-renewal", "stopped"};
  const bool known =
      std::find(std::begin(kWords), std::end(kWords), run.result) != std::end(kWords);
  if (run.how == "released" && known) end.how = run.result;
  return end;
}

HistoryEnd end_of(const lock::Failure& failure) {
  const bool ended = failure.result.find(':') != std::string::npos;
  return {ended ? "released" : shown_end(failure.result), number_after("exit:", failure.result),
          number_after("signal:", failure.result)};
}

std::string result_text(const lock::Failure& failure) {
  const HistoryEnd end = end_of(failure);
  if (end.exit_code) return util::format("exit {}", *end.exit_code);
  return end.signal ? util::signal_name(*end.signal) : end.how;
}

std::optional<Millis> usual_duration(const lock::HistoryRows& rows, size_t least) {
  std::vector<int64_t> durations;
  for (const lock::HistoryRow& row : rows) {
    const auto* run = std::get_if<lock::Run>(&row);
    if (run == nullptr || run->how != "released" || end_of(*run).exit_code != 0) continue;
    const bool plausible = run->since.ms > 0 && run->until.ms >= run->since.ms;
    if (plausible) durations.push_back(run->until.ms - run->since.ms);
  }
  if (durations.size() < least) return std::nullopt;
  std::sort(durations.begin(), durations.end());
  const size_t last = durations.size() - 1;
  return Millis(std::midpoint(durations[last / 2], durations[last - last / 2]));
}

}  // namespace rlock::cli
