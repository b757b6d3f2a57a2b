#include "cli/output/messages.hpp"

#include <chrono>
#include <ctime>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using lock::LostHow;

std::string clipped(std::string_view text, size_t width) {
  return util::shortened(util::printable(text), width);
}

Zone& shown_zone() {
  static Zone zone = Zone::utc;
  return zone;
}

// `alice@web1`; the owner id if the record has neither user nor host.
std::string holder_name(const Record& record, const std::string& owner) {
  std::string who = util::shortened(who_text(record), 60);
  if (!who.empty()) return who;
  return owner.empty() ? "a client without an owner id" : "owner " + clipped(owner, 40);
}

std::string pid_phrase(const Record& record) {
  return record.pid ? util::format(" (pid {})", pid_and_place(record)) : "";
}

std::string time_phrase(const lock::Holder& holder, TimeStyle style) {
  if (holder.since.ms == 0) return {};
  const std::string text = " for " + util::format_duration(holder.held);
  const std::string since = time_text(holder.since);
  return style == TimeStyle::duration || since.empty() ? text : text + ", since " + since;
}

// `, usually 4m, about 2m left`, for a run that will end by itself. The remaining time is correct
// only in a line that is kept up to date.
std::string usual_phrase(const lock::Holder& holder, TimeStyle style, std::optional<Millis> usual) {
  const bool runs = holder.state == lock::HolderState::held && holder.since.ms != 0;
  if (!usual || !runs) return {};
  const std::string text = ", usually " + util::format_rough_duration(*usual);
  if (style == TimeStyle::start || holder.held >= *usual) return text;
  return util::format("{}, about {} left", text, util::format_rough_duration(*usual - holder.held));
}

// When the lock of a holder that has died is free, at the latest.
std::string end_phrase(const lock::Holder& holder) {
  if (!holder.left) return "its lease does not expire";
  if (holder.entries > 1) {
    return util::format("its lease expires in {} unless a nested run renews it",
                        util::format_duration(*holder.left));
  }
  if (holder.limit != lock::Limit::exclusive()) {
    return "its lease expires in " + util::format_duration(*holder.left);
  }
  return "the lock is free in " +
         util::format_duration(std::max(*holder.left, holder.min_hold - holder.held));
}

// `, with the KEY "v17"`, `, for day 2026-11-21`; empty for --once-within, which has no name.
std::string work_phrase(const lock::Once& once) {
  if (once.kind == lock::OnceKind::within) return {};
  if (once.kind == lock::OnceKind::key) return ", with the KEY " + in_quotes(once.key);
  std::string period = once.key;
  if (const size_t colon = period.find(':'); colon != period.npos) period[colon] = ' ';
  return ", for " + util::printable(period);
}

}  // namespace

void show_times_in(Zone zone) {
  shown_zone() = zone;
}

std::string time_text(lock::ServerTime time) {
  const std::string text = util::format_utc(time.ms / 1000);
  return text.empty() || shown_zone() == Zone::utc ? text : local_time(time.ms / 1000);
}

std::string rfc3339(lock::ServerTime time) {
  std::string text = util::format_utc(time.ms / 1000);
  if (text.empty()) return text;
  text.pop_back();
  return util::format("{}.{:03}Z", text, time.ms % 1000);
}

std::string age_and_time(lock::ServerTime time, lock::ServerTime now) {
  const std::string at = time_text(time);
  if (at.empty()) return at;
  if (now.ms <= 0) return "at " + at;
  const Millis age{now.ms - time.ms};
  const bool recent = age < std::chrono::seconds(1);  // or this host's clock is behind the server's
  return util::format("{}, at {}", recent ? "just now" : util::format_rough_duration(age) + " ago",
                      at);
}

lock::ServerTime wall_clock() {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Millis>(since_1970).count()};
}

std::string in_quotes(std::string_view text) {
  return util::format("\"{}\"", util::printable(text));
}

std::string naming(std::string_view name, const std::string& text) {
  const std::string quoted = in_quotes(name);
  return text.find(quoted) == text.npos ? util::format("{}: {}", quoted, text) : text;
}

std::string typed_name(std::string_view name) {
  return (name.starts_with('-') ? "-- " : "") + util::printable(util::shell_quoted(name));
}

std::string process_phrase(const Record& record, const std::string& owner) {
  return holder_name(record, owner) + pid_phrase(record);
}

std::string by_phrase(std::string_view record) {
  const std::string who = who_text(decode_record(record));
  return who.empty() ? "" : ", by " + who;
}

std::string in_seconds(Millis time) {
  return util::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
}

std::string closure_phrase(const lock::Closure& closure) {
  const Record by = decode_record(closure.record);
  const std::string who = who_text(by);
  return util::format("closed until {}{}{}", time_text(closure.until),
                      who.empty() ? "" : " by " + util::shortened(who, 60),
                      by.reason && !by.reason->empty() ? ": " + clipped(*by.reason, 200) : "");
}

std::string holder_phrase(const lock::Holder& seen, TimeStyle style, std::optional<Millis> usual,
                          Millis age) {
  const auto holder = std::get<lock::Holder>(aged(seen, age));
  if (holder.state == lock::HolderState::cooldown) {
    return "in its cool-down (--min-hold) for another " +
           util::format_duration(holder.left.value_or(Millis(0)));
  }
  Record record = decode_record(holder.record);
  std::string text = util::format("held by {}{}{}", process_phrase(record, holder.owner),
                                  time_phrase(holder, style), usual_phrase(holder, style, usual));
  if (record.command) text += ": " + clipped(*record.command, 200);
  if (record.reason) text += util::format(" (reason: {})", clipped(*record.reason, 200));
  if (record.ending) text += util::format(" (ending, {})", clipped(*record.ending, 200));
  if (holder.state == lock::HolderState::revoked) text += " (broken by an operator, ending)";
  if (holder.died) return util::format("{}; {}", text, life_phrase(holder));
  if (life_of(seen) == Life::overdue) text += util::format(" ({})", life_phrase(seen));
  return text;
}

std::string death_phrase(const lock::Holder& holder) {
  const std::string pid = std::to_string(decode_record(holder.record).pid.value_or(0));
  return holder.responsive == lock::Responsive::run
             ? util::format("rlock (pid {}) has died; processes of its command may still run", pid)
             : util::format("process {} and the rlock that renewed its lease have exited", pid);
}

std::string life_phrase(const lock::Holder& holder) {
  const Life life = life_of(holder);
  if (life == Life::died) return util::format("{}; {}", death_phrase(holder), end_phrase(holder));
  if (life == Life::overdue) {
    return util::format("renewal overdue by {}: may be dead",
                        util::format_duration(*overdue(holder)));
  }
  if (life == Life::unknown) return {};
  return util::format("alive, renewed {} ago",
                      util::format_duration(std::max(Millis(0), holder.ttl - *holder.left)));
}

std::string brief_holder_phrase(const lock::Holder& holder, std::optional<Millis> usual) {
  if (holder.died) return life_phrase(holder);
  const std::string expected = usual_phrase(holder, TimeStyle::duration, usual);
  return expected.empty() ? expected
                          : holder_name(decode_record(holder.record), holder.owner) + expected;
}

std::string needs_phrase(const lock::NewerRules& needs) {
  return util::format("rlock {} or later ({})", clipped(needs.version, 20),
                      clipped(util::joined(needs.words, ", "), 200));
}

std::string obstacle_phrase(const std::optional<lock::Obstacle>& obstacle, TimeStyle style,
                            std::optional<Millis> usual, Millis age) {
  if (!obstacle) return "held by another client";
  const lock::Holder* holder = lock::holder_in(obstacle);
  return holder != nullptr ? holder_phrase(*holder, style, usual, age)
                           : closure_phrase(std::get<lock::Closure>(*obstacle));
}

std::string taker_phrase(const lock::Holder& holder) {
  const Record record = decode_record(holder.record);
  const std::string name = holder_name(record, holder.owner);
  if (who_text(record).empty()) return "by " + name;
  const std::string since = time_text(holder.since);
  return util::format("by {} (owner {}{}{})", name, clipped(holder.owner, 40),
                      since.empty() ? "" : ", since ", since);
}

std::string since_phrase(lock::LaterHolder since) {
  switch (since) {
    case lock::LaterHolder::nobody:
      return " (no other client has held it since)";
    case lock::LaterHolder::another:
      return " (another client has held it since)";
    case lock::LaterHolder::unknown:
      break;
  }
  return {};
}

std::string done_phrase(const lock::AlreadyDone& done, const std::optional<lock::Once>& once,
                        lock::ServerTime now) {
  const Record record = decode_record(done.record);
  std::string text = "by " + (record.host ? clipped(*record.host, 60) : "another run");
  const std::string when = age_and_time(done.at, now);
  if (!when.empty()) {
    text += util::format(" {} (took {})", when, util::format_duration(done.took));
  }
  text += once ? work_phrase(*once) : "";
  return record.command ? text + ": " + clipped(*record.command, 200) : text;
}

std::string zone_warning(const lock::AlreadyDone& done, const std::optional<lock::Once>& once) {
  const Record record = decode_record(done.record);
  const auto there = record.asked ? parse_local_time(*record.asked) : std::nullopt;
  if (!once || once->kind != lock::OnceKind::period || !there) return {};
  tm here{};
  tzset();
  if (localtime_r(&there->seconds, &here) == nullptr || here.tm_gmtoff == there->offset) return {};
  return util::format(
      "; warning: {} has another time zone (UTC{}, here UTC{}), so the hosts do not mean the same "
      "{}: give all of them one time zone",
      record.host ? clipped(*record.host, 60) : "that host", offset_text(there->offset),
      offset_text(here.tm_gmtoff), once->key.substr(0, once->key.find(':')));
}

std::string newer_phrase(const lock::Superseded& newer, lock::ServerTime now) {
  const Record record = decode_record(newer.record);
  const std::string who = util::shortened(who_text(record), 60);
  const auto number = newer.number ? newer.number : record.supersede;
  const std::string granted = age_and_time(newer.granted, now), waits = time_text(newer.since);
  return util::format("{}{}{}{}", number ? util::format("number {} of ", *number) : "",
                      who.empty() ? "a newer run" : who, pid_phrase(record),
                      !granted.empty() ? ", which was granted the lock " + granted
                      : !waits.empty() ? ", which has waited since " + waits
                                       : "");
}

std::string lost_phrase(const lock::Lost& lost) {
  const std::string taker = lost.by ? taker_phrase(*lost.by) : "by another client";
  const std::string by = note_text(lost.note);
  const std::string then = lost.data_lost ? "the server lost its data; then " : "";
  switch (lost.how) {
    case LostHow::deleted:
      if (lost.data_lost) return "the server lost its data" + since_phrase(lost.later_holder);
      return "its keys were deleted on the server" + since_phrase(lost.later_holder);
    case LostHow::full:
      if (!lost.by || lost.by->limit != lock::Limit::exclusive()) {
        return util::format("{}all its slots were taken, one of them {}", then, taker);
      }
      [[fallthrough]];
    case LostHow::taken:
      return util::format("{}it was taken {}", then, taker);
    case LostHow::expired:
      return "the lease expired" + since_phrase(lost.later_holder);
    case LostHow::unissued:
      return "the server lost its data, and its clock is behind the token of this lock: the lease "
             "was not restored";
    case LostHow::released:
      return "another process released it with this owner id: a `rlock release`, or rlock when the "
             "process of --renew-while exited";
    case LostHow::forced:
      return util::format("it was broken {}", by.empty() ? "by an operator" : by);
    case LostHow::gone:
      return "its key is gone from the server: it expired, was deleted or was lost";
  }
  return "the lease expired";
}

}  // namespace rlock::cli
