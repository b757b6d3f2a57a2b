#include "redis/store/redis_store.hpp"

#include <type_traits>
#include <utility>

#include "lock/timing.hpp"
#include "redis/store/call.hpp"
#include "redis/store/decode.hpp"
#include "redis/store/keys.hpp"
#include "redis/store/versions.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

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

// The text of a field of `once` and of a word of a hold: no blanks and bars.
std::string once_field(lock::OnceKind kind, const std::string& key) {
  if (kind == lock::OnceKind::within) return "within";
  return (kind == lock::OnceKind::key ? "key:" : "per:") + util::percent_encoded(key, "-_.:/@+");
}

// The arguments of acquire, renew and release: alternating names and values. Names that do not
// apply are left out.
class Arguments {
 public:
  Arguments() = default;
  // The arguments that acquire and renew share.
  explicit Arguments(const lock::Claim& claim) {
    add("owner", claim.owner.text());
    add("limit", number(claim.limit.value()));
    add("ttl", number(claim.ttl));
    add_unless_0("min_hold", claim.min_hold);
    add("responsive", to_argument(claim.responsive));
    add("record", claim.record);
    if (claim.once) add(*claim.once);
    if (claim.supersede) {
      // `+` stands for no number.
      add("supersede", claim.supersede->number ? number(*claim.supersede->number) : "+");
    }
    add("rows", claim.history_rows);
  }

  void add(const char* name, std::string value) {
    words_.emplace_back(name);
    words_.push_back(std::move(value));
  }
  void add_unless_0(const char* name, uint64_t value) {
    if (value != 0) add(name, number(value));
  }
  void add_unless_0(const char* name, Millis value) {
    if (value != Millis(0)) add(name, number(value));
  }
  void add_if(const char* name, bool holds) {
    if (holds) add(name, "1");
  }
  void add(const char* name, std::optional<uint64_t> value) {
    if (value) add(name, number(*value));
  }
  void add(const lock::Once& once) {
    add("once", once_field(once.kind, once.key));
    add("span", number(once.span));
    add("max_failures", once.max_failures);
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

const char* to_argument(lock::ReleaseHow how) {
  if (how == lock::ReleaseHow::by_id) return "by_id";
  return how == lock::ReleaseHow::unused ? "unused" : "released";
}

const char* to_argument(lock::CancelHow how) {
  if (how == lock::CancelHow::removed) return "removed";
  if (how == lock::CancelHow::attempt_only) return "yielded";
  return how == lock::CancelHow::timed_out ? "timed_out" : "cancelled";
}

// A failure is not stored if no limit counts it.
const char* outcome(const lock::OnceResult& result) {
  if (result.succeeded) return "succeeded";
  return result.once.max_failures ? "failed" : "-";
}

// What replicas have to confirm, and within what time.
struct Confirmation {
  uint64_t replicas;
  Millis within;
  std::string what;  // `renew "nightly"`
  const char* done;  // `renewed`
};

Error too_few_replicas(const Link& link, const Confirmation& confirmation, int64_t count) {
  return with_action(confirmation.what,
                     {ErrorKind::unavailable,
                      util::format("{}: {}, but {} of {} replicas confirmed it", link.node(),
                                   confirmation.done, count, confirmation.replicas),
                      Retry::later});
}

std::optional<int64_t> decode_count(const redisReply& reply) {
  return reply.type == REDIS_REPLY_INTEGER ? std::optional<int64_t>(reply.integer) : std::nullopt;
}

// Whether replicas have to confirm what a call with this reply wrote.
bool wrote(const lock::AcquireReply& reply) {
  return std::holds_alternative<lock::Granted>(reply);
}
bool wrote(const lock::RenewReply& reply) {
  return std::holds_alternative<lock::Renewal>(reply);
}
bool wrote(const lock::ReleaseReply&) {
  return true;
}

// A call whose reply counts once replicas have confirmed what it wrote: WAIT follows over the same
// connection. A grant that they have not confirmed stands, but has to be renewed until they
// confirm.
template <class T>
lock::InFlight<T> confirmed(Link& link, lock::InFlight<T> call, Confirmation confirmation) {
  if (confirmation.replicas == 0) return call;
  auto ask_replicas = [=, &link](Result<T> reply, Nanos) -> lock::InFlight<T> {
    if (!reply || !wrote(*reply)) return lock::ready<T>(std::move(reply));
    lock::InFlight<int64_t> wait = std::make_unique<Call<int64_t>>(
        link,
        std::vector<std::string>{"WAIT", number(confirmation.replicas),
                                 number(confirmation.within)},
        confirmation.what, decode_count, nullptr, Delivery::following);
    auto check = [=, &link](Result<int64_t> count, Nanos) mutable {
      if (count && *count >= static_cast<int64_t>(confirmation.replicas)) {
        return lock::ready<T>(std::move(reply));
      }
      Error why = count ? too_few_replicas(link, confirmation, *count) : std::move(count).error();
      why.answered = Answered::yes;
      if constexpr (std::is_same_v<T, lock::AcquireReply>) {
        // A retry does not help if an ACL denies WAIT, or the server does not have it.
        if (why.retry == Retry::never) return lock::ready<T>(std::move(why));
        std::get<lock::Granted>(*reply).unconfirmed = std::move(why);
        return lock::ready<T>(std::move(reply));
      }
      return lock::ready<T>(std::move(why));
    };
    return lock::then<T>(std::move(wait), check);
  };
  return lock::then<T>(std::move(call), ask_replicas);
}

std::vector<std::string> pages(const lock::InspectCall& call) {
  Arguments given;
  given.add_unless_0("holders_from", call.holders_from);
  given.add_unless_0("holders", call.holders_page);
  given.add_unless_0("waiters_from", call.waiters_from);
  given.add_unless_0("waiters", call.waiters_page);
  return given.take();
}
std::vector<std::string> only_history(uint64_t rows) {
  return {"rows", number(rows)};
}

using lock::NamesPage;

constexpr const char* kListing = "list locks";
constexpr const char* kReadHistory = "read the history of";

// The cursor of list_names consists of the cursor of SCAN and the masters still to be read, the
// current one first, for example `17 10.0.0.1:6379 10.0.0.2:6379`.
std::optional<Result<NamesPage>> first_page(const redisReply& nodes, const ClusterLink& cluster) {
  if (nodes.type != REDIS_REPLY_STRING) return std::nullopt;
  std::string cursor;
  const NodeNaming naming = cluster.uses_tls() ? NodeNaming::by_name : NodeNaming::by_address;
  for (const HostPort& at : masters_in(text_of(nodes), naming)) {
    const Server server = cluster.server_at(at);
    cursor += (cursor.empty() ? "0 " : " ") + server.host + ":" + std::to_string(server.port);
  }
  if (!cursor.empty()) return NamesPage{{}, std::move(cursor)};
  return Error{ErrorKind::unavailable, cluster.node() + ": the node knows no master with slots",
               Retry::later};
}

}  // namespace

RedisStore::RedisStore(std::unique_ptr<Link> link, std::string prefix, Scripts scripts)
    : link_(std::move(link)), prefix_(std::move(prefix)), scripts_(scripts) {}

RedisStore::RedisStore(Server server, std::string prefix, Scripts scripts)
    : RedisStore(nullptr, std::move(prefix), scripts) {
  user_ = server.user.empty() ? "default" : util::percent_encoded(server.user, "-_.:/@+");
  // If no caller waits for the reply to a release, the server must know its script already.
  server.final_script = scripts.release.sha1;
  link_ = std::make_unique<Connection>(std::move(server));
}

std::vector<std::string> RedisStore::keys(const lock::LockName& name) const {
  std::vector<std::string> keys;
  for (const LockKey& key : kLockKeys) keys.push_back(lock_key(prefix_, name.text(), key.suffix));
  return keys;
}

template <class T, class Decode>
lock::InFlight<T> RedisStore::run(const lua::Script& script, const char* verb,
                                  const lock::LockName& name,
                                  const std::vector<std::string>& arguments, Decode decode) {
  const auto delivery = &script == &scripts_.release ? Delivery::last_words : Delivery::normal;
  return std::make_unique<Call<T>>(*link_, script_call(script, keys(name), arguments),
                                   action_on(verb, name), std::move(decode), &script, delivery);
}

lock::InFlight<lock::AcquireReply> RedisStore::acquire(const lock::AcquireCall& call) {
  Arguments given(call);
  given.add_unless_0("ticket", call.ticket.value);
  given.add_if("at_once", call.queueing == lock::Queueing::never);
  given.add("max_queue", call.max_queue);
  given.add_unless_0("attempt", call.attempt);
  if (!user_.empty()) given.add("user", user_);
  if (call.once) given.add("asked", number(call.asked));
  given.add_unless_0("forgotten", call.forgotten.value);
  given.add_if("while_closed", call.while_closed);
  given.add_unless_0("earlier",
                     static_cast<uint64_t>(std::chrono::microseconds(call.urgent).count()));
  const Verdicts possible{call.once.has_value(), call.supersede.has_value()};
  auto decode = [possible](const redisReply& reply) { return decode_acquire(reply, possible); };
  return confirmed(
      *link_, run<lock::AcquireReply>(scripts_.acquire, "acquire", call.name, given.take(), decode),
      {call.replicas, timing::confirmation_time(call.ttl), action_on("acquire", call.name),
       "granted"});
}

lock::InFlight<lock::HeartbeatReply> RedisStore::heartbeat(const lock::LockName& name,
                                                           const lock::Owner& owner) {
  return run<lock::HeartbeatReply>(scripts_.heartbeat, "wait for", name, {"owner", owner.text()},
                                   decode_heartbeat);
}

lock::InFlight<lock::RenewReply> RedisStore::renew(const lock::RenewCall& call) {
  Arguments given(call);
  given.add("entry", call.entry.text());
  given.add_if("store_record", call.record_changed);
  if (call.restore) {
    given.add_unless_0("token", call.restore->token.value);
    given.add_unless_0("slot", call.restore->slot);
    given.add_unless_0("ahead", call.restore->ahead);
    given.add_unless_0("attempt", call.restore->attempt);
  }
  auto decode = [self = call.owner.text()](const redisReply& reply) {
    return decode_renew(reply, self);
  };
  return confirmed(*link_,
                   run<lock::RenewReply>(scripts_.renew, "renew", call.name, given.take(), decode),
                   {call.replicas, timing::confirmation_time(call.ttl),
                    action_on("renew", call.name), "renewed"});
}

lock::InFlight<lock::ReleaseReply> RedisStore::release(const lock::ReleaseCall& call) {
  Arguments given;
  given.add("owner", call.owner.text());
  given.add("entry", call.entry.text());
  given.add("how", to_argument(call.how));
  given.add("note", call.result);
  if (call.once) {
    given.add(call.once->once);
    given.add("asked", number(call.once->asked));
    given.add("token", number(call.once->token.value));
    given.add("outcome", outcome(*call.once));
    given.add("waited", number(call.once->waited));
  }
  given.add_unless_0("run", call.run.value);
  if (!call.record.empty()) given.add("record", call.record);
  return confirmed(
      *link_,
      run<lock::ReleaseReply>(scripts_.release, "release", call.name, given.take(), decode_release),
      {call.replicas, timing::kReleaseConfirmation, action_on("release", call.name), "released"});
}

lock::InFlight<lock::CancelReply> RedisStore::cancel(const lock::CancelCall& call) {
  Arguments given;
  given.add("owner", call.owner.text());
  given.add("entry", lock::Entry::outer().text());
  given.add("how", to_argument(call.how));
  given.add("note", call.note);
  if (call.how == lock::CancelHow::attempt_only) {
    given.add("attempt", number(call.attempt));
    given.add_unless_0("ticket", call.ticket.value);
  }
  return run<lock::CancelReply>(scripts_.release, "leave the queue of", call.name, given.take(),
                                decode_cancel);
}

lock::InFlight<lock::ForceReply> RedisStore::force_unlock(const lock::ForceCall& call) {
  std::string targets;
  for (const lock::ForceTarget& target : call.targets) {
    targets += target.owner.text() + "=" + number(target.token.value) + " ";
  }
  Arguments given;
  given.add_if("now", call.when == lock::ForceWhen::now);
  given.add("note", call.note);
  given.add("targets", targets);
  return run<lock::ForceReply>(scripts_.force_unlock, "force-unlock", call.name, given.take(),
                               decode_force);
}

lock::InFlight<lock::Snapshot> RedisStore::inspect(const lock::InspectCall& call) {
  return run<lock::Snapshot>(scripts_.inspect, "inspect", call.name, pages(call), decode_snapshot);
}

lock::InFlight<lock::Snapshots> RedisStore::inspect_all(
    const std::vector<lock::InspectCall>& calls) {
  std::vector<CallItem> items;
  for (const lock::InspectCall& call : calls) {
    items.push_back({script_call(scripts_.inspect, keys(call.name), pages(call)),
                     action_on("inspect", call.name)});
  }
  return std::make_unique<BatchCall<lock::Snapshot>>(*link_, std::move(items), &scripts_.inspect,
                                                     decode_snapshot);
}

lock::InFlight<lock::ClosureReply> RedisStore::set_closure(const lock::ClosureCall& call) {
  Arguments given;
  if (call.seen) given.add("seen", *call.seen);
  given.add("record", call.record);
  if (call.id) {
    given.add("id", *call.id);
    given.add("ends", std::to_string(call.looked.ms + call.length.count()));
  }
  return run<lock::ClosureReply>(scripts_.closure, call.id ? "close" : "open", call.name,
                                 given.take(), decode_closure);
}

lock::InFlight<lock::MoveReply> RedisStore::move_first(const lock::MoveCall& call) {
  return run<lock::MoveReply>(scripts_.first, "move a waiter in the queue of", call.name,
                              {"owner", call.owner.text(), "record", call.record}, decode_move);
}

lock::InFlight<lock::Forgotten> RedisStore::forget(const lock::ForgetCall& call) {
  Arguments given;
  if (call.key) given.add("field", once_field(lock::OnceKind::key, *call.key));
  given.add_unless_0("through", call.through.value);
  return run<lock::Forgotten>(scripts_.forget, "forget what was done under", call.name,
                              given.take(), decode_forget);
}

lock::InFlight<lock::HistoryRows> RedisStore::history(const lock::LockName& name, uint64_t rows) {
  return run<lock::HistoryRows>(scripts_.inspect, kReadHistory, name, only_history(rows),
                                decode_history);
}

lock::InFlight<lock::Histories> RedisStore::histories(const std::vector<lock::LockName>& names,
                                                      uint64_t rows) {
  std::vector<CallItem> items;
  for (const lock::LockName& name : names) {
    items.push_back({script_call(scripts_.inspect, keys(name), only_history(rows)),
                     action_on(kReadHistory, name)});
  }
  return std::make_unique<BatchCall<lock::HistoryRows>>(*link_, std::move(items), &scripts_.inspect,
                                                        decode_history);
}

std::vector<std::string> RedisStore::scan(const std::string& cursor) const {
  return {"SCAN", cursor.empty() ? "0" : cursor, "MATCH", glob_quoted(prefix_) + "{*}:*", "COUNT",
          "1000"};
}

lock::InFlight<lock::NamesPage> RedisStore::list_names(const std::string& cursor) {
  return list_page(*link_, cursor,
                   [this](const redisReply& reply) { return decode_names(reply, prefix_); });
}

lock::InFlight<NamesPage> RedisStore::list_page(Link& link, const std::string& cursor,
                                                DecodePage decode) const {
  lock::InFlight<NamesPage> page =
      std::make_unique<Call<NamesPage>>(link, scan(cursor), kListing, std::move(decode));
  return lock::then<NamesPage>(std::move(page), [this, &link](Result<NamesPage> names, Nanos) {
    if (!names) return lock::ready<NamesPage>(std::move(names));
    return with_other_versions(link, prefix_, *std::move(names));
  });
}

lock::InFlight<lock::Wake> RedisStore::wait_for_wake(const lock::LockName& name,
                                                     const lock::Owner& owner, Millis slice) {
  std::vector<std::string> words{
      "BLPOP", lock_key(prefix_, name.text(), "wake:" + owner.text()),
      util::format("{:.3f}", std::chrono::duration<double>(slice).count())};
  const std::string what = action_on("wait for", name);
  lock::InFlight<lock::Wake> pop =
      std::make_unique<Call<lock::Wake>>(*link_, std::move(words), what, decode_wake);
  // Some proxies and servers that are not Redis do not block: they answer before the timeout.
  return lock::then<lock::Wake>(std::move(pop), [=, this](Result<lock::Wake> wake, Nanos took) {
    constexpr Millis kClockSlack{50};  // the server's clock advances in ticks
    const bool early =
        wake && *wake == lock::Wake::slept && took + kClockSlack + slice / 10 < slice;
    if (!early) return lock::ready<lock::Wake>(std::move(wake));
    return lock::ready<lock::Wake>(
        Error{ErrorKind::unavailable,
              util::format("cannot {} at {}: the server answers BLPOP before its timeout", what,
                           server()),
              Retry::later, Answered::yes});
  });
}

ClusterStore::ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix)
    : RedisStore(std::move(link), std::move(prefix)) {}

ClusterLink& ClusterStore::cluster() {
  return static_cast<ClusterLink&>(link());
}

lock::InFlight<NamesPage> ClusterStore::list_names(const std::string& cursor) {
  if (cursor.empty()) {
    return std::make_unique<Call<NamesPage>>(
        cluster(), std::vector<std::string>{"CLUSTER", "NODES"}, kListing,
        [this](const redisReply& nodes) { return first_page(nodes, cluster()); });
  }
  std::string_view masters = cursor;
  const std::string scanned(util::take_until(masters, ' '));
  const HostPort at = parse_host_port(masters.substr(0, masters.find(' '))).value_or(HostPort{});
  if (!list_connection_ || list_connection_->server().host != at.host ||
      list_connection_->server().port != at.port) {
    list_connection_.emplace(cluster().server_at(at));
  }
  auto decode = [this, masters = std::string(masters),
                 after = cursor_past_server(cursor)](const redisReply& reply) {
    auto page = decode_names(reply, prefix());
    if (page) page->cursor = page->cursor.empty() ? after : page->cursor + " " + masters;
    return page;
  };
  return list_page(*list_connection_, scanned, decode);
}

std::string ClusterStore::cursor_past_server(const std::string& cursor) const {
  std::string_view masters = cursor;
  util::take_until(masters, ' ');  // skips the cursor of SCAN
  util::take_until(masters, ' ');  // skips the current master
  return masters.empty() ? "" : "0 " + std::string(masters);
}

}  // namespace rlock::redis
