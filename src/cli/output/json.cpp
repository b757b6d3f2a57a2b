#include "cli/output/json.hpp"

#include <nlohmann/json.hpp>

#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "util/text.hpp"

// How rlock's types are written. Null: none, or unknown.
namespace nlohmann {

template <class T>
struct adl_serializer<std::optional<T>> {
  template <class Json>
  static void to_json(Json& json, const std::optional<T>& value) {
    json = value ? Json(*value) : Json();
  }
};

template <>
struct adl_serializer<rlock::Millis> {
  template <class Json>
  static void to_json(Json& json, rlock::Millis time) {
    json = time.count();
  }
};

template <>
struct adl_serializer<rlock::lock::ServerTime> {
  template <class Json>
  static void to_json(Json& json, rlock::lock::ServerTime time) {
    const std::string text = rlock::cli::rfc3339(time);
    json = text.empty() ? Json() : Json(text);
  }
};

// Readers lose digits above 2^53, and rlock's scripts issue no such token.
template <>
struct adl_serializer<rlock::lock::Token> {
  template <class Json>
  static void to_json(Json& json, rlock::lock::Token token) {
    constexpr uint64_t kExact = uint64_t{1} << 53;
    json = token.value == 0 || token.value >= kExact ? Json() : Json(token.value);
  }
};

}  // namespace nlohmann

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json null_if(bool unknown, const T& value) {
  return unknown ? Json() : Json(value);
}

Json name_or_null(const std::optional<lock::LockName>& name) {
  return name ? Json(name->text()) : Json();
}

template <class Range, class ToJson>
Json list_of(const Range& range, ToJson to_json) {
  Json list = Json::array();
  for (const auto& one : range) list.push_back(to_json(one));
  return list;
}

// `first`, then the process of `record`, then `rest`.
Json with_process(Json first, const Record& record, const Json& rest = Json::object()) {
  first.update({{"host", record.host},
                {"pid", record.pid},
                {"user", record.user},
                {"command", record.command},
                {"reason", record.reason}});
  first.update(rest);
  return first;
}

// A cool-down is stored under the owner id with a `~` in front.
std::string owner_without_mark(const lock::Holder& holder) {
  return holder.owner.starts_with('~') ? holder.owner.substr(1) : holder.owner;
}

Json slots_json(const std::optional<lock::Limit>& limit) {
  if (!limit || limit->mode() == lock::Mode::shared) return {};
  return limit->value();
}

// Whether the holder renews the lease by itself; null if that is unknown, and for a cool-down.
Json renewed_json(const lock::Holder& holder, const Record& record) {
  if (holder.since.ms == 0 || holder.state == lock::HolderState::cooldown) return {};
  return holder.responsive != lock::Responsive::no && record.renews;
}

Json needs_json(const std::optional<lock::NewerRules>& needs) {
  if (!needs) return {};
  return {{"version", needs->version}, {"rules", needs->words}};
}

// left_ms is null if the lease does not expire; ttl_ms if the format does not store it, or for a
// cool-down.
Json holder_json(const lock::Holder& holder) {
  const Record record = decode_record(holder.record);
  return with_process({{"owner", owner_without_mark(holder)}, {"token", holder.token}}, record,
                      {{"ending", record.ending},
                       {"traceparent", record.traceparent},
                       {"since", holder.since},
                       {"held_ms", null_if(holder.since.ms == 0, holder.held)},
                       {"left_ms", holder.left},
                       {"ttl_ms", null_if(holder.ttl <= Millis(0), holder.ttl)},
                       {"entries", holder.entries},
                       {"mode", to_string(holder.limit.mode())},
                       {"slots", slots_json(holder.limit)},
                       {"slot", null_if(holder.slot == 0, holder.slot)},
                       {"renewed", renewed_json(holder, record)},
                       {"overdue_ms", overdue(holder)},
                       {"needs", needs_json(holder.needs)}});
}

// Adds the number of servers that have the lease.
Json quorum_holder_json(const lock::Holder& holder) {
  Json json = holder_json(holder);
  json["servers"] = holder.servers;
  return json;
}

Json silent_json(const lock::SilentServer& server) {
  return {{"server", server.server}, {"error", server.why}};
}

Json closure_json(const lock::Closure& closure) {
  const Record by = decode_record(closure.record);
  return {{"since", closure.since}, {"until", closure.until}, {"left_ms", closure.left},
          {"host", by.host},        {"user", by.user},        {"reason", by.reason},
          {"id", closure.id}};
}

Json failed_lock_json(const LockView& lock) {
  return {{"name", lock.name},
          {"state", nullptr},
          {"mode", nullptr},
          {"slots", nullptr},
          {"holders", Json::array()},
          {"waiters", nullptr},
          {"format", to_string(lock.format)},
          {"error", lock.snapshot.error().text}};
}

Json last_success_json(const std::optional<lock::Success>& last) {
  if (!last) return {};
  return with_process({{"at", last->at}, {"took_ms", last->took}}, decode_record(last->record));
}

Json last_failure_json(const lock::Snapshot& snapshot) {
  if (!snapshot.last_failure) return {};
  const lock::Failure& last = *snapshot.last_failure;
  const HistoryEnd end = end_of(last);
  return with_process({{"at", last.at},
                       {"took_ms", last.took},
                       {"how", end.how},
                       {"exit_code", end.exit_code},
                       {"signal", end.signal},
                       {"in_a_row", snapshot.failures_in_a_row}},
                      decode_record(last.record));
}

Json newest_json(const std::optional<lock::NewestNumber>& newest) {
  if (!newest) return {};
  return with_process({{"number", newest->number}, {"since", newest->granted}},
                      decode_record(newest->record));
}

Json counters_json(const lock::Counters& counters) {
  return {
      {"runs", counters.runs},   {"failures", counters.failures},     {"losses", counters.losses},
      {"skips", counters.skips}, {"superseded", counters.superseded}, {"done", counters.done}};
}

Json lock_json(const LockView& lock) {
  if (!lock.snapshot) return failed_lock_json(lock);
  const lock::Snapshot& snapshot = *lock.snapshot;
  const auto limit = limit_of(snapshot);
  const bool native = lock.format == redis::Format::native;  // only this format has a queue
  const bool quorum = snapshot.servers > 1;
  Json json{{"name", lock.name},
            {"state", to_string(state_of(snapshot))},
            {"mode", limit ? Json(to_string(limit->mode())) : Json()},
            {"slots", slots_json(limit)},
            {"holders", list_of(snapshot.holders, quorum ? quorum_holder_json : holder_json)},
            {"waiters", null_if(!native, snapshot.live_waiters)},
            {"format", to_string(lock.format)},
            {"known", is_known(lock)}};
  if (snapshot.needs) json["needs"] = needs_json(snapshot.needs);
  if (snapshot.closure) {
    json["closed"] = closure_json(*snapshot.closure);
    if (quorum) json["closed"]["servers"] = snapshot.closure->servers;
  }
  if (native && snapshot.known) {
    json["last_success"] = last_success_json(snapshot.last_success);
    json["last_failure"] = last_failure_json(snapshot);
    json["counters"] = counters_json(snapshot.counters);
    json["newest"] = newest_json(snapshot.newest);
  }
  if (!lock.deadlock.empty()) json["deadlock"] = lock.deadlock;
  if (quorum) {
    json["quorum"] = {{"servers", snapshot.servers},
                      {"silent", list_of(snapshot.silent, silent_json)},
                      {"partial", list_of(snapshot.partial, quorum_holder_json)}};
  }
  return json;
}

Json waiter_json(const QueueView& queue, size_t at) {
  const lock::Waiter& waiter = queue.waiters[at];
  const Record record = decode_record(waiter.record);
  return with_process({{"position", at + 1}, {"owner", waiter.owner}}, record,
                      {{"traceparent", record.traceparent},
                       {"since", waiter.since},
                       {"waiting_ms", waiter.waiting},
                       {"silent_ms", null_if(waiter.silent == Millis(0), waiter.silent)},
                       {"mode", to_string(waiter.limit.mode())},
                       {"supersede", record.supersede},
                       {"urgent_ms", record.urgent},
                       {"moved", record.moved},
                       {"starts_in_ms", at < queue.starts.size() ? Json(queue.starts[at]) : Json()},
                       {"needs", needs_json(waiter.needs)}});
}

// The object is present even without skips: {"count":0, …}.
Json skips_json(const std::optional<lock::Skips>& skips) {
  const lock::Skips shown = skips.value_or(lock::Skips{});
  const Record last = decode_record(shown.record);
  return {{"count", shown.count}, {"done", shown.done},          {"superseded", shown.superseded},
          {"first", shown.first}, {"last", shown.last},          {"host", last.host},
          {"user", last.user},    {"supersede", last.supersede}, {"asked", last.asked}};
}

// The operator who broke the lock, or the cool-down after the run, and the reason.
Json broken_json(const std::string& note) {
  if (note.empty()) return {};
  const Record by = decode_record(note);
  return {{"host", by.host}, {"user", by.user}, {"reason", by.reason}, {"at", by.at}};
}

// Has no end if the row is the opening of a lock.
Json closing_json(const lock::Closing& closing) {
  const Record by = decode_record(closing.record);
  return {{"at", closing.at},
          {"until", closing.until},
          {"host", by.host},
          {"user", by.user},
          {"reason", by.reason}};
}

Json run_json(const lock::Run& run, const std::optional<lock::Skips>& skips) {
  const Record record = decode_record(run.record);
  const HistoryEnd end = end_of(run);
  return {{"since", run.since},
          {"until", run.until},
          {"exit_code", end.exit_code},
          {"signal", end.signal},
          {"how", end.how},
          {"last_renewal", run.renewed},
          {"host", record.host},
          {"user", record.user},
          {"pid", record.pid},
          {"command", record.command},
          {"reason", record.reason},
          {"traceparent", record.traceparent},
          {"token", run.token},
          {"skips", skips_json(skips)},
          {"supersede", record.supersede},
          {"asked", record.asked},
          {"urgent_ms", record.urgent},
          {"moved", record.moved},
          {"broken", broken_json(run.note)}};
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

Json error_object(const Error& error, const Subject& subject, const ErrorDetails& details) {
  Json inner{{"code", details.code.value_or(exit_code(error.kind))},
             {"kind", details.kind.empty() ? json_kind(error.kind) : details.kind},
             {"message", error.text}};
  if (subject.name) inner["name"] = *subject.name;
  if (subject.owner) inner["owner"] = *subject.owner;
  if (const lock::Holder* holder = lock::holder_in(details.obstacle)) {
    inner["holder"] = holder_json(*holder);
  } else if (details.obstacle) {
    inner["closed"] = closure_json(std::get<lock::Closure>(*details.obstacle));
  }
  return inner;
}

Json check_json(const Check& check) {
  return {{"check", check.name},
          {"state", to_string(check.grade)},
          {"detail", check.detail},
          {"advice", null_if(check.advice.empty(), check.advice)}};
}
Json check_json(const std::optional<Check>& check) {
  return check ? check_json(*check) : Json();
}

Json diagnosis_json(const Diagnosis& diagnosis) {
  Json checks = Json::array();
  for (const Check& check : diagnosis.checks) checks.push_back(check_json(check));
  return {{"server", diagnosis.server}, {"checks", std::move(checks)}};
}

Json setting_json(const ShownSetting& setting) {
  return {{"setting", setting.name},
          {"table", setting.of_run ? Json("run") : Json()},
          {"value", null_if(setting.value.empty(), setting.value)},
          {"source", setting.source},
          {"place", null_if(setting.place.empty(), setting.place)}};
}

// One line: `content`, preceded by the version of its form.
std::string document(const Json& content) {
  constexpr int kSchema = 1;
  Json json{{"schema", kSchema}};
  json.update(content);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string status_json(const std::vector<LockView>& locks, std::optional<uint64_t> free) {
  Json json{{"locks", list_of(locks, lock_json)}};
  if (free) json["free"] = *free;
  return document(json);
}

std::string queue_json(const std::optional<lock::LockName>& name, std::span<const QueueView> queues,
                       const std::optional<QueueChange>& change, uint64_t servers) {
  Json waiters = Json::array();
  for (const QueueView& queue : queues) {
    for (size_t i = 0; i < queue.waiters.size(); ++i) {
      Json row = name ? Json::object() : Json{{"name", queue.name}};
      row.update(waiter_json(queue, i));
      if (servers > 1) row["servers"] = queue.waiters[i].servers;
      waiters.push_back(std::move(row));
    }
  }
  Json json{{"name", name_or_null(name)}, {"waiters", std::move(waiters)}};
  if (change) json[change->done] = change->owner;
  return document(json);
}

std::string force_unlock_json(const lock::LockName& name, const lock::Forced& forced,
                              const std::optional<Error>& error) {
  Json json{{"name", name.text()},
            {"broken", list_of(forced.broken, holder_json)},
            {"next", forced.next}};
  if (error) json["error"] = error_object(*error, {}, {});
  return document(json);
}

std::string acquire_json(const lock::AcquireCall& claim, lock::Token token, uint64_t slot,
                         Millis left, lock::ServerTime since) {
  return document({{"name", claim.name.text()},
                   {"owner", claim.owner.text()},
                   {"token", token},
                   {"slot", null_if(slot == 0, slot)},
                   {"left_ms", left},
                   {"ttl_ms", claim.ttl},
                   {"since", since}});
}

std::string renew_json(const lock::RenewCall& call, Renewed renewed, Millis left) {
  return document({{"event", util::to_string<Renewed::unchanged>(
                                 renewed, {"renewed", "restored", "unchanged"})},
                   {"name", call.name.text()},
                   {"owner", call.owner.text()},
                   {"ttl_ms", call.ttl},
                   {"left_ms", left}});
}

std::string release_json(const lock::ReleaseCall& call) {
  return document(
      {{"event", "released"}, {"name", call.name.text()}, {"owner", call.owner.text()}});
}

std::string version_json(std::string_view version, std::string_view commit, uint64_t form) {
  return document(
      {{"version", version}, {"commit", null_if(commit.empty(), commit)}, {"stored_form", form}});
}

std::string forget_json(const lock::ForgetCall& call, const lock::Forgotten& forgotten) {
  return document({{"name", call.name.text()},
                   {"key", call.key},
                   {"forgotten", forgotten.marks},
                   {"failures", forgotten.failures},
                   {"numbers", forgotten.numbers}});
}

std::string history_json(const std::optional<lock::LockName>& name, const History& history) {
  Json runs = Json::array(), since = Json::array(), closings = Json::array();
  for (const HistoryLine& line : history) {
    Json row = name ? Json::object() : Json{{"name", line.name}};
    row.update(line.closing ? closing_json(*line.closing)
               : line.run   ? run_json(*line.run, line.skips)
                            : skips_json(line.skips));
    (line.closing ? closings : line.run ? runs : since).push_back(std::move(row));
  }
  Json json{{"name", name_or_null(name)}, {"runs", std::move(runs)}};
  if (!name) {
    json["skipped_since"] = std::move(since);
  } else {
    json["skips"] = since.empty() ? skips_json({}) : std::move(since.back());
  }
  json["closings"] = std::move(closings);
  return document(json);
}

std::string change_json(const Change& change, lock::ServerTime time) {
  return document(
      {{"event", util::to_string<ChangeKind::gone>(change.kind, {"seen", "changed", "gone"})},
       {"time", time},
       {"name", change.name},
       {"fields", change.fields},
       {"lock", change.lock ? lock_json(*change.lock) : Json()}});
}

std::string server_change_json(const std::string& server, const std::optional<Error>& why,
                               lock::ServerTime time) {
  Json json{{"event", why ? "server-lost" : "server-back"}, {"time", time}, {"server", server}};
  if (why) json["message"] = why->text;
  return document(json);
}

std::string config_json(std::span<const ShownSetting> settings, const std::string& unused_login,
                        const std::vector<std::string>& unknown_variables) {
  return document({{"settings", list_of(settings, setting_json)},
                   {"unused_login", null_if(unused_login.empty(), unused_login)},
                   {"unknown_variables", unknown_variables}});
}

std::string doctor_json(const DoctorReport& found) {
  return document({{"url_place", found.url_place},
                   {"password_place", found.password_place},
                   {"ignored", found.ignored},
                   {"servers", list_of(found.servers, diagnosis_json)},
                   {"independence", check_json(found.independence)},
                   {"versions", check_json(found.versions)},
                   {"deadlocks", check_json(found.deadlocks)},
                   {"password", check_json(found.password)},
                   {"proc", check_json(found.proc)},
                   {"contain", check_json(found.contain)},
                   {"contain_user", check_json(found.contain_user)},
                   {"acl_rule", found.acl_rule}});
}

std::string error_json(const Error& error, const Subject& subject, const ErrorDetails& details) {
  return document({{"error", error_object(error, subject, details)}});
}

std::string event_json(const LoggedEvent& event) {
  Json json =
      with_process({{"event", event.event}, {"time", event.time}, {"t_ns", event.t_ns}}, event.run,
                   {{"server", event.server},
                    {"name", event.name},
                    {"owner", event.owner},
                    {"token", event.token}});
  if (event.waited) json["waited_ms"] = *event.waited;
  if (event.held) json["held_ms"] = *event.held;
  if (event.exit_code) json["exit_code"] = *event.exit_code;
  if (event.signal) json["signal"] = *event.signal;
  if (event.run.traceparent) json["traceparent"] = *event.run.traceparent;
  if (!event.detail.empty()) json["detail"] = event.detail;
  return document(json);
}

}  // namespace rlock::cli
