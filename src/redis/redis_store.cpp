#include "redis/redis_store.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "redis/decode.hpp"

namespace rlock::redis {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;
using util::TimePoint;

constexpr size_t kKeys = 9;
constexpr std::array<const char*, kKeys> kKeySuffixes{
    "holders", "limits", "queue", "alive", "who", "meta", "released", "history", "never"};

// Where EVALSHA has the digest and EVAL the text. [script_call]
constexpr size_t kCommand = 0;
constexpr size_t kScript = 1;

std::string number(uint64_t value) {
  return std::to_string(value);
}
std::string number(util::Millis value) {
  return std::to_string(value.count());
}
std::string flag(lock::Attended attended) {
  return attended == lock::Attended::yes ? "1" : "0";
}

bool is_noscript(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR &&
         std::string_view(reply.str, reply.len).starts_with("NOSCRIPT");
}

// One command in flight on the store's connection, decoded at its end. `script` may be null; else
// its text is sent once where the server does not know the digest (a restart, SCRIPT FLUSH: L42).
template <class T>
class Call final : public lock::Reply<T> {
 public:
  using Decode = std::optional<T> (*)(const redisReply&, const std::string& context);

  Call(Connection& connection, std::vector<std::string> words, std::string what, Decode decode,
       std::string context, const lua::Script* script)
      : connection_(connection),
        words_(std::move(words)),
        what_(std::move(what)),
        decode_(decode),
        context_(std::move(context)),
        script_(script) {
    connection_.start(words_);
  }

  ~Call() override {
    if (!done_) connection_.drop();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void wants(std::vector<pollfd>& out) const override { connection_.wants(out); }
  TimePoint due() const override { return connection_.due(); }

  bool advance(TimePoint now) override {
    while (!done_ && connection_.advance(now)) {
      auto reply = connection_.take();
      if (reply && script_ != nullptr && is_noscript(**reply)) {
        send_text();
        continue;
      }
      done_ = true;
      if (reply) {
        reply_ = std::move(*reply);
      } else {
        error_ = std::move(reply).error();
      }
    }
    return done_;
  }

  Result<T> take() override {
    if (!reply_) return about_call(std::move(error_));
    if (reply_->type == REDIS_REPLY_ERROR) {
      return about_call(named(decode_error(std::string_view(reply_->str, reply_->len))));
    }
    std::optional<T> value = decode_(*reply_, context_);
    if (!value) {
      return about_call(named({ErrorKind::unavailable, "a reply that no rlock script gives"}));
    }
    return std::move(*value);
  }

 private:
  void send_text() {
    words_[kCommand] = "EVAL";
    words_[kScript] = script_->text;
    script_ = nullptr;
    connection_.start(words_);
  }

  // The transport's errors name the server themselves, a reply does not.
  Error named(Error error) const {
    error.text = connection_.server().label() + ": " + error.text;
    return error;
  }

  Error about_call(Error error) const {
    error.text = "cannot " + what_ + ": " + error.text;
    return error;
  }

  Connection& connection_;
  std::vector<std::string> words_;
  std::string what_;
  Decode decode_;
  std::string context_;
  const lua::Script* script_;
  bool done_ = false;
  ReplyPtr reply_;
  Error error_;
};

// Adapts a decoder that needs no context.
template <class T, std::optional<T> (*decode)(const redisReply&)>
std::optional<T> plain(const redisReply& reply, const std::string&) {
  return decode(reply);
}

std::string about(const char* verb, const lock::LockName& name) {
  return std::string(verb) + " \"" + name.text() + "\"";
}

// SCAN patterns are globs: a prefix with a star in it is meant literally.
std::string glob_quoted(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

const char* word(lock::CancelHow how) {
  if (how == lock::CancelHow::removed) return "removed";
  if (how == lock::CancelHow::yielded) return "yielded";
  return how == lock::CancelHow::timed_out ? "timed_out" : "cancelled";
}

std::pair<std::string, std::string> force_target(const lock::ForceTarget& target) {
  if (const auto* owner = std::get_if<lock::Owner>(&target)) return {"owner", owner->text()};
  if (const auto* token = std::get_if<lock::Token>(&target)) return {"token", number(token->value)};
  return {std::holds_alternative<lock::Every>(target) ? "every" : "sole", ""};
}

}  // namespace

RedisStore::RedisStore(Server server, std::string prefix, Scripts scripts)
    : connection_(std::move(server)), prefix_(std::move(prefix)), scripts_(scripts) {}

std::string RedisStore::base(const lock::LockName& name) const {
  return prefix_ + "{" + name.text() + "}:";
}

std::vector<std::string> RedisStore::script_call(const lua::Script& script,
                                                 const lock::LockName& name,
                                                 std::vector<std::string> arguments) const {
  std::vector<std::string> words{"EVALSHA", std::string(script.sha1), number(kKeys)};
  words.reserve(words.size() + kKeys + arguments.size());
  for (const char* suffix : kKeySuffixes) words.push_back(base(name) + suffix);
  for (std::string& argument : arguments) words.push_back(std::move(argument));
  return words;
}

// A server of a quorum may hang, and nobody is there any more when it says that it lacks the
// script. Over a fresh connection it would not read that much before it notices; but what it took
// over an older one, it took by scripts that it knew.
void RedisStore::for_good(std::vector<std::string>& words) const {
  if (connection_.server().part == Part::alone || !connection_.is_open()) return;
  words[kCommand] = "EVAL";
  words[kScript] = scripts_.release.text;
}

lock::InFlight<lock::AcquireReply> RedisStore::acquire(const lock::AcquireCall& call) {
  auto words =
      script_call(scripts_.acquire, call.name,
                  {call.owner.text(), number(call.ticket.value), number(call.limit.value()),
                   number(call.ttl), number(call.min_hold), flag(call.attended),
                   call.queueing == lock::Queueing::never ? "never" : "wait",
                   call.max_queue ? number(*call.max_queue) : "", call.record});
  if (call.attempt > 0) words.push_back(number(call.attempt));
  return std::make_unique<Call<lock::AcquireReply>>(
      connection_, std::move(words), about("acquire", call.name),
      plain<lock::AcquireReply, decode_acquire>, "", &scripts_.acquire);
}

lock::InFlight<lock::RenewReply> RedisStore::renew(const lock::RenewCall& call) {
  auto words = script_call(
      scripts_.renew, call.name,
      {call.owner.text(), call.entry.text(), number(call.token.value), number(call.limit.value()),
       number(call.ttl), number(call.min_hold), flag(call.attended), call.record});
  if (call.attempt > 0) words.push_back(number(call.attempt));
  auto decode = [](const redisReply& reply, const std::string& self) {
    return decode_renew(reply, self);
  };
  return std::make_unique<Call<lock::RenewReply>>(connection_, std::move(words),
                                                  about("renew", call.name), decode,
                                                  call.owner.text(), &scripts_.renew);
}

lock::InFlight<lock::ReleaseReply> RedisStore::release(const lock::ReleaseCall& call) {
  auto words = script_call(scripts_.release, call.name,
                           {call.owner.text(), call.entry.text(), "released", call.result});
  return std::make_unique<Call<lock::ReleaseReply>>(
      connection_, std::move(words), about("release", call.name),
      plain<lock::ReleaseReply, decode_release>, "", &scripts_.release);
}

lock::InFlight<lock::CancelReply> RedisStore::cancel(const lock::CancelCall& call) {
  auto words =
      script_call(scripts_.release, call.name,
                  {call.owner.text(), lock::Entry::outer().text(), word(call.how), call.note});
  if (call.how == lock::CancelHow::yielded) {
    words.push_back(number(call.attempt));
    words.push_back(number(call.ticket.value));
  }
  for_good(words);
  return std::make_unique<Call<lock::CancelReply>>(
      connection_, std::move(words), about("leave the queue of", call.name),
      plain<lock::CancelReply, decode_cancel>, "", &scripts_.release);
}

lock::InFlight<lock::ForceReply> RedisStore::force_unlock(const lock::ForceCall& call) {
  auto [target, value] = force_target(call.target);
  auto words =
      script_call(scripts_.force_unlock, call.name,
                  {target, value, call.pace == lock::Pace::now ? "now" : "confirmed", call.note});
  return std::make_unique<Call<lock::ForceReply>>(
      connection_, std::move(words), about("force-unlock", call.name),
      plain<lock::ForceReply, decode_force>, "", &scripts_.force_unlock);
}

lock::InFlight<lock::Snapshot> RedisStore::inspect(const lock::InspectCall& call) {
  auto words = script_call(scripts_.inspect, call.name,
                           {number(call.holders_from), number(call.holders_page),
                            number(call.waiters_from), number(call.waiters_page)});
  return std::make_unique<Call<lock::Snapshot>>(
      connection_, std::move(words), about("inspect", call.name),
      plain<lock::Snapshot, decode_snapshot>, "", &scripts_.inspect);
}

lock::InFlight<std::vector<lock::Past>> RedisStore::history(const lock::LockName& name,
                                                            uint64_t rows) {
  std::vector<std::string> words{"LRANGE", base(name) + "history", "0", number(rows - 1)};
  return std::make_unique<Call<std::vector<lock::Past>>>(
      connection_, std::move(words), about("read the history of", name),
      plain<std::vector<lock::Past>, decode_history>, "", nullptr);
}

lock::InFlight<lock::NamesPage> RedisStore::list_names(const std::string& cursor) {
  std::vector<std::string> words{"SCAN",  cursor.empty() ? "0" : cursor,
                                 "MATCH", glob_quoted(prefix_) + "{*}:*",
                                 "COUNT", "1000"};
  auto decode = [](const redisReply& reply, const std::string& prefix) {
    return decode_names(reply, prefix);
  };
  return std::make_unique<Call<lock::NamesPage>>(connection_, std::move(words), "list locks",
                                                 decode, prefix_, nullptr);
}

lock::InFlight<lock::Wake> RedisStore::wait_for_wake(const lock::LockName& name,
                                                     const lock::Owner& owner, lock::Millis slice) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", std::chrono::duration<double>(slice).count());
  std::vector<std::string> words{"BLPOP", base(name) + "wake:" + owner.text(), seconds};
  return std::make_unique<Call<lock::Wake>>(connection_, std::move(words), about("wait for", name),
                                            plain<lock::Wake, decode_wake>, "", nullptr);
}

}  // namespace rlock::redis
