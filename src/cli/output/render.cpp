#include "cli/output/render.hpp"

#include <algorithm>

#include "cli/output/messages.hpp"
#include "cli/output/table.hpp"
#include "util/duration.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Cells = std::vector<std::string>;

std::string left_text(const lock::Holder& holder) {
  return util::format_duration(holder.left.value_or(Millis(0)));
}

std::string clipped_line(const std::string& text, size_t width) {
  return util::shortened(util::printable(text), width) + "\n";
}

std::string pid_text(const Record& record) {
  return record.pid ? std::to_string(*record.pid) : "-";
}

std::string who_or_dash(const Record& record) {
  std::string who = who_text(record);
  return who.empty() ? "-" : who;
}

// Why the run has, or had, its position in the queue.
std::string place_remark(const Record& record) {
  const std::string number =
      record.supersede ? util::format("[number {}] ", *record.supersede) : std::string();
  if (record.moved) return util::format("{}[first, {}] ", number, *record.moved);
  if (record.urgent == Millis(0)) return number;
  return util::format("{}[urgent {}] ", number, util::format_duration(record.urgent));
}

// A remark that the state of a holder does not imply.
std::string remark(const lock::Holder& holder) {
  if (holder.state == lock::HolderState::cooldown) {
    return util::format("[free in {}] ", left_text(holder));
  }
  if (life_of(holder) == Life::overdue) {
    return util::format("[overdue by {}] ", util::format_duration(*overdue(holder)));
  }
  return holder.responsive == lock::Responsive::no ? "[not renewed] " : "";
}

// `[needs rlock 1.4] `, if this rlock does not know a rule.
std::string needs_remark(const std::optional<lock::NewerRules>& needs) {
  constexpr size_t kLongest = 20;
  return needs ? util::format("[needs rlock {}] ", util::shortened(needs->version, kLongest)) : "";
}

std::string needs_text(const std::optional<lock::NewerRules>& needs) {
  return needs ? needs_phrase(*needs) : "";
}

std::string command_and_reason(const Record& record) {
  std::string text = record.command.value_or("");
  if (!record.reason || record.reason->empty()) return text;
  return util::format("{}{}({})", text, text.empty() ? "" : " ", *record.reason);
}

std::string holder_text(const Record& record) {
  if (who_text(record).empty() && !record.pid) return "unknown";
  return util::format("{}, pid {}", who_or_dash(record),
                      record.pid ? pid_and_place(record) : pid_text(record));
}

// The holder's own limit; if limits differ, the smallest one applies.
std::string own_mode(const lock::Holder& holder) {
  const lock::Limit limit = holder.limit;
  if (limit.mode() == lock::Mode::exclusive) return {};
  std::string text(to_string(limit.mode()));
  if (limit.mode() == lock::Mode::shared) return text;
  text += util::format(", up to {} holders", limit.value());
  return holder.slot == 0 ? text : util::format("{}; this is slot {}", text, holder.slot);
}

std::string lease_text(const lock::Holder& holder) {
  if (holder.died) return life_phrase(holder);
  if (!holder.left) return "does not expire";
  const std::string text = "expires in " + left_text(holder);
  if (holder.responsive == lock::Responsive::no) return text + "; only rlock renew extends it";
  const Record record = decode_record(holder.record);
  if (!record.renews) return text + "; rlock stops the command before that (--no-renew)";
  const std::string life = life_phrase(holder);
  if (life_of(holder) == Life::overdue) return util::format("{}; {} unless renewed", life, text);
  if (!life.empty()) return life;
  return holder.state == lock::HolderState::revoked ? text : text + " unless renewed";
}

std::string mode_text(const lock::Snapshot& snapshot) {
  auto limit = limit_of(snapshot);
  if (!limit) return {};
  if (limit->mode() != lock::Mode::slots) return util::format(", {}", to_string(limit->mode()));
  return util::format(", {} of {} slots", snapshot.holders.size(), limit->value());
}

std::string time_or_dash(lock::ServerTime time) {
  const std::string text = time_text(time);
  return text.empty() ? "-" : text;
}

// The times come from the server and may have any value, so the difference must not overflow.
Millis difference(lock::ServerTime from, lock::ServerTime to) {
  int64_t length = 0;
  if (__builtin_sub_overflow(to.ms, from.ms, &length)) length = 0;
  return Millis(std::max<int64_t>(0, length));
}

std::string span(lock::ServerTime from, lock::ServerTime to) {
  return util::format_duration(difference(from, to));
}

std::string end_text(const lock::Run& run) {
  HistoryEnd end = end_of(run);
  if (end.how != "released") return end.how;
  if (end.exit_code) return util::format("exit {}", *end.exit_code);
  if (end.signal) return util::signal_name(*end.signal);
  return end.how;
}

std::optional<LocalTime> asked_at(const Record& record) {
  return record.asked ? parse_local_time(*record.asked) : std::nullopt;
}

// Whether to show the offset of each run, because hosts in several time zones do not mean the same
// day.
enum class Zones { hidden, shown };
Zones zones_in(const History& lines) {
  std::optional<long> first;
  for (const HistoryLine& line : lines) {
    for (const auto& record : {line.run ? line.run->record : std::string(),
                               line.skips ? line.skips->record : std::string()}) {
      const auto asked = asked_at(decode_record(record));
      if (asked && first.value_or(asked->offset) != asked->offset) return Zones::shown;
      if (asked) first = asked->offset;
    }
  }
  return Zones::hidden;
}

std::string zone_remark(const Record& record, Zones zones) {
  const auto asked = asked_at(record);
  if (zones == Zones::hidden || !asked) return {};
  return util::format("[UTC{}] ", offset_text(asked->offset));
}

// The command, after a remark on the operator who broke its lock.
std::string command_of(const lock::Run& run, const Record& record, Zones zones) {
  const bool exited = run.how == "expired" && is_gone(record);
  const std::string command = (exited ? "[no such process here] " : "") +
                              zone_remark(record, zones) + place_remark(record) +
                              record.command.value_or("");
  if (run.note.empty()) return command;
  const std::string by = note_text(run.note);
  return util::format("[{} {}] {}", run.how == "forced" ? "broken" : "cool-down broken",
                      by.empty() ? "by an operator" : by, command);
}

// The command of a run that died was stopped at the end of its lease, if not before.
std::string duration_of(const lock::Run& run) {
  return (run.renewed.ms > 0 ? "<" : "") + span(run.since, run.until);
}

Cells run_cells(const lock::Run& run, Zones zones) {
  const Record record = decode_record(run.record);
  return {time_or_dash(run.since), duration_of(run), end_text(run), who_or_dash(record),
          command_of(run, record, zones)};
}

// Shows the last of the skipped runs for all of them. For the reader, runs that found their work
// done are not skips, and their host and time are not those of the work.
Cells skip_cells(const lock::Skips& skips, Zones zones) {
  const Record record = decode_record(skips.record);
  const bool all_done = skips.done == skips.count;
  std::string remarks;
  if (skips.superseded > 0) remarks = util::format("[{} superseded] ", skips.superseded);
  if (skips.done > 0 && !all_done) remarks += util::format("[{} found it done] ", skips.done);
  return {
      time_or_dash(skips.first), skips.count > 1 && !all_done ? span(skips.first, skips.last) : "-",
      util::format("{} {}", skips.count,
                   all_done           ? "found it done"
                   : skips.count == 1 ? "skip"
                                      : "skips"),
      all_done ? "-" : who_or_dash(record),
      remarks + zone_remark(record, zones) + place_remark(record) + record.command.value_or("")};
}

Cells closing_cells(const lock::Closing& closing) {
  const Record by = decode_record(closing.record);
  const bool opened = closing.until.ms == 0;
  return {time_or_dash(closing.at), opened ? "-" : span(closing.at, closing.until),
          opened ? "opened" : "closed", who_or_dash(by), by.reason.value_or("")};
}

// `[silent 9s, no such process here] `, for a waiter that may be dead.
std::string life_remark(const lock::Waiter& waiter, const Record& record) {
  std::string text;
  if (waiter.silent > Millis(0)) text = "silent " + util::format_duration(waiter.silent);
  if (is_gone(record)) util::append(text, ", ", "no such process here");
  return text.empty() ? text : util::format("[{}] ", text);
}

Cells waiter_cells(const lock::Waiter& waiter, size_t position, uint64_t servers) {
  const Record record = decode_record(waiter.record);
  std::string remarks =
      needs_remark(waiter.needs) + life_remark(waiter, record) + place_remark(record);
  if (waiter.servers < servers) {
    remarks = util::format("[{} of {}] {}", waiter.servers, servers, remarks);
  }
  return {std::to_string(position),
          who_or_dash(record),
          pid_text(record),
          util::format_duration(waiter.waiting),
          remarks + command_and_reason(record),
          waiter.owner};
}

std::string start_text(const QueueView& queue, size_t at) {
  if (at >= queue.starts.size()) return "-";
  const Millis start = queue.starts[at];
  return start == Millis(0) ? "soon" : util::format_rough_duration(start);
}

// A lock or a holder in full: lines that are indented below its name.
class Details {
 public:
  explicit Details(size_t width) : width_(width) {}

  // Adds nothing if the value is empty.
  void add(std::string_view label, const std::string& value) {
    if (value.empty()) return;
    text_ += "  " + clipped_line(util::format("{:9}{}", label, value), width_ - 2);
  }
  void add_text(const std::string& text) { text_ += text; }
  const std::string& text() const { return text_; }

 private:
  const size_t width_;
  std::string text_;
};

// `until 2026-…Z by ann@ops1: upgrade; closed 5m ago, at 2026-…Z; to open it: rlock open deploy; on
// 3 of 5 servers`
std::string closure_text(const std::string& name, const lock::Snapshot& snapshot) {
  const lock::Closure& closure = *snapshot.closure;
  std::string text = closure_phrase(closure).substr(std::string_view("closed ").size());
  const std::string since = age_and_time(closure.since, snapshot.now);
  text += util::format("{}{}; to open it: rlock open {}", since.empty() ? "" : "; closed ", since,
                       typed_name(name));
  if (closure.servers < snapshot.servers) {
    text += util::format("; on {} of {} servers", closure.servers, snapshot.servers);
  }
  return text;
}

// Only the last renewal is known of a run whose lease expired: it died, or rlock stopped it.
std::string expired_text(const lock::Failure& last) {
  constexpr Millis kNotRenewed{100};
  return last.took < kNotRenewed
             ? "its lease expired before its first renewal"
             : "its lease expired, last renewed after " + util::format_duration(last.took);
}

// The last success, and the failures since.
void add_last_ends(Details& details, const lock::Snapshot& snapshot) {
  if (const auto& last = snapshot.last_success) {
    details.add("success",
                util::format("{}, took {}{}", age_and_time(last->at, snapshot.now),
                             util::format_duration(last->took), by_phrase(last->record)));
  }
  if (!snapshot.last_failure || snapshot.failures_in_a_row == 0) return;
  const uint64_t times = snapshot.failures_in_a_row;
  const lock::Failure& last = *snapshot.last_failure;
  details.add(
      "failure",
      util::format("{}, {}{}{}", age_and_time(last.at, snapshot.now),
                   last.result == "expired" ? expired_text(last) : result_text(last),
                   by_phrase(last.record), times > 1 ? util::format(", {} in a row", times) : ""));
}

// The number that supersedes smaller ones.
std::string newest_text(const lock::Snapshot& snapshot) {
  const auto& newest = snapshot.newest;
  if (!newest) return {};
  const std::string granted = age_and_time(newest->granted, snapshot.now);
  return util::format("{}{}{}; smaller numbers are superseded", newest->number,
                      granted.empty() ? "" : ", granted the lock " + granted,
                      by_phrase(newest->record));
}

// Adds what the servers of a quorum report differently about a lock.
void add_quorum(Details& details, const lock::Snapshot& snapshot) {
  for (const lock::Holder& holder : snapshot.holders) {
    details.add("servers", util::format("the lease exists on {} of {} servers", holder.servers,
                                        snapshot.servers));
  }
  for (const lock::Holder& holder : snapshot.partial) {
    const Record record = decode_record(holder.record);
    details.add("partial", util::format("{}, pid {}: on {} of {} servers, too few to hold the lock",
                                        who_or_dash(record), pid_text(record), holder.servers,
                                        snapshot.servers));
  }
  for (const lock::SilentServer& server : snapshot.silent) details.add("silent", server.why);
}

}  // namespace

LockCells lock_cells(const LockView& lock) {
  if (!lock.snapshot) {
    return {.name = lock.name, .state = "error"};  // the error was printed before
  }
  const lock::Snapshot& snapshot = *lock.snapshot;
  LockCells cells{.name = lock.name, .state = std::string(to_string(state_of(snapshot)))};
  if (lock.format == redis::Format::native) cells.waiting = std::to_string(snapshot.live_waiters);
  if (!lock.deadlock.empty()) cells.deadlock = "[deadlock] ";
  cells.needs = needs_remark(snapshot.needs);
  const auto& closure = snapshot.closure;
  if (closure) {
    cells.remark = util::format("[closed for another {}] ", util::format_duration(closure->left));
  }
  if (snapshot.holders.empty() && !closure) return cells;
  Record record;
  if (snapshot.holders.empty()) {
    record = decode_record(closure->record);
    cells.held = difference(closure->since, snapshot.now);
  } else {
    const lock::Holder& holder = snapshot.holders.front();
    record = decode_record(holder.record);
    if (holder.since.ms != 0) cells.held = holder.held;
    if (holder.died) cells.death = util::format("[{}] ", life_phrase(holder));
    cells.remark += remark(holder);
    if (record.ending && state_of(snapshot) == LockState::held) cells.state = "ending";
  }
  cells.who = who_or_dash(record);
  if (snapshot.live_holders > 1) cells.who += util::format(" +{}", snapshot.live_holders - 1);
  cells.pid = pid_text(record);
  cells.command = command_and_reason(record);
  return cells;
}

std::string status_table(const std::vector<LockView>& locks, size_t width) {
  Table table({{"NAME", 24},
               {"STATE", 8},
               {"HELD BY", 20},
               {"PID", 7},
               {"FOR", 7},
               {"WAIT", 5},
               {"COMMAND"}});
  for (const LockView& lock : locks) {
    const LockCells cells = lock_cells(lock);
    table.add({cells.name, cells.state, cells.who, cells.pid,
               cells.held ? util::format_duration(*cells.held) : "-", cells.waiting,
               cells.needs + cells.deadlock + cells.death + cells.remark + cells.command});
  }
  return table.text(width);
}

std::string holder_details(const lock::Holder& holder, size_t width) {
  const Record record = decode_record(holder.record);
  const std::string since = time_text(holder.since);
  const bool cooling = holder.state == lock::HolderState::cooldown;
  Details details(width);
  details.add(cooling ? "last run" : "held by", holder_text(record));
  details.add("command", record.command.value_or(""));
  details.add("reason", record.reason.value_or(""));
  if (holder.since.ms != 0) {
    details.add(cooling ? "started" : "for",
                util::format("{}{}{}", util::format_duration(holder.held), cooling ? " ago" : "",
                             since.empty() ? "" : (cooling ? ", at " : ", since ") + since));
  }
  details.add("lease", cooling ? "" : lease_text(holder));
  details.add("needs", needs_text(holder.needs));
  details.add("mode", own_mode(holder));
  details.add("owner", holder.owner);
  details.add("token", holder.token.value == 0 ? "" : std::to_string(holder.token.value));
  if (record.ending) details.add("state", "ending, " + *record.ending);
  if (holder.state == lock::HolderState::revoked) {
    details.add("state", holder.died ? "broken by an operator"
                         : holder.responsive == lock::Responsive::run
                             ? "broken by an operator; its holder has been asked to stop"
                             : "broken by an operator; it stays held until its process exits or "
                               "its lease expires");
  } else if (cooling) {
    details.add("state",
                util::format("its command has exited; free in {} (--min-hold)", left_text(holder)));
  }
  return details.text();
}

std::string lock_details(const LockView& lock, size_t width) {
  if (!lock.snapshot)
    return clipped_line(lock.name + ": error", width);  // the error was printed before
  if (!is_known(lock)) {
    return clipped_line(
        lock.name + ": never held, not within 30 days, or the server has lost its data", width);
  }
  const lock::Snapshot& snapshot = *lock.snapshot;
  const std::string name = util::shortened(util::printable(lock.name), width);
  const std::string state =
      util::format("{}{}, {}", to_string(state_of(snapshot)), mode_text(snapshot),
                   lock.format == redis::Format::native
                       ? util::format("{} waiting", snapshot.live_waiters)
                       : util::format("in the {} format", to_string(lock.format)));
  Details details(width);
  details.add_text(util::display_width(name) + state.size() + 2 <= width
                       ? util::format("{}: {}\n", name, state)
                       : util::format("{}\n  {}", name, clipped_line(state, width - 2)));
  details.add("needs", needs_text(snapshot.needs));
  for (size_t i = 0; i < snapshot.holders.size(); ++i) {
    if (i > 0) details.add_text("\n");
    details.add_text(holder_details(snapshot.holders[i], width));
  }
  if (snapshot.closure) details.add("closed", closure_text(lock.name, snapshot));
  details.add("deadlock", lock.deadlock);
  details.add("", lock.deadlock.empty() ? ""
                                        : "to end it, stop one of these runs, or break a lock with "
                                          "rlock force-unlock");
  details.add("key", lock.blocking_key);
  add_last_ends(details, snapshot);
  details.add("number", newest_text(snapshot));
  if (snapshot.servers > 1) add_quorum(details, snapshot);
  return details.text();
}

// The owner is the last column: it is long, its beginning suffices for --remove, and a narrow
// screen cuts it.
std::string queue_table(std::span<const QueueView> queues, NameColumn name_column, size_t width,
                        uint64_t servers) {
  const bool named = name_column == NameColumn::shown;
  const bool forecast = std::any_of(queues.begin(), queues.end(),
                                    [](const QueueView& queue) { return !queue.starts.empty(); });
  std::vector<Table::Column> columns{{"#", 6},       {"WHO", 20},     {"PID", 7},
                                     {"WAITING", 7}, {"COMMAND", 24}, {"OWNER"}};
  if (forecast) columns.insert(columns.begin() + 4, {"STARTS IN", 9});
  if (named) columns.insert(columns.begin(), {"NAME", 24});
  Table table(columns);
  for (const QueueView& queue : queues) {
    for (size_t i = 0; i < queue.waiters.size(); ++i) {
      Cells cells = waiter_cells(queue.waiters[i], i + 1, servers);
      if (forecast) cells.insert(cells.begin() + 4, start_text(queue, i));
      if (named) cells.insert(cells.begin(), queue.name);
      table.add(std::move(cells));
    }
  }
  return table.text(width);
}

std::string history_table(const History& lines, NameColumn name_column, size_t width) {
  const size_t time_width = time_text({1000}).size();
  std::vector<Table::Column> columns{
      {"START", time_width, time_width}, {"FOR", 7}, {"END", 16}, {"WHO", 20}, {"COMMAND"}};
  if (name_column == NameColumn::shown) columns.insert(columns.begin() + 1, {"NAME", 24});
  Table table(columns);
  const Zones zones = zones_in(lines);
  for (const HistoryLine& row : by_start(lines)) {
    Cells cells = row.run       ? run_cells(*row.run, zones)
                  : row.closing ? closing_cells(*row.closing)
                                : skip_cells(*row.skips, zones);
    if (name_column == NameColumn::shown) cells.insert(cells.begin() + 1, row.name);
    table.add(std::move(cells));
  }
  return table.text(width);
}

std::string version_text(std::string_view version, std::string_view commit, uint64_t form,
                         std::string_view project) {
  std::string out = util::format("rlock {}", version);
  if (!commit.empty()) out += util::format(" (commit {})", commit);
  out += util::format("\nform of stored locks: {}\n", form);
  if (!project.empty()) out += util::format("packages, questions, security: {}\n", project);
  return out;
}

}  // namespace rlock::cli
