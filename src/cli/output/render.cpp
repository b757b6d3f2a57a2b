#include "cli/output/render.hpp"

#include "cli/output/record.hpp"
#include "cli/output/table.hpp"
#include "cli/output/timestamp.hpp"
#include "cli/settings/format.hpp"
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

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

// What runs, and why where somebody told.
std::string what_text(const Record& record) {
  std::string text = record.command.value_or("");
  if (!record.reason || record.reason->empty()) return text;
  return text + (text.empty() ? "(" : " (") + *record.reason + ")";
}

// What a table says in front of the command, where the state alone does not tell.
std::string remark(const lock::Holder& holder) {
  if (holder.state == lock::HolderState::cooldown) {
    return "[free in " + util::format_duration(holder.left) + "] ";
  }
  return holder.responsive == lock::Responsive::no ? "[not renewed] " : "";
}

std::string held_text(const lock::Holder& holder) {
  return holder.since.ms == 0 ? "-" : util::format_duration(holder.held);
}

// Elsewhere than in the native format nobody knows who waits.
std::string waiting_count(const LockView& lock) {
  bool native = lock.format == redis::Format::native;
  return native ? std::to_string(lock.snapshot->live_waiters) : "-";
}

// The first holder stands for all; `+2` says how many more there are.
void add_lock(Table& table, const LockView& lock) {
  if (!lock.snapshot) {
    table.add({lock.name, "error", "-", "-", "-", "-", lock.snapshot.error().text});
    return;
  }
  const lock::Snapshot& snapshot = *lock.snapshot;
  std::string state(to_string(state_of(snapshot)));
  std::string waiting = waiting_count(lock);
  if (snapshot.holders.empty()) {
    table.add({lock.name, state, "-", "-", "-", waiting, ""});
    return;
  }
  const lock::Holder& holder = snapshot.holders.front();
  Record record = decode_record(holder.record);
  if (record.ending && state_of(snapshot) == LockState::held) state = "ending";
  std::string who = or_dash(who_text(record));
  if (snapshot.holders.size() > 1) who += " +" + std::to_string(snapshot.holders.size() - 1);
  table.add({lock.name, state, who, pid_text(record), held_text(holder), waiting,
             remark(holder) + what_text(record)});
}

std::string holder_text(const Record& record) {
  if (who_text(record).empty() && !record.pid) return "unknown";
  return or_dash(who_text(record)) + ", pid " + pid_text(record);
}

// What the holder itself tolerates: with differing limits the least one rules.
std::string own_mode(lock::Limit limit) {
  if (limit.mode() == lock::Mode::exclusive) return {};
  std::string text(to_string(limit.mode()));
  if (limit.mode() == lock::Mode::shared) return text;
  return text + ", at most " + std::to_string(limit.value()) + " together";
}

// `[2 of 5] ` where not all servers know of it.
std::string some_of(uint64_t here, uint64_t servers) {
  if (here >= servers) return {};
  return "[" + std::to_string(here) + " of " + std::to_string(servers) + "] ";
}

std::string lease_text(const lock::Holder& holder) {
  const std::string left = util::format_duration(holder.left);
  if (holder.left < Millis(0)) return "never ends by itself";
  if (holder.responsive == lock::Responsive::no) {
    return "ends in " + left + "; nothing renews it but rlock renew";
  }
  return "ends in " + left + " unless renewed";
}

// How the servers of a quorum differ about a lock.
std::string quorum_details(const lock::Snapshot& snapshot, size_t width) {
  std::string text;
  auto add = [&](const std::string& line) { text += "  " + clipped_line(line, width - 2); };
  const std::string of = " of " + std::to_string(snapshot.servers);
  for (const lock::Holder& holder : snapshot.holders) {
    add("servers  its lease stands at " + std::to_string(holder.servers) + of);
  }
  for (const lock::Holder& holder : snapshot.partial) {
    Record record = decode_record(holder.record);
    add("partial  " + or_dash(who_text(record)) + ", pid " + pid_text(record) + ": at " +
        std::to_string(holder.servers) + of + " servers, too few to hold it");
  }
  for (const lock::SilentServer& server : snapshot.silent) add("silent   " + server.why);
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

}  // namespace

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
  std::string since = rfc3339(holder.since);
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
  add("mode     ", own_mode(holder.limit));
  add("owner    ", holder.owner);
  add("token    ", holder.token.value == 0 ? "" : std::to_string(holder.token.value));
  if (record.ending) add("state    ", "ending, " + *record.ending);
  if (holder.state == lock::HolderState::revoked) {
    add("state    ",
        holder.responsive == lock::Responsive::run
            ? "broken by an operator; its holder is asked to end"
            : "broken by an operator; it waits for its process or the end of the lease");
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
  std::string text = util::character_count(name) + state.size() + 2 <= width
                         ? name + ": " + state + "\n"
                         : name + "\n  " + clipped_line(state, width - 2);
  for (size_t i = 0; i < snapshot.holders.size(); ++i) {
    if (i > 0) text += "\n";
    text += holder_details(snapshot.holders[i], width);
  }
  if (snapshot.servers > 1) text += quorum_details(snapshot, width);
  return text;
}

std::string queue_table(const std::vector<lock::Waiter>& waiters, size_t width, uint64_t servers) {
  Table table({{"#", 6}, {"OWNER", 32}, {"WHO", 20}, {"WAITING", 7}, {"COMMAND", 0}});
  for (size_t i = 0; i < waiters.size(); ++i) {
    Record record = decode_record(waiters[i].record);
    table.add({std::to_string(i + 1), waiters[i].owner, or_dash(who_text(record)),
               util::format_duration(waiters[i].waiting),
               some_of(waiters[i].servers, servers) + what_text(record)});
  }
  return table.text(width);
}

}  // namespace rlock::cli
