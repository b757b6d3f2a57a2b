#include "contract/lab.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace rlock::contract {
namespace {

// One server for all cases: each begins by emptying it.
test::RedisServer& shared_server() {
  static test::RedisServer server;
  return server;
}

redis::Server at(const test::RedisServer& server) {
  redis::Server where;
  where.path = server.socket_path();
  where.connect_timeout = std::chrono::seconds(30);  // as drive(): a machine may stand still
  return where;
}

// TIME and PTTL by a clock that the test sets.
std::vector<Mutation> our_clock() {
  std::vector<Mutation> changes{{"call('TIME')", "call('LRANGE', 'clock', 0, 1)"}};
  for (const std::string key : {"ONCE"}) {
    changes.push_back(
        {"call('PTTL', " + key + ")",
         "(function(e) return e < 0 and e or e - now end)(call('PEXPIRETIME', " + key + "))"});
  }
  return changes;
}

int64_t wall_clock_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

void need(bool holds, const std::string& what) {
  if (!holds) throw Broken(what);
}

Lab::Lab(const std::vector<Mutation>& mutations)
    : server_(shared_server()),
      mutated_(mutations, our_clock()),
      name_(*lock::LockName::parse("job")),
      store_(at(server_), "rlock:", mutated_.for_stores()),
      now_ms_(wall_clock_ms()) {
  cli({"CONFIG", "SET", "maxmemory", "0"});
  cli({"ACL", "SETUSER", "default", "+@all"});  // a case that failed may have left a rule
  cli({"FLUSHALL"});
  set_clock();
}

void Lab::set_clock() {
  cli({"DEL", "clock"});
  cli({"RPUSH", "clock", std::to_string(now_ms_ / 1000), std::to_string(now_ms_ % 1000 * 1000)});
}

void Lab::pass(Millis time) {
  now_ms_ += time.count();
  set_clock();
  constexpr const char* kScript = R"(
    for _, key in ipairs(redis.call('KEYS', 'rlock:{job}:*')) do
      local ends = string.find(key, ':wake:') and -1 or redis.call('PEXPIRETIME', key)
      if ends >= 0 and ends <= tonumber(ARGV[1]) then redis.call('DEL', key) end
    end)";
  // Wakes end by the server's own clock.
  cli({"EVAL", kScript, "0", std::to_string(now_ms_)});
}

lock::Owner Lab::owner(char letter) {
  // Letters beyond f are no hexadecimal digits: two digits each.
  char text[33];
  for (int i = 0; i < 16; ++i) {
    text[2 * i] = static_cast<char>('0' + (letter - 'A') / 10);
    text[2 * i + 1] = static_cast<char>('0' + (letter - 'A') % 10);
  }
  return *lock::Owner::parse(std::string_view(text, 32));
}

template <class T>
Result<T> Lab::drive(lock::InFlight<T> request) {
  lock::SystemPoller poller;
  return lock::finish(poller, std::move(request), poller.now() + std::chrono::seconds(30), "lab");
}

template <class T>
T Lab::value_or_fail(Result<T> result) {
  if (!result) throw Broken(result.error().text);
  return std::move(*result);
}

lock::AcquireCall Lab::call(char letter, const Ask& ask) const {
  lock::AcquireCall call{{name_, owner(letter)}};
  call.limit = ask.limit;
  call.ttl = ask.ttl;
  call.min_hold = ask.min_hold;
  call.responsive = ask.responsive;
  call.queueing = ask.queueing;
  call.max_queue = ask.max_queue;
  call.ticket = ask.ticket;
  call.attempt = ask.attempt;
  call.once = ask.once;
  call.supersede = ask.supersede;
  call.forgotten = ask.forgotten;
  call.asked = ask.asked;
  call.record = ask.record.empty() ? std::string("record of ") + letter : ask.record;
  call.history_rows = ask.history_rows;
  call.while_closed = ask.while_closed;
  call.urgent = ask.urgent;
  return call;
}

lock::AcquireReply Lab::acquire(char letter, const Ask& ask) {
  lock::AcquireReply reply = lock::RetryNow{};
  while (std::holds_alternative<lock::RetryNow>(reply)) {
    reply = value_or_fail(drive(store_.acquire(call(letter, ask))));
  }
  return reply;
}

Error Lab::acquire_error(char letter, const Ask& ask) {
  auto reply = drive(store_.acquire(call(letter, ask)));
  need(!reply, "acquire succeeds");
  return reply.error();
}

lock::HeartbeatReply Lab::heartbeat(char letter) {
  return value_or_fail(drive(store_.heartbeat(name_, owner(letter))));
}

lock::RenewReply Lab::renew(char letter, lock::Token token, const Ask& ask,
                            const lock::Entry& entry) {
  lock::RenewCall renew{call(letter, ask), entry,
                        lock::Restore{token, ask.slot, {}, ask.ahead, ask.attempt}};
  renew.responsive = lock::Responsive::yes;
  renew.record_changed = !ask.record.empty();
  return value_or_fail(drive(store_.renew(renew)));
}

lock::ReleaseReply Lab::release(char letter, const lock::Entry& entry, const std::string& result,
                                lock::ReleaseHow how) {
  return value_or_fail(drive(store_.release({name_, owner(letter), entry, result, how})));
}

lock::ReleaseReply Lab::ends(char letter, const lock::OnceResult& result,
                             const std::string& ended) {
  lock::ReleaseCall call{name_, owner(letter)};
  call.result = !ended.empty() ? ended : result.succeeded ? "exit:0" : "exit:1";
  call.once = result;
  call.record = std::string("record of ") + letter;
  return value_or_fail(drive(store_.release(call)));
}

lock::ReleaseReply Lab::ends_run(char letter) {
  lock::ReleaseCall call{name_, owner(letter)};
  call.result = "exit:0";
  call.run = token(letter);
  call.record = std::string("record of ") + letter;
  return value_or_fail(drive(store_.release(call)));
}

lock::Forgotten Lab::forget(std::optional<std::string> key, lock::Token through) {
  return value_or_fail(drive(store_.forget({name_, std::move(key), through})));
}

lock::ClosureReply Lab::close(const std::string& id, Millis length,
                              const std::optional<std::string>& seen) {
  return value_or_fail(
      drive(store_.set_closure({name_, id, seen, {now_ms_}, length, "who closed it"})));
}

lock::ClosureReply Lab::open(const std::optional<std::string>& seen) {
  return value_or_fail(drive(store_.set_closure({name_, {}, seen, {}, {}, "who opened it"})));
}

lock::MoveReply Lab::move_first(char letter, const std::string& record) {
  return value_or_fail(drive(store_.move_first({name_, owner(letter), record})));
}

std::vector<lock::HistoryRow> Lab::history() {
  return value_or_fail(drive(store_.history(name_, 100)));
}

lock::CancelReply Lab::cancel(char letter, lock::CancelHow how) {
  return value_or_fail(drive(store_.cancel({name_, owner(letter), how, "by the operator"})));
}

lock::CancelReply Lab::cancel_attempt(char letter, uint64_t attempt, lock::Ticket ticket) {
  lock::CancelCall call{name_, owner(letter), lock::CancelHow::attempt_only};
  call.attempt = attempt;
  call.ticket = ticket;
  return value_or_fail(drive(store_.cancel(call)));
}

lock::ForceReply Lab::force(lock::ForceWhen when) {
  lock::ForceCall call{name_, {}, when, "by the operator"};
  for (const lock::Holder& holder : inspect().holders) {
    call.targets.push_back({lock::Owner::external(holder.owner), holder.token});
  }
  return value_or_fail(drive(store_.force_unlock(call)));
}

lock::ForceReply Lab::force(char letter, lock::Token token, lock::ForceWhen when,
                            const std::string& note) {
  return value_or_fail(drive(store_.force_unlock({name_, {{owner(letter), token}}, when, note})));
}

lock::Snapshot Lab::inspect() {
  return value_or_fail(drive(store_.inspect({name_})));
}

bool Lab::woken(char letter) {
  return !cli({"LPOP", key("wake:" + owner(letter).text())}).empty();
}

lock::Token Lab::granted(char letter, const Ask& ask) {
  return tokens_[letter] =
             as<lock::Granted>(acquire(letter, ask), std::string(1, letter) + " is not granted")
                 .token;
}

lock::Entry Lab::inner() {
  struct Fixed final : util::Random {
    uint64_t next() override { return 0x1234; }
  } fixed;
  return lock::Entry::fresh(fixed);
}

lock::Queued Lab::queued(char letter, const Ask& ask) {
  return as<lock::Queued>(acquire(letter, ask), std::string(1, letter) + " is not queued");
}

namespace {

char letter_of(const std::string& owner) {
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    if (Lab::owner(letter).text() == owner) return letter;
  }
  return '?';
}

}  // namespace

std::string Lab::holders() {
  std::string letters;
  for (const lock::Holder& holder : inspect().holders) letters.push_back(letter_of(holder.owner));
  std::sort(letters.begin(), letters.end());
  return letters;
}

std::string Lab::counts() {
  const lock::Snapshot seen = inspect();
  std::string numbers;
  for (uint64_t number : {seen.counters.runs, seen.counters.failures, seen.counters.losses,
                          seen.counters.skips, seen.failures_in_a_row}) {
    numbers += (numbers.empty() ? "" : " ") + std::to_string(number);
  }
  return numbers;
}

std::string Lab::rows() {
  std::string runs;
  for (const lock::HistoryRow& row : history()) {
    const auto* run = std::get_if<lock::Run>(&row);
    if (run == nullptr) continue;
    runs += (runs.empty() ? "" : ", ") + run->how + " " + run->result;
    if (!run->note.empty()) runs += " " + run->note;
  }
  return runs;
}

std::string Lab::slots() {
  std::vector<uint64_t> all;
  for (const lock::Holder& holder : inspect().holders) all.push_back(holder.slot);
  std::sort(all.begin(), all.end());
  std::string numbers;
  for (uint64_t slot : all) numbers += (numbers.empty() ? "" : " ") + std::to_string(slot);
  return numbers;
}

std::string Lab::waiters() {
  std::string letters;
  for (const lock::Waiter& waiter : inspect().waiters) letters.push_back(letter_of(waiter.owner));
  return letters;
}

std::string Lab::raw(lua::Script redis::Scripts::*script,
                     const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"EVAL", std::string((mutated_.for_stores().*script).text), "10"};
  for (const char* suffix : {"holders", "limits", "queue", "alive", "who", "meta", "released",
                             "history", "never", "once"}) {
    words.push_back(key(suffix));
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  return cli(words);
}

std::string Lab::fingerprint() {
  constexpr const char* kScript = R"(
    local out, keys = {}, redis.call('KEYS', '*')
    table.sort(keys)
    for _, key in ipairs(keys) do
      local dump = redis.sha1hex(redis.call('DUMP', key))
      out[#out + 1] = key .. ' ' .. dump .. ' ' .. tostring(redis.call('PTTL', key) >= 0)
    end
    return table.concat(out, '\n'))";
  return cli({"EVAL", kScript, "0"});
}

}  // namespace rlock::contract
