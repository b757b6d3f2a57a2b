#include "cli/output/render.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/table.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

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

// Why it stands where it does in the queue, or stood there.
std::string place_remark(const Record& record) {
  if (record.moved) return "[first, " + *record.moved + "] ";
  if (record.urgent == Millis(0)) return {};
  return "[urgent " + util::format_duration(record.urgent) + "] ";
}

// In front of the command in a table: what the state alone does not show.
std::string remark(const lock::Holder& holder) {
  if (holder.state == lock::HolderState::cooldown) {
    return "[free in " + util::format_duration(holder.left) + "] ";
  }
  if (auto late = overdue(holder)) {
    const bool gone = is_gone(decode_record(holder.record));
    return "[overdue by " + util::format_duration(*late) +
           (gone ? ", no such process here] " : "] ");
  }
  return holder.responsive == lock::Responsive::no ? "[not renewed] " : "";
}

std::string held_text(const lock::Holder& holder) {
  return holder.since.ms == 0 ? "-" : util::format_duration(holder.held);
}

std::string until_text(const lock::Holder& closure) {
  return "closed for another " + util::format_duration(closure.left);
}

// Only the native format has a queue.
std::string waiting_count(const LockView& lock) {
  bool native = lock.format == redis::Format::native;
  return native ? std::to_string(lock.snapshot->live_waiters) : "-";
}

// Shows the first holder; `+2` is the number of further ones.
void add_lock(Table& table, const LockView& lock) {
  if (!lock.snapshot) {
    table.add({lock.name, "error", "-", "-", "-", "-", lock.snapshot.error().text});
    return;
  }
  const lock::Snapshot& snapshot = *lock.snapshot;
  std::string state(to_string(state_of(snapshot)));
  std::string waiting = waiting_count(lock);
  const std::string closed =
      snapshot.closure ? "[" + until_text(*snapshot.closure) + "] " : std::string();
  if (snapshot.holders.empty() && snapshot.closure) {
    const Record by = decode_record(snapshot.closure->record);
    table.add({lock.name, state, who_or_dash(by), "-", held_text(*snapshot.closure), waiting,
               closed + command_and_reason(by)});
    return;
  }
  if (snapshot.holders.empty()) {
    table.add({lock.name, state, "-", "-", "-", waiting, ""});
    return;
  }
  const lock::Holder& holder = snapshot.holders.front();
  Record record = decode_record(holder.record);
  if (record.ending && state_of(snapshot) == LockState::held) state = "ending";
  std::string who = who_or_dash(record);
  if (snapshot.holders.size() > 1) who += " +" + std::to_string(snapshot.holders.size() - 1);
  table.add({lock.name, state, who, pid_text(record), held_text(holder), waiting,
             closed + remark(holder) + command_and_reason(record)});
}

std::string holder_text(const Record& record) {
  if (who_text(record).empty() && !record.pid) return "unknown";
  return who_or_dash(record) + ", pid " + pid_text(record);
}

// The holder's own limit: where limits differ, the smallest one applies.
std::string own_mode(const lock::Holder& holder) {
  const lock::Limit limit = holder.limit;
  if (limit.mode() == lock::Mode::exclusive) return {};
  std::string text(to_string(limit.mode()));
  if (limit.mode() == lock::Mode::shared) return text;
  text += ", up to " + std::to_string(limit.value()) + " holders";
  return holder.slot == 0 ? text : text + "; this is slot " + std::to_string(holder.slot);
}

// `[2 of 5] ` where only some of the servers know of it.
std::string servers_remark(uint64_t here, uint64_t servers) {
  if (here >= servers) return {};
  return "[" + std::to_string(here) + " of " + std::to_string(servers) + "] ";
}

std::string lease_text(const lock::Holder& holder) {
  const std::string left = util::format_duration(holder.left);
  if (holder.left < Millis(0)) return "does not expire";
  if (holder.responsive == lock::Responsive::no) {
    return "ends in " + left + "; only rlock renew extends it";
  }
  const Record record = decode_record(holder.record);
  if (!record.renews) return "ends in " + left + "; the command ends before (--no-renew)";
  if (auto late = overdue(holder)) {
    const std::string text =
        "ends in " + left + "; renewal overdue by " + util::format_duration(*late);
    return is_gone(record) ? text + ": no such process here, the holder is dead"
                           : text + ": the holder may be dead";
  }
  return "ends in " + left + " unless renewed";
}

// Where the servers of a quorum differ about a lock.
std::string quorum_details(const lock::Snapshot& snapshot, size_t width) {
  std::string text;
  auto add = [&](const std::string& line) { text += "  " + clipped_line(line, width - 2); };
  const std::string of = " of " + std::to_string(snapshot.servers);
  for (const lock::Holder& holder : snapshot.holders) {
    add("servers  the lease exists on " + std::to_string(holder.servers) + of + " servers");
  }
  for (const lock::Holder& holder : snapshot.partial) {
    Record record = decode_record(holder.record);
    add("partial  " + who_or_dash(record) + ", pid " + pid_text(record) + ": on " +
        std::to_string(holder.servers) + of + " servers, too few to hold the lock");
  }
  for (const lock::SilentServer& server : snapshot.silent) add("silent   " + server.why);
  return text;
}

// `until 2026-…Z by ann@ops1: upgrade; on 3 of 5 servers`
std::string closure_text(const lock::Snapshot& snapshot) {
  const lock::Holder& closure = *snapshot.closure;
  std::string text = closure_phrase(closure).substr(std::string_view("closed ").size());
  if (closure.servers < snapshot.servers) {
    text += "; on " + std::to_string(closure.servers) + " of " + std::to_string(snapshot.servers) +
            " servers";
  }
  return text;
}

std::string mode_text(const lock::Snapshot& snapshot) {
  auto limit = limit_of(snapshot);
  if (!limit) return {};
  if (limit->mode() == lock::Mode::slots) {
    return ", " + std::to_string(snapshot.holders.size()) + " of " +
           std::to_string(limit->value()) + " slots";
  }
  return ", " + std::string(to_string(limit->mode()));
}

std::string time_or_dash(lock::ServerTime time) {
  const std::string text = utc_time(time);
  return text.empty() ? "-" : text;
}

std::string span(lock::ServerTime from, lock::ServerTime to) {
  // The times come from the server and may have any value: the difference must not overflow.
  int64_t length = 0;
  if (__builtin_sub_overflow(to.ms, from.ms, &length)) length = 0;
  return util::format_duration(Millis(std::max<int64_t>(0, length)));
}

std::string end_text(const lock::Run& run) {
  RunEnd end = end_of(run);
  if (end.how != "released") return end.how;
  if (end.exit_code) return "exit " + std::to_string(*end.exit_code);
  if (end.signal) return "signal " + std::to_string(*end.signal);
  return end.how;
}

// The command, behind a remark on who broke its lock.
std::string command_of(const lock::Run& run, const Record& record) {
  const std::string command = place_remark(record) + record.command.value_or("");
  if (run.note.empty()) return command;
  const std::string by = note_text(run.note);
  const char* what = run.how == "forced" ? "[forced " : "[cool-down forced ";
  return what + (by.empty() ? "by an operator" : by) + "] " + command;
}

using Cells = std::vector<std::string>;

Cells run_cells(const lock::Run& run) {
  Record record = decode_record(run.record);
  // One that died ran until its last renewal, at least.
  const lock::ServerTime last = run.renewed.ms > 0 ? run.renewed : run.until;
  return {time_or_dash(run.since), span(run.since, last), end_text(run), who_or_dash(record),
          command_of(run, record)};
}

// Runs that found their work done are no skips to the reader.
std::string skips_text(const lock::Skips& skips) {
  const std::string count = std::to_string(skips.count);
  if (skips.done == skips.count) return count + " done";
  return count + (skips.count == 1 ? " skip" : " skips");
}

// What happened to those of them that did not find the lock busy.
std::string skips_remark(const lock::Skips& skips) {
  std::string text;
  if (skips.superseded > 0) text += "[" + std::to_string(skips.superseded) + " superseded] ";
  const bool some_done = skips.done > 0 && skips.done != skips.count;
  if (some_done) text += "[" + std::to_string(skips.done) + " found it done] ";
  return text;
}

// Shows the last of the skipped runs for all of them.
Cells skip_cells(const lock::Skips& skips) {
  Record record = decode_record(skips.record);
  return {time_or_dash(skips.first), skips.count > 1 ? span(skips.first, skips.last) : "-",
          skips_text(skips), who_or_dash(record),
          skips_remark(skips) + record.command.value_or("")};
}

Cells closing_cells(const lock::Closing& closing) {
  const Record by = decode_record(closing.record);
  const bool opened = closing.until.ms == 0;
  return {time_or_dash(closing.at), opened ? "-" : span(closing.at, closing.until),
          opened ? "opened" : "closed", who_or_dash(by), by.reason.value_or("")};
}

Cells waiter_cells(const lock::Waiter& waiter, size_t position, uint64_t servers) {
  const Record record = decode_record(waiter.record);
  return {
      std::to_string(position), who_or_dash(record), util::format_duration(waiter.waiting),
      servers_remark(waiter.servers, servers) + place_remark(record) + command_and_reason(record),
      waiter.owner};
}

std::string start_text(const QueueView& queue, size_t at) {
  if (at >= queue.starts.size()) return "-";
  const Millis start = queue.starts[at];
  return start == Millis(0) ? "soon" : util::format_rough_duration(start);
}

// The owner last: it is long, its beginning suffices for --remove, and a narrow screen cuts it.
std::string table_of(std::span<const QueueView> queues, NameColumn name_column, size_t width,
                     uint64_t servers) {
  const bool named = name_column == NameColumn::shown;
  const bool forecast = std::any_of(queues.begin(), queues.end(),
                                    [](const QueueView& queue) { return !queue.starts.empty(); });
  std::vector<Table::Column> columns{
      {"#", 6}, {"WHO", 20}, {"WAITING", 7}, {"COMMAND", 24}, {"OWNER", 0}};
  if (forecast) columns.insert(columns.begin() + 3, {"STARTS IN", 9});
  if (named) columns.insert(columns.begin(), {"NAME", 24});
  Table table(columns);
  for (const QueueView& queue : queues) {
    for (size_t i = 0; i < queue.waiters.size(); ++i) {
      Cells cells = waiter_cells(queue.waiters[i], i + 1, servers);
      if (forecast) cells.insert(cells.begin() + 3, start_text(queue, i));
      if (named) cells.insert(cells.begin(), queue.name);
      table.add(std::move(cells));
    }
  }
  return table.text(width);
}

// The last success, and the failures since.
std::string last_ends(const lock::Snapshot& snapshot, size_t width) {
  std::string text;
  auto add = [&](const std::string& line) { text += "  " + clipped_line(line, width - 2); };
  if (const auto& last = snapshot.last_success) {
    const std::string who = who_text(decode_record(last->record));
    add("success  " + age_and_time(last->at, snapshot.now) + ", took " +
        util::format_duration(last->took) + (who.empty() ? "" : ", by " + who));
  }
  if (snapshot.last_failure && snapshot.failures_in_a_row > 0) {
    const uint64_t times = snapshot.failures_in_a_row;
    const lock::Failure& last = *snapshot.last_failure;
    const std::string who = who_text(decode_record(last.record));
    const bool died = last.result == "expired";
    add("failure  " + age_and_time(last.at, snapshot.now) + ", " +
        (died ? "died after " + util::format_duration(last.took) : result_text(last.result)) +
        (who.empty() ? "" : ", by " + who) +
        (times > 1 ? ", " + std::to_string(times) + " in a row" : ""));
  }
  return text;
}

}  // namespace

std::string command_and_reason(const Record& record) {
  std::string text = record.command.value_or("");
  if (!record.reason || record.reason->empty()) return text;
  return text + (text.empty() ? "(" : " (") + *record.reason + ")";
}

std::string status_table(const std::vector<LockView>& locks, size_t width) {
  Table table({{"NAME", 24},
               {"STATE", 8},
               {"HELD BY", 20},
               {"PID", 7},
               {"FOR", 7},
               {"WAIT", 5},
               {"COMMAND", 0}});
  for (const LockView& lock : locks) add_lock(table, lock);
  return table.text(width);
}

std::string holder_details(const lock::Holder& holder, size_t width) {
  Record record = decode_record(holder.record);
  std::string since = utc_time(holder.since);
  const bool cooling = holder.state == lock::HolderState::cooldown;
  std::string text =
      "  " + clipped_line((cooling ? "last run " : "held by  ") + holder_text(record), width - 2);
  auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += "  " + clipped_line(label + value, width - 2);
  };
  add("command  ", record.command.value_or(""));
  add("reason   ", record.reason.value_or(""));
  if (holder.since.ms != 0) {
    add(cooling ? "started  " : "for      ",
        util::format_duration(holder.held) + (cooling ? " ago" : "") +
            (since.empty() ? "" : (cooling ? ", at " : ", since ") + since));
  }
  add("lease    ", cooling ? "" : lease_text(holder));
  add("mode     ", own_mode(holder));
  add("owner    ", holder.owner);
  add("token    ", holder.token.value == 0 ? "" : std::to_string(holder.token.value));
  if (record.ending) add("state    ", "ending, " + *record.ending);
  if (holder.state == lock::HolderState::revoked) {
    add("state    ",
        holder.responsive == lock::Responsive::run
            ? "broken by an operator; its holder has been asked to end"
            : "broken by an operator; it stays held until its process exits or its lease ends");
  } else if (cooling) {
    add("state    ",
        "its command has ended; free in " + util::format_duration(holder.left) + " (--min-hold)");
  }
  return text;
}

std::string lock_details(const LockView& lock, size_t width) {
  std::string name = util::shortened(util::printable(lock.name), width);
  if (!lock.snapshot) return clipped_line(lock.name + ": " + lock.snapshot.error().text, width);
  const lock::Snapshot& snapshot = *lock.snapshot;
  if (!is_known(lock)) {
    return clipped_line(lock.name + ": never held, or not within 30 days", width);
  }
  std::string state(to_string(state_of(snapshot)));
  state += mode_text(snapshot);
  state += lock.format == redis::Format::native
               ? ", " + std::to_string(snapshot.live_waiters) + " waiting"
               : ", in the " + std::string(to_string(lock.format)) + " format";
  std::string text = util::display_width(name) + state.size() + 2 <= width
                         ? name + ": " + state + "\n"
                         : name + "\n  " + clipped_line(state, width - 2);
  for (size_t i = 0; i < snapshot.holders.size(); ++i) {
    if (i > 0) text += "\n";
    text += holder_details(snapshot.holders[i], width);
  }
  if (snapshot.closure) {
    text += "  " + clipped_line("closed   " + closure_text(snapshot), width - 2);
  }
  if (!lock.deadlock.empty()) {
    text += "  " + clipped_line("deadlock " + lock.deadlock, width - 2);
  }
  text += last_ends(snapshot, width);
  if (snapshot.servers > 1) text += quorum_details(snapshot, width);
  return text;
}

std::string queue_table(const QueueView& queue, size_t width, uint64_t servers) {
  return table_of({&queue, 1}, NameColumn::hidden, width, servers);
}

std::string queue_table(const std::vector<QueueView>& queues, size_t width, uint64_t servers) {
  return table_of(queues, NameColumn::shown, width, servers);
}

std::string history_table(const History& lines, NameColumn name_column, size_t width) {
  std::vector<Table::Column> columns{
      {"START", 20}, {"FOR", 7}, {"END", 12}, {"WHO", 20}, {"COMMAND", 0}};
  if (name_column == NameColumn::shown) columns.insert(columns.begin() + 1, {"NAME", 24});
  Table table(columns);
  auto add = [&](const std::string& name, Cells cells) {
    if (name_column == NameColumn::shown) cells.insert(cells.begin() + 1, name);
    table.add(std::move(cells));
  };
  for (const HistoryLine& row : by_start(lines)) {
    add(row.name, row.run       ? run_cells(*row.run)
                  : row.closing ? closing_cells(*row.closing)
                                : skip_cells(*row.skips));
  }
  return table.text(width);
}

}  // namespace rlock::cli
