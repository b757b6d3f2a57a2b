#include "cli/watch/frame.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "cli/output/record.hpp"
#include "cli/output/render.hpp"
#include "cli/output/table.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Cells = std::vector<std::string>;
using Lines = std::vector<Line>;

constexpr size_t kHeaderRows = 2;  // the summary and the titles
constexpr size_t kFooterRows = 1;

// `850ms` changes too fast to be read.
std::string seconds(Millis time) {
  constexpr Millis kSecond{1000};
  return time < kSecond ? "0s" : util::format_duration(time / kSecond * kSecond);
}

Millis since(TimePoint then, TimePoint now) {
  return std::chrono::duration_cast<Millis>(now - then);
}

const lock::Holder* first_holder(const WatchedLock& watched) {
  const auto& lock = watched.lock;
  const bool held = lock && lock->snapshot && !lock->snapshot->holders.empty();
  return held ? &lock->snapshot->holders.front() : nullptr;
}

std::string state_text(const WatchedLock& watched) {
  const LockView& lock = *watched.lock;
  if (!lock.snapshot) return "error";
  if (!lock.snapshot->silent.empty() && lock.snapshot->holders.empty()) return "unsure";
  return std::string(to_string(state_of(*lock.snapshot)));
}

std::string holder_name(const WatchedLock& watched, const lock::Holder& holder) {
  std::string who = who_text(decode_record(holder.record));
  if (who.empty()) who = "?";
  const uint64_t all = std::max<uint64_t>(1, watched.lock->snapshot->live_holders);
  return all > 1 ? who + " +" + std::to_string(all - 1) : who;
}

// `~2m`: about as long as its runs usually take; `late 30s` beyond that; `2m` for a cool-down,
// whose end is certain.
std::string end_text(const WatchedLock& watched, const lock::Holder& holder) {
  if (holder.state == lock::HolderState::cooldown) return seconds(holder.left);
  if (!watched.usual || holder.since.ms == 0) return "-";
  const Millis left = *watched.usual - holder.held;
  return left >= Millis(0) ? "~" + seconds(left) : "late " + seconds(-left);
}

std::string command_of(const lock::Holder& holder) {
  return command_and_reason(decode_record(holder.record));
}

Cells cells_of(const WatchedLock& watched, TimePoint now) {
  const std::string age = seconds(since(watched.at, now));
  const LockView& lock = *watched.lock;
  if (!lock.snapshot) {
    return {lock.name, "error", "-", "-", "-", "-", age, lock.snapshot.error().text};
  }
  const bool native = lock.format == redis::Format::native;
  const std::string waiting = native ? std::to_string(lock.snapshot->live_waiters) : "-";
  const lock::Holder* holder = first_holder(watched);
  if (holder == nullptr && lock.snapshot->closure) {
    const lock::Holder& closure = *lock.snapshot->closure;
    return {lock.name,
            state_text(watched),
            who_text(decode_record(closure.record)),
            seconds(closure.held),
            seconds(closure.left),
            waiting,
            age,
            command_of(closure)};
  }
  if (holder == nullptr) return {lock.name, state_text(watched), "-", "-", "-", waiting, age, ""};
  const std::string held = holder->since.ms == 0 ? "-" : seconds(holder->held);
  return {lock.name, state_text(watched),        holder_name(watched, *holder),
          held,      end_text(watched, *holder), waiting,
          age,       command_of(*holder)};
}

LineStyle style_of(const WatchedLock& watched, const FrameInput& input) {
  if (watched.name.text() == input.cursor.selected) return LineStyle::selected;
  const std::string state = state_text(watched);
  if (state == "error" || state == "revoked") return LineStyle::alarm;
  return state == "free" || input.state.outage ? LineStyle::faint : LineStyle::plain;
}

std::string counted(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

Line summary(const FrameInput& input, const std::vector<const WatchedLock*>& locks) {
  size_t waiting = 0;
  for (const WatchedLock* watched : locks) {
    if (watched->lock->snapshot) waiting += watched->lock->snapshot->live_waiters;
  }
  return {counted(locks.size(), "lock", "locks") + ", " + std::to_string(waiting) + " waiting  " +
              util::printable(input.server),
          LineStyle::title};
}

std::string reason_of(const std::vector<lock::SilentServer>& silent) {
  if (silent.empty()) return {};
  std::string text = counted(silent.size(), "server does", "servers do") + " not answer";
  for (const lock::SilentServer& server : silent) {
    text += (&server == &silent.front() ? ": " : "; ") + server.why;
  }
  return text;
}

// What is wrong with the server; empty if nothing is.
std::string problem_of(const ServerState& state, TimePoint now) {
  constexpr Millis kUsual{2000};  // longer than from one answer to the next
  const auto& outage = state.outage;
  const TimePoint answered = outage ? outage->since : state.last_answer.value_or(now);
  const std::string silence = "no answer for " + seconds(since(answered, now));
  if (!outage) return now - answered >= kUsual ? silence : reason_of(state.silent);
  const Millis pause = since(now, outage->next_try);
  return silence + (pause > Millis(0) ? ", next try in " + seconds(pause) : ", trying again") +
         ": " + outage->why.text;
}

// At least one line, and no more than half of the screen.
Lines server_lines(const FrameInput& input) {
  const std::string text = util::printable(problem_of(input.state, input.now));
  if (text.empty()) {
    return {{input.complete ? "" : "looking for further locks", LineStyle::faint}};
  }
  Lines lines;
  for (std::string& line : util::wrapped(text, input.columns)) {
    if (lines.size() >= std::max<size_t>(1, input.rows / 2)) break;
    lines.push_back({std::move(line), LineStyle::alarm});
  }
  return lines;
}

void add_table(Lines& lines, const FrameInput& input,
               const std::vector<const WatchedLock*>& locks) {
  Table table({{"NAME", 40, 6, 0},
               {"STATE", 8, 4, 5},
               {"HELD BY", 28, 8, 4},
               {"FOR", 7, 5, 2},
               {"ENDS", 10, 4, 6},
               {"WAIT", 5, 4, 3},
               {"AGE", 6, 3, 1},
               {"COMMAND", 400, 8, 7}});
  const size_t first = std::min(input.cursor.top, locks.size());
  const size_t last = std::min(locks.size(), first + page_of(input));
  for (size_t i = first; i < last; ++i) table.add(cells_of(*locks[i], input.now));
  const size_t margin = 2;
  const auto texts = table.screen_lines(input.columns - margin);
  lines.push_back({"  " + texts.front(), LineStyle::title});
  for (size_t i = first; i < last; ++i) {
    const LineStyle style = style_of(*locks[i], input);
    const char* mark = style == LineStyle::selected ? "> " : "  ";
    lines.push_back({mark + texts[i - first + 1], style});
  }
  if (locks.empty() && input.complete) lines.push_back({"  nothing is held or waited for"});
}

void add_text(Lines& lines, const std::string& text) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back({std::move(line)});
}

std::string expectation(const WatchedLock& watched) {
  const lock::Holder* holder = first_holder(watched);
  if (holder == nullptr || !watched.usual || holder->since.ms == 0) return {};
  const Millis left = *watched.usual - holder->held;
  return "  usually  " + seconds(*watched.usual) + ", " +
         (left >= Millis(0) ? "about " + seconds(left) + " left"
                            : seconds(-left) + " longer than usual");
}

Lines queue_lines(const WatchedLock& watched, const FrameInput& input) {
  Lines lines;
  add_text(lines, lock_details(*watched.lock, input.columns));
  if (!watched.lock->snapshot) return lines;
  if (const std::string text = expectation(watched); !text.empty()) lines.push_back({text});
  const lock::Snapshot& snapshot = *watched.lock->snapshot;
  lines.push_back({""});
  if (snapshot.live_waiters == 0) {
    lines.push_back({"nobody is waiting"});
    return lines;
  }
  if (snapshot.waiters.empty()) {
    lines.push_back({"reading the queue of " + std::to_string(snapshot.live_waiters) + " waiting"});
    return lines;
  }
  add_text(lines, queue_table(QueueView{watched.lock->name, snapshot.waiters}, input.columns,
                              snapshot.servers));
  const uint64_t listed = snapshot.waiters.size();
  if (snapshot.live_waiters > listed) {
    lines.push_back({"and " + std::to_string(snapshot.live_waiters - listed) + " more"});
  }
  return lines;
}

void add_queue(Lines& lines, FrameInput& input, const WatchedLock& watched) {
  lines.push_back({"as of " + seconds(since(watched.at, input.now)) + " ago", LineStyle::faint});
  Lines all = queue_lines(watched, input);
  const size_t page = page_of(input);
  const size_t most = all.size() - std::min(all.size(), page);
  input.cursor.opened_top = std::min(input.cursor.opened_top, most);
  auto from = all.begin() + static_cast<std::ptrdiff_t>(input.cursor.opened_top);
  auto to = all.begin() +
            static_cast<std::ptrdiff_t>(std::min(all.size(), input.cursor.opened_top + page));
  std::move(from, to, std::back_inserter(lines));
}

}  // namespace

size_t page_of(const FrameInput& input) {
  const size_t around = kHeaderRows + server_lines(input).size() + kFooterRows;
  return input.rows > around ? input.rows - around : 1;
}

std::vector<std::string> table_names(const WatchModel& model) {
  std::vector<std::string> names;
  for (const WatchedLock* watched : model.shown()) names.push_back(watched->name.text());
  return names;
}

std::vector<Line> frame(FrameInput& input) {
  const auto locks = input.model.shown();
  Lines lines{summary(input, locks)};
  for (Line& line : server_lines(input)) lines.push_back(std::move(line));
  const WatchedLock* opened =
      input.cursor.opened ? input.model.find(*input.cursor.opened) : nullptr;
  if (opened != nullptr && opened->lock) {
    add_queue(lines, input, *opened);
  } else {
    add_table(lines, input, locks);
  }
  const size_t body = input.rows > kFooterRows ? input.rows - kFooterRows : input.rows;
  lines.resize(body);
  if (input.rows > kFooterRows) {
    lines.push_back({opened != nullptr ? "q: quit  enter: back  j/k: scroll"
                                       : "q: quit  enter: queue  j/k: move",
                     LineStyle::faint});
  }
  for (Line& line : lines) line.text = util::shortened(line.text, input.columns);
  return lines;
}

}  // namespace rlock::cli
