#include "redis/store/redis_store.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "lock/timing.hpp"
#include "redis/store/call.hpp"
#include "redis/store/confirmed_call.hpp"
#include "redis/store/decode.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

constexpr size_t kKeys = 10;
constexpr std::array<const char*, kKeys> kKeySuffixes{
    "holders", "limits", "queue", "alive", "who", "meta", "released", "history", "never", "once"};

// Of a script's call: EVALSHA, the digest, the number of keys, and these.
constexpr size_t kBeforeArguments = 3 + kKeys;

std::string number(uint64_t value) {
  return std::to_string(value);
}
std::string number(Millis value) {
  return std::to_string(value.count());
}
const char* to_argument(lock::Responsive responsive) {
  if (responsive == lock::Responsive::run) return "2";
  return responsive == lock::Responsive::yes ? "1" : "0";
}

// As a field of `once` and a word of a hold: no blanks and bars.
std::string once_field(lock::OnceKind kind, const std::string& key) {
  if (kind == lock::OnceKind::within) return "within";
  return (kind == lock::OnceKind::key ? "key:" : "per:") + util::percent_encoded(key, "-_.:/@+");
}

std::string optional_number(std::optional<uint64_t> value) {
  return value ? number(*value) : "";
}

void add_once(std::vector<std::string>& words, const lock::Once& once, Millis asked) {
  words.push_back(once_field(once.kind, once.key));
  words.push_back(number(once.span));
  words.push_back(number(asked));
}

// `+`: without a number.
std::string supersede_word(const std::optional<lock::Supersede>& supersede) {
  if (!supersede) return "";
  return supersede->number ? number(*supersede->number) : "+";
}

// SCAN patterns are globs, but a prefix is meant literally.
std::string glob_quoted(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

const char* to_argument(lock::ReleaseHow how) {
  if (how == lock::ReleaseHow::by_id) return "by_id";
  return how == lock::ReleaseHow::unused ? "unused" : "released";
}

const char* to_argument(lock::CancelHow how) {
  if (how == lock::CancelHow::removed) return "removed";
  if (how == lock::CancelHow::attempt_only) return "yielded";
  return how == lock::CancelHow::timed_out ? "timed_out" : "cancelled";
}

// Where nobody waits for the reply to a release, its script must be known already.
Server asked_about(const lua::Script& release, Server server) {
  server.final_script = release.sha1;
  return server;
}

// What only a put-back needs.
void add_restored(std::vector<std::string>& words, const lock::RenewCall& call) {
  const bool more = call.once || call.supersede || call.history_rows;
  if (call.slot > 0 || more) words.push_back(number(call.slot));
  if (!more) return;
  const auto& once = call.once;
  words.push_back(once ? once_field(once->kind, once->key) : "");
  words.push_back(once ? number(once->span) : "");
  words.push_back(once ? optional_number(once->max_failures) : "");
  words.push_back(optional_number(call.history_rows));
  words.push_back(supersede_word(call.supersede));
}

// A failure that no limit counts is not stored.
const char* outcome(const lock::OnceResult& result) {
  if (result.succeeded) return "succeeded";
  return result.once.max_failures ? "failed" : "-";
}

bool is_grant(const lock::AcquireReply& reply) {
  return std::holds_alternative<lock::Granted>(reply);
}

bool is_renewal(const lock::RenewReply& reply) {
  return std::holds_alternative<lock::Renewal>(reply);
}

template <class T>
bool always(const T&) {
  return true;
}

// The grant stands, and is to be renewed until replicas have confirmed it.
Result<lock::AcquireReply> granted_unconfirmed(lock::AcquireReply reply, Error why) {
  std::get<lock::Granted>(reply).unconfirmed = std::move(why);
  return reply;
}

template <class T>
Result<T> failed(T, Error why) {
  return why;
}

// BLPOP. Some proxies and servers that are not Redis answer it before its timeout: they do not
// block.
class BlockingPop final : public lock::Reply<lock::Wake> {
 public:
  BlockingPop(std::unique_ptr<Call<lock::Wake>> call, Millis slice, std::string what)
      : call_(std::move(call)), slice_(slice), what_(std::move(what)) {}
  void wants(std::vector<pollfd>& out) const override { call_->wants(out); }
  TimePoint due() const override { return call_->due(); }
  bool advance(TimePoint now) override {
    if (!began_) began_ = now;
    ended_ = now;
    return call_->advance(now);
  }
  Result<lock::Wake> take() override {
    constexpr Millis kClockSlack{50};  // the server's clock advances in ticks
    auto wake = call_->take();
    const bool early = wake && *wake == lock::Wake::slept &&
                       ended_ - began_.value_or(ended_) + kClockSlack + slice_ / 10 < slice_;
    if (!early) return wake;
    return Error{ErrorKind::unavailable,
                 "cannot " + what_ + ": the server answers BLPOP before its timeout", Retry::later,
                 Answered::yes};
  }

 private:
  std::unique_ptr<Call<lock::Wake>> call_;
  Millis slice_;
  std::string what_;
  std::optional<TimePoint> began_;
  TimePoint ended_;
};

using lock::NamesPage;

constexpr const char* kListing = "list locks";

// Of list_names: the cursor of SCAN, then the masters still to be read, the current one first, as
// in `17 10.0.0.1:6379 10.0.0.2:6379`.
struct Cursor {
  std::string scan;
  std::string masters;
};

Cursor cursor_of(const std::string& text) {
  size_t space = text.find(' ');
  return {text.substr(0, space), text.substr(space + 1)};
}

std::string cursor_text(const std::string& scan, const std::string& masters) {
  return masters.empty() ? "" : scan + " " + masters;
}

HostPort first_of(const std::string& masters) {
  return parse_host_port(masters.substr(0, masters.find(' '))).value_or(HostPort{});
}

std::string without_first(const std::string& masters) {
  size_t space = masters.find(' ');
  return space == std::string::npos ? "" : masters.substr(space + 1);
}

std::optional<Result<NamesPage>> first_page(const redisReply& nodes, const ClusterLink& cluster) {
  if (nodes.type != REDIS_REPLY_STRING) return std::nullopt;
  std::string masters;
  const NodeNaming naming = cluster.uses_tls() ? NodeNaming::by_name : NodeNaming::by_address;
  for (const HostPort& at : masters_in(text_of(nodes), naming)) {
    Server server = cluster.server_at(at);
    if (!masters.empty()) masters += ' ';
    masters += server.host + ":" + std::to_string(server.port);
  }
  if (!masters.empty()) return NamesPage{{}, cursor_text("0", masters)};
  return Error{ErrorKind::unavailable, cluster.node() + ": the node knows no master with slots",
               Retry::later};
}

}  // namespace

RedisStore::RedisStore(std::unique_ptr<Link> link, std::string prefix, Scripts scripts)
    : link_(std::move(link)), prefix_(std::move(prefix)), scripts_(scripts) {}

RedisStore::RedisStore(Server server, std::string prefix, Scripts scripts)
    : RedisStore(nullptr, std::move(prefix), scripts) {
  user_ = server.user.empty() ? "default" : util::percent_encoded(server.user, "-_.:/@+");
  link_ = std::make_unique<Connection>(asked_about(scripts.release, std::move(server)));
}

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

lock::InFlight<lock::AcquireReply> RedisStore::acquire(const lock::AcquireCall& call) {
  auto words =
      script_call(scripts_.acquire, call.name,
                  {call.owner.text(), number(call.ticket.value), number(call.limit.value()),
                   number(call.ttl), number(call.min_hold), to_argument(call.responsive),
                   call.queueing == lock::Queueing::never ? "never" : "wait",
                   optional_number(call.max_queue), call.record, number(call.attempt)});
  if (!user_.empty() || call.once) words.push_back(user_);
  if (call.once) {
    add_once(words, *call.once, call.asked);
    words.push_back(optional_number(call.once->max_failures));
  }
  if (call.history_rows) {
    words.resize(kBeforeArguments + 15);
    words.push_back(number(*call.history_rows));
  }
  if (call.supersede) {
    words.resize(kBeforeArguments + 16);
    words.push_back(supersede_word(call.supersede));
  }
  if (call.forgotten.value > 0) {
    words.resize(kBeforeArguments + 17);
    words.push_back(number(call.forgotten.value));
  }
  if (call.while_closed) {
    words.resize(kBeforeArguments + 18);
    words.push_back("1");
  }
  auto acquire = std::make_unique<Call<lock::AcquireReply>>(
      *link_, std::move(words), action_on("acquire", call.name),
      [asked = std::string(call.once ? "once" : "") + (call.supersede ? "supersede" : "")](
          const redisReply& reply) { return decode_acquire(reply, asked); },
      &scripts_.acquire);
  if (call.replicas == 0) return acquire;
  return std::make_unique<ConfirmedCall<lock::AcquireReply>>(
      *link_, std::move(acquire),
      Confirmation{call.replicas, timing::confirmation_time(call.ttl),
                   action_on("acquire", call.name), "granted"},
      is_grant, granted_unconfirmed);
}

lock::InFlight<lock::RenewReply> RedisStore::renew(const lock::RenewCall& call) {
  auto words = script_call(
      scripts_.renew, call.name,
      {call.owner.text(), call.entry.text(), number(call.token.value), number(call.limit.value()),
       number(call.ttl), number(call.min_hold), to_argument(call.responsive), call.record,
       number(call.attempt), call.record_changed ? "1" : "0", number(call.ahead)});
  add_restored(words, call);
  auto renew = std::make_unique<Call<lock::RenewReply>>(
      *link_, std::move(words), action_on("renew", call.name),
      [self = call.owner.text()](const redisReply& reply) { return decode_renew(reply, self); },
      &scripts_.renew);
  if (call.replicas == 0) return renew;
  return std::make_unique<ConfirmedCall<lock::RenewReply>>(
      *link_, std::move(renew),
      Confirmation{call.replicas, timing::confirmation_time(call.ttl),
                   action_on("renew", call.name), "renewed"},
      is_renewal, failed<lock::RenewReply>);
}

lock::InFlight<lock::ReleaseReply> RedisStore::release(const lock::ReleaseCall& call) {
  auto words =
      script_call(scripts_.release, call.name,
                  {call.owner.text(), call.entry.text(), to_argument(call.how), call.result});
  if (call.once) {
    words.insert(words.end(), {"", ""});
    add_once(words, call.once->once, call.once->asked);
    words.push_back(number(call.once->token.value));
    words.push_back(outcome(*call.once));
    words.push_back(call.once->record);
    words.push_back(number(call.once->waited));
  }
  auto release = std::make_unique<Call<lock::ReleaseReply>>(
      *link_, std::move(words), action_on("release", call.name), decode_release, &scripts_.release,
      Delivery::final);
  if (call.replicas == 0) return release;
  return std::make_unique<ConfirmedCall<lock::ReleaseReply>>(
      *link_, std::move(release),
      Confirmation{call.replicas, timing::kReleaseConfirmation, action_on("release", call.name),
                   "released"},
      always<lock::ReleaseReply>, failed<lock::ReleaseReply>);
}

lock::InFlight<lock::CancelReply> RedisStore::cancel(const lock::CancelCall& call) {
  auto words = script_call(
      scripts_.release, call.name,
      {call.owner.text(), lock::Entry::outer().text(), to_argument(call.how), call.note});
  if (call.how == lock::CancelHow::attempt_only) {
    words.push_back(number(call.attempt));
    words.push_back(number(call.ticket.value));
  }
  return std::make_unique<Call<lock::CancelReply>>(
      *link_, std::move(words), action_on("leave the queue of", call.name), decode_cancel,
      &scripts_.release, Delivery::final);
}

lock::InFlight<lock::ForceReply> RedisStore::force_unlock(const lock::ForceCall& call) {
  std::vector<std::string> arguments{call.when == lock::ForceWhen::now ? "now" : "confirmed",
                                     call.note};
  for (const lock::ForceTarget& target : call.targets) {
    arguments.push_back(target.owner.text());
    arguments.push_back(number(target.token.value));
  }
  auto words = script_call(scripts_.force_unlock, call.name, std::move(arguments));
  return std::make_unique<Call<lock::ForceReply>>(*link_, std::move(words),
                                                  action_on("force-unlock", call.name),
                                                  decode_force, &scripts_.force_unlock);
}

std::vector<std::string> RedisStore::inspect_words(const lock::InspectCall& call) const {
  return script_call(scripts_.inspect, call.name,
                     {number(call.holders_from), number(call.holders_page),
                      number(call.waiters_from), number(call.waiters_page)});
}

lock::InFlight<lock::Snapshot> RedisStore::inspect(const lock::InspectCall& call) {
  return std::make_unique<Call<lock::Snapshot>>(*link_, inspect_words(call),
                                                action_on("inspect", call.name), decode_snapshot,
                                                &scripts_.inspect);
}

lock::InFlight<std::vector<Result<lock::Snapshot>>> RedisStore::inspect_all(
    const std::vector<lock::InspectCall>& calls) {
  std::vector<BatchCall<lock::Snapshot>::Item> items;
  for (const lock::InspectCall& call : calls) {
    items.push_back({inspect_words(call), action_on("inspect", call.name)});
  }
  return std::make_unique<BatchCall<lock::Snapshot>>(*link_, std::move(items), scripts_.inspect,
                                                     decode_snapshot);
}

lock::InFlight<lock::ClosureReply> RedisStore::set_closure(const lock::ClosureCall& call) {
  std::vector<std::string> arguments{call.id ? "close" : "open", call.seen.value_or("-"),
                                     call.record};
  if (call.id) {
    arguments.push_back(*call.id);
    arguments.push_back(std::to_string(call.looked.ms + call.length.count()));
  }
  return std::make_unique<Call<lock::ClosureReply>>(
      *link_, script_call(scripts_.closure, call.name, std::move(arguments)),
      action_on(call.id ? "close" : "open", call.name), decode_closure, &scripts_.closure);
}

lock::InFlight<lock::Forgotten> RedisStore::forget(const lock::ForgetCall& call) {
  auto words = script_call(scripts_.forget, call.name,
                           {call.key ? once_field(lock::OnceKind::key, *call.key) : std::string(),
                            number(call.through.value)});
  return std::make_unique<Call<lock::Forgotten>>(*link_, std::move(words),
                                                 action_on("forget what was done under", call.name),
                                                 decode_forget, &scripts_.forget);
}

std::vector<std::string> RedisStore::history_words(const lock::LockName& name,
                                                   uint64_t rows) const {
  return script_call(scripts_.inspect, name, {"0", "0", "0", "0", number(rows)});
}

lock::InFlight<lock::HistoryRows> RedisStore::history(const lock::LockName& name, uint64_t rows) {
  return std::make_unique<Call<lock::HistoryRows>>(*link_, history_words(name, rows),
                                                   action_on("read the history of", name),
                                                   decode_history, &scripts_.inspect);
}

lock::InFlight<std::vector<Result<lock::HistoryRows>>> RedisStore::histories(
    const std::vector<lock::LockName>& names, uint64_t rows) {
  std::vector<BatchCall<lock::HistoryRows>::Item> items;
  for (const lock::LockName& name : names) {
    items.push_back({history_words(name, rows), action_on("read the history of", name)});
  }
  return std::make_unique<BatchCall<lock::HistoryRows>>(*link_, std::move(items), scripts_.inspect,
                                                        decode_history);
}

std::vector<std::string> RedisStore::scan(const std::string& cursor) const {
  return {"SCAN", cursor.empty() ? "0" : cursor, "MATCH", glob_quoted(prefix_) + "{*}:*", "COUNT",
          "1000"};
}

lock::InFlight<lock::NamesPage> RedisStore::list_names(const std::string& cursor) {
  return std::make_unique<Call<lock::NamesPage>>(
      *link_, scan(cursor), kListing,
      [this](const redisReply& reply) { return decode_names(reply, prefix_); });
}

lock::InFlight<lock::Wake> RedisStore::wait_for_wake(const lock::LockName& name,
                                                     const lock::Owner& owner, Millis slice) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", std::chrono::duration<double>(slice).count());
  std::vector<std::string> words{"BLPOP", base(name) + "wake:" + owner.text(), seconds};
  auto call = std::make_unique<Call<lock::Wake>>(*link_, std::move(words),
                                                 action_on("wait for", name), decode_wake);
  return std::make_unique<BlockingPop>(std::move(call), slice,
                                       action_on("wait for", name) + " at " + server());
}

ClusterStore::ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix)
    : RedisStore(std::move(link), std::move(prefix)) {}

ClusterLink& ClusterStore::cluster() {
  return static_cast<ClusterLink&>(link());
}

lock::InFlight<NamesPage> ClusterStore::list_masters() {
  return std::make_unique<Call<NamesPage>>(
      cluster(), std::vector<std::string>{"CLUSTER", "NODES"}, kListing,
      [this](const redisReply& nodes) { return first_page(nodes, cluster()); });
}

lock::InFlight<NamesPage> ClusterStore::list_names(const std::string& cursor) {
  if (cursor.empty()) return list_masters();
  auto [scanned, masters] = cursor_of(cursor);
  HostPort at = first_of(masters);
  if (!list_connection_ || list_connection_->server().host != at.host ||
      list_connection_->server().port != at.port) {
    list_connection_.emplace(cluster().server_at(at));
  }
  auto decode = [this, masters = masters,
                 after = cursor_past_server(cursor)](const redisReply& reply) {
    auto page = decode_names(reply, prefix());
    if (page) page->cursor = page->cursor.empty() ? after : cursor_text(page->cursor, masters);
    return page;
  };
  return std::make_unique<Call<NamesPage>>(*list_connection_, scan(scanned), kListing, decode);
}

std::string ClusterStore::cursor_past_server(const std::string& cursor) const {
  return cursor.empty() ? "" : cursor_text("0", without_first(cursor_of(cursor).masters));
}

}  // namespace rlock::redis
