#include "cli/output/json.hpp"

#include <cstdint>

#include <nlohmann/json.hpp>

#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

std::string document(const Json& content) {
  Json json{{"schema", kSchema}};
  json.update(content);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
Json null_if(bool unknown, const T& value) {
  return unknown ? Json() : Json(value);
}

Json time_or_null(lock::ServerTime time) {
  const std::string text = rfc3339(time);
  return null_if(text.empty(), text);
}

// Readers lose digits beyond 2^53, and rlock's scripts issue no such token.
Json token_or_null(lock::Token token) {
  constexpr uint64_t kExact = uint64_t{1} << 53;
  return null_if(token.value == 0 || token.value >= kExact, token.value);
}

// A cool-down is stored under the owner id with a `~` in front.
std::string owner_without_mark(const lock::Holder& holder) {
  return holder.owner.starts_with('~') ? holder.owner.substr(1) : holder.owner;
}

Json slots_json(const std::optional<lock::Limit>& limit) {
  if (!limit || limit->mode() == lock::Mode::shared) return {};
  return limit->value();
}

// Whether the holder renews the lease by itself; null where that is unknown, and for a cool-down.
Json renewed_json(const lock::Holder& holder) {
  if (holder.since.ms == 0 || holder.state == lock::HolderState::cooldown) return {};
  return holder.responsive != lock::Responsive::no && decode_record(holder.record).renews;
}

// Null: the lease has no end, the format does not store it, or it is a cool-down.
Json holder_json(const lock::Holder& holder) {
  const Record record = decode_record(holder.record);
  const auto late = overdue(holder);
  return {{"owner", owner_without_mark(holder)},
          {"token", token_or_null(holder.token)},
          {"host", or_null(record.host)},
          {"pid", or_null(record.pid)},
          {"user", or_null(record.user)},
          {"command", or_null(record.command)},
          {"reason", or_null(record.reason)},
          {"ending", or_null(record.ending)},
          {"traceparent", or_null(record.traceparent)},
          {"since", time_or_null(holder.since)},
          {"held_ms", null_if(holder.since.ms == 0, holder.held.count())},
          {"left_ms", null_if(holder.left < Millis(0), holder.left.count())},
          {"ttl_ms", null_if(holder.ttl <= Millis(0), holder.ttl.count())},
          {"entries", holder.entries},
          {"mode", to_string(holder.limit.mode())},
          {"slots", slots_json(holder.limit)},
          {"slot", null_if(holder.slot == 0, holder.slot)},
          {"renewed", renewed_json(holder)},
          {"overdue_ms", null_if(!late, late.value_or(Millis(0)).count())}};
}

Json holders_json(const std::vector<lock::Holder>& holders) {
  Json out = Json::array();
  for (const lock::Holder& holder : holders) out.push_back(holder_json(holder));
  return out;
}

// With the number of servers that have each lease.
Json quorum_holders_json(const std::vector<lock::Holder>& holders) {
  Json out = holders_json(holders);
  for (size_t i = 0; i < holders.size(); ++i) out[i]["servers"] = holders[i].servers;
  return out;
}

Json quorum_json(const lock::Snapshot& snapshot) {
  Json silent = Json::array();
  for (const lock::SilentServer& server : snapshot.silent) {
    silent.push_back({{"server", server.server}, {"error", server.why}});
  }
  return {{"servers", snapshot.servers},
          {"silent", std::move(silent)},
          {"partial", quorum_holders_json(snapshot.partial)}};
}

Json closure_json(const lock::Holder& closure) {
  const Record by = decode_record(closure.record);
  return {{"until", time_or_null(end_of_closure(closure))},
          {"left_ms", closure.left.count()},
          {"by", who_text(by)},
          {"reason", or_null(by.reason)},
          {"id", closure.owner}};
}

Json failed_lock_json(const LockView& lock) {
  return {{"name", lock.name},
          {"state", Json()},
          {"mode", Json()},
          {"slots", Json()},
          {"holders", Json::array()},
          {"waiters", Json()},
          {"format", to_string(lock.format)},
          {"error", lock.snapshot.error().text}};
}

Json last_success_json(const std::optional<lock::Success>& last) {
  if (!last) return {};
  Record record = decode_record(last->record);
  return {{"at", time_or_null(last->at)},    {"took_ms", last->took.count()},
          {"host", or_null(record.host)},    {"pid", or_null(record.pid)},
          {"user", or_null(record.user)},    {"command", or_null(record.command)},
          {"reason", or_null(record.reason)}};
}

Json last_failure_json(const lock::Snapshot& snapshot) {
  if (!snapshot.last_failure) return {};
  const lock::Failure& last = *snapshot.last_failure;
  Record record = decode_record(last.record);
  return {{"at", time_or_null(last.at)},     {"took_ms", last.took.count()},
          {"result", last.result},           {"in_a_row", snapshot.failures_in_a_row},
          {"host", or_null(record.host)},    {"pid", or_null(record.pid)},
          {"user", or_null(record.user)},    {"command", or_null(record.command)},
          {"reason", or_null(record.reason)}};
}

Json counters_json(const lock::Counters& counters) {
  return {{"runs", counters.runs},
          {"failures", counters.failures},
          {"losses", counters.losses},
          {"skips", counters.skips},
          {"done", counters.done}};
}

Json lock_json(const LockView& lock) {
  if (!lock.snapshot) return failed_lock_json(lock);
  const lock::Snapshot& snapshot = *lock.snapshot;
  auto limit = limit_of(snapshot);
  bool native = lock.format == redis::Format::native;  // only this format has a queue
  Json json{{"name", lock.name},
            {"state", to_string(state_of(snapshot))},
            {"mode", limit ? Json(to_string(limit->mode())) : Json()},
            {"slots", slots_json(limit)},
            {"holders", holders_json(snapshot.holders)},
            {"waiters", native ? Json(snapshot.live_waiters) : Json()},
            {"format", to_string(lock.format)},
            {"known", is_known(lock)}};
  if (snapshot.closure) {
    json["closed"] = closure_json(*snapshot.closure);
    if (snapshot.servers > 1) json["closed"]["servers"] = snapshot.closure->servers;
  }
  if (native && snapshot.known) {
    json["last_success"] = last_success_json(snapshot.last_success);
    json["last_failure"] = last_failure_json(snapshot);
    json["counters"] = counters_json(snapshot.counters);
  }
  if (!lock.deadlock.empty()) json["deadlock"] = lock.deadlock;
  if (snapshot.servers > 1) {
    json["holders"] = quorum_holders_json(snapshot.holders);
    json["quorum"] = quorum_json(snapshot);
  }
  return json;
}

Json waiter_json(const lock::Waiter& waiter, size_t position) {
  Record record = decode_record(waiter.record);
  return {{"position", position},
          {"owner", waiter.owner},
          {"host", or_null(record.host)},
          {"pid", or_null(record.pid)},
          {"user", or_null(record.user)},
          {"command", or_null(record.command)},
          {"reason", or_null(record.reason)},
          {"traceparent", or_null(record.traceparent)},
          {"since", time_or_null(waiter.since)},
          {"waiting_ms", waiter.waiting.count()},
          {"mode", to_string(waiter.limit.mode())},
          {"urgent_ms", record.urgent.count()},
          {"moved", or_null(record.moved)}};
}

Json waiters_json(const QueueView& queue, uint64_t servers) {
  Json list = Json::array();
  for (const lock::Waiter& waiter : queue.waiters) {
    const size_t i = list.size();
    list.push_back(waiter_json(waiter, i + 1));
    list.back()["starts_in_ms"] = i < queue.starts.size() ? Json(queue.starts[i].count()) : Json();
    if (servers > 1) list.back()["servers"] = waiter.servers;
  }
  return list;
}

// The object is present even without skips: {"count":0, …}.
Json skips_json(const std::optional<lock::Skips>& skips) {
  const lock::Skips none{};
  const lock::Skips& shown = skips ? *skips : none;
  Record last = decode_record(shown.record);
  return {{"count", shown.count},
          {"done", shown.done},
          {"superseded", shown.superseded},
          {"first", time_or_null(shown.first)},
          {"last", time_or_null(shown.last)},
          {"host", or_null(last.host)},
          {"user", or_null(last.user)}};
}

// Who broke the lock, or the cool-down after the run, and why.
Json forced_json(const std::string& note) {
  if (note.empty()) return {};
  Record by = decode_record(note);
  return {{"host", or_null(by.host)},
          {"user", or_null(by.user)},
          {"reason", or_null(by.reason)},
          {"at", or_null(by.at)}};
}

// Without an end where it was opened.
Json closing_json(const lock::Closing& closing) {
  const Record by = decode_record(closing.record);
  return {{"at", time_or_null(closing.at)},
          {"until", time_or_null(closing.until)},
          {"host", or_null(by.host)},
          {"user", or_null(by.user)},
          {"reason", or_null(by.reason)}};
}

Json run_json(const lock::Run& run, const std::optional<lock::Skips>& skips) {
  Record record = decode_record(run.record);
  RunEnd end = end_of(run);
  return {{"start", time_or_null(run.since)},
          {"end", time_or_null(run.until)},
          {"exit_code", or_null(end.exit_code)},
          {"signal", or_null(end.signal)},
          {"how", end.how},
          {"last_renewal", time_or_null(run.renewed)},
          {"host", or_null(record.host)},
          {"user", or_null(record.user)},
          {"pid", or_null(record.pid)},
          {"command", or_null(record.command)},
          {"reason", or_null(record.reason)},
          {"traceparent", or_null(record.traceparent)},
          {"token", token_or_null(run.token)},
          {"skips", skips_json(skips)},
          {"urgent_ms", record.urgent.count()},
          {"moved", or_null(record.moved)},
          {"forced", forced_json(run.note)}};
}

std::string_view json_kind(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::config:
      return "usage";
    case ErrorKind::unavailable:
      return "unreachable";
    case ErrorKind::wrong_type:
    case ErrorKind::denied:
      return "refused";
    case ErrorKind::busy:
      return "busy";
    case ErrorKind::lost:
      return "lost";
    case ErrorKind::internal:
    case ErrorKind::system:
      return "internal";
  }
  return "internal";
}

}  // namespace

std::string status_json(const std::vector<LockView>& locks, std::optional<uint64_t> free) {
  Json list = Json::array();
  for (const LockView& lock : locks) list.push_back(lock_json(lock));
  Json json{{"locks", std::move(list)}};
  if (free) json["free"] = *free;
  return document(json);
}

std::string queue_json(const QueueView& queue, const std::optional<QueueChange>& change,
                       uint64_t servers) {
  Json json{{"name", queue.name}, {"waiters", waiters_json(queue, servers)}};
  if (change) json[change->done] = or_null(change->owner);
  return document(json);
}

std::string queue_json(const std::vector<QueueView>& queues, uint64_t servers) {
  Json all = Json::array();
  for (const QueueView& queue : queues) {
    for (Json& waiter : waiters_json(queue, servers)) {
      Json row{{"name", queue.name}};
      row.update(waiter);
      all.push_back(std::move(row));
    }
  }
  return document({{"name", Json()}, {"waiters", std::move(all)}});
}

std::string force_unlock_json(const lock::LockName& name, const lock::Forced& forced) {
  return document({{"name", name.text()},
                   {"released", holders_json(forced.broken)},
                   {"next", or_null(forced.next)}});
}

std::string acquire_json(const lock::AcquireCall& claim, lock::Token token, uint64_t slot,
                         Millis left, lock::ServerTime acquired_at) {
  return document({{"name", claim.name.text()},
                   {"owner", claim.owner.text()},
                   {"token", token_or_null(token)},
                   {"slot", null_if(slot == 0, slot)},
                   {"left_ms", left.count()},
                   {"ttl_ms", claim.ttl.count()},
                   {"acquired_at", time_or_null(acquired_at)}});
}

std::string forget_json(const lock::ForgetCall& call, const lock::Forgotten& forgotten) {
  return document({{"name", call.name.text()},
                   {"key", or_null(call.key)},
                   {"forgotten", forgotten.marks},
                   {"failures", forgotten.failures},
                   {"numbers", forgotten.numbers}});
}

std::string history_json(const lock::LockName& name, const History& history) {
  Json runs = Json::array(), closings = Json::array();
  std::optional<lock::Skips> since;
  for (const HistoryLine& line : history) {
    if (line.closing) {
      closings.push_back(closing_json(*line.closing));
    } else if (line.run) {
      runs.push_back(run_json(*line.run, line.skips));
    } else {
      since = line.skips;
    }
  }
  return document({{"name", name.text()},
                   {"runs", std::move(runs)},
                   {"skips", skips_json(since)},
                   {"closings", std::move(closings)}});
}

std::string history_json(const History& history) {
  Json runs = Json::array(), since = Json::array(), closings = Json::array();
  for (const HistoryLine& line : history) {
    Json row{{"name", line.name}};
    row.update(line.closing ? closing_json(*line.closing)
               : line.run   ? run_json(*line.run, line.skips)
                            : skips_json(line.skips));
    (line.closing ? closings : line.run ? runs : since).push_back(std::move(row));
  }
  return document({{"name", Json()},
                   {"runs", std::move(runs)},
                   {"skipped_since", std::move(since)},
                   {"closings", std::move(closings)}});
}

std::string change_json(const Change& change, lock::ServerTime time) {
  Json fields = Json::array();
  for (std::string_view field : change.fields) fields.push_back(field);
  return document(
      {{"change", util::to_string<ChangeKind::gone>(change.kind, {"seen", "changed", "gone"})},
       {"time", time_or_null(time)},
       {"name", change.name},
       {"fields", std::move(fields)},
       {"lock", change.lock ? lock_json(*change.lock) : Json()}});
}

std::string server_change_json(const std::string& server, const std::optional<Error>& why,
                               lock::ServerTime time) {
  Json json{{"change", why ? "server-lost" : "server-back"},
            {"time", time_or_null(time)},
            {"server", server}};
  if (why) json["message"] = why->text;
  return document(json);
}

std::string error_json(const Error& error, const Subject& subject, const ErrorDetails& details) {
  Json inner{{"code", details.code.value_or(exit_code(error.kind))},
             {"kind", details.kind.empty() ? json_kind(error.kind) : details.kind},
             {"message", error.text}};
  if (subject.lock) inner["lock"] = *subject.lock;
  if (subject.owner) inner["owner"] = *subject.owner;
  if (details.holder) {
    const bool closed = details.holder->state == lock::HolderState::closed;
    inner[closed ? "closed" : "holder"] =
        closed ? closure_json(*details.holder) : holder_json(*details.holder);
  }
  return document({{"error", std::move(inner)}});
}

std::string event_json(const LoggedEvent& event) {
  Json json{{"event", event.event}, {"time", time_or_null(event.time)}, {"t_ns", event.t_ns}};
  json["host"] = or_null(event.run.host);
  json["pid"] = or_null(event.run.pid);
  json["user"] = or_null(event.run.user);
  json["command"] = or_null(event.run.command);
  json["reason"] = or_null(event.run.reason);
  json["server"] = event.server;
  json["name"] = event.name;
  json["owner"] = event.owner;
  json["token"] = token_or_null(event.token);
  if (event.waited) json["waited_ms"] = event.waited->count();
  if (event.held) json["held_ms"] = event.held->count();
  if (event.exit_code) json["exit_code"] = *event.exit_code;
  if (event.signal) json["signal"] = *event.signal;
  if (event.run.traceparent) json["traceparent"] = *event.run.traceparent;
  if (!event.detail.empty()) json["detail"] = event.detail;
  return document(json);
}

}  // namespace rlock::cli
