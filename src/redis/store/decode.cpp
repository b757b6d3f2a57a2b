#include "redis/store/decode.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "redis/link/reply.hpp"
#include "redis/store/keys.hpp"
#include "redis/store/versions.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using lock::OwnerEnd;

// Some servers return a script's numbers as text, and as `17.0` or `1.7e+15`.
int64_t number_in(std::string_view text) {
  if (auto whole = util::parse_number<int64_t>(text)) return *whole;
  constexpr double kMost = 9'007'199'254'740'992.0;  // a double is exact up to here
  double real = 0;
  std::from_chars(text.data(), text.data() + text.size(), real);
  return std::abs(real) <= kMost ? static_cast<int64_t>(real) : 0;
}

// One element of a reply array, read leniently: a missing or unexpected element reads as empty or
// 0.
class Item {
 public:
  explicit Item(const redisReply* reply) : reply_(reply) {}

  bool is_array() const { return reply_ != nullptr && reply_->type == REDIS_REPLY_ARRAY; }
  size_t size() const { return is_array() ? reply_->elements : 0; }
  Item at(size_t i) const { return Item(i < size() ? reply_->element[i] : nullptr); }
  // The value of a fact: names and values alternate, possibly after a word.
  Item operator[](std::string_view name) const {
    for (size_t i = size() % 2; i < size(); i += 2) {
      if (at(i).text() == name) return at(i + 1);
    }
    return Item(nullptr);
  }
  std::string_view word() const { return at(0).text(); }
  bool holds() const { return number() != 0; }

  std::string_view text() const {
    const bool string = reply_ != nullptr &&
                        (reply_->type == REDIS_REPLY_STRING || reply_->type == REDIS_REPLY_STATUS);
    return string ? text_of(*reply_) : std::string_view();
  }

  int64_t number() const {
    if (reply_ == nullptr) return 0;
    if (reply_->type == REDIS_REPLY_INTEGER) return reply_->integer;
    return number_in(text());
  }
  uint64_t count() const { return static_cast<uint64_t>(std::max<int64_t>(0, number())); }

 private:
  const redisReply* reply_;
};

// A list of the results of `read` for each element.
template <class Read>
auto each(Item list, Read read) {
  std::vector<decltype(read(list))> all;
  for (size_t i = 0; i < list.size(); ++i) all.push_back(read(list.at(i)));
  return all;
}

std::string string_of(Item item) {
  return std::string(item.text());
}

OwnerEnd ending_of(std::string_view word) {
  if (word == "released") return OwnerEnd::released;
  if (word == "cancelled") return OwnerEnd::cancelled;
  if (word == "removed") return OwnerEnd::removed;
  if (word == "unknown") return OwnerEnd::forgotten;
  return word == "forced" ? OwnerEnd::forced : OwnerEnd::expired;
}

lock::HolderState state_of(std::string_view word) {
  if (word == "granted") return lock::HolderState::granted;
  if (word == "revoked") return lock::HolderState::revoked;
  if (word == "cooldown") return lock::HolderState::cooldown;
  return lock::HolderState::held;
}

lock::Responsive responsive_of(std::string_view word) {
  if (word == "0") return lock::Responsive::no;
  return word == "2" ? lock::Responsive::run : lock::Responsive::yes;
}

lock::LostHow lost_of(std::string_view word) {
  if (word == "taken") return lock::LostHow::taken;
  if (word == "full") return lock::LostHow::full;
  if (word == "expired") return lock::LostHow::expired;
  if (word == "unissued") return lock::LostHow::unissued;
  if (word == "forced" || word == "removed") return lock::LostHow::forced;
  if (word == "released" || word == "cancelled") return lock::LostHow::released;
  return lock::LostHow::deleted;
}

lock::Limit limit_of(Item item) {
  return lock::Limit::slots(std::max<uint64_t>(1, item.count()));
}

Millis span_of(Item item) {
  return bounded_span(item.number());
}

// Bounded, so that the difference of two times does not overflow.
lock::ServerTime time_of(Item item) {
  return {span_of(item).count()};
}

lock::Marked marked_of(std::string_view word) {
  if (word == "no_room") return lock::Marked::no_room;
  return word == "marked" ? lock::Marked::yes : lock::Marked::no;
}

lock::AlreadyDone done_of(Item item) {
  return {time_of(item["ended"]),
          std::max(Millis(0), span_of(item["took"])),
          string_of(item["record"]),
          {item["token"].count()}};
}

lock::Holder holder_of(Item item) {
  lock::Holder holder;
  holder.owner = item["owner"].text();
  holder.state = state_of(item["state"].text());
  holder.limit = limit_of(item["limit"]);
  holder.token = {item["token"].count()};
  holder.since = time_of(item["since"]);
  holder.held = std::max(Millis(0), span_of(item["held"]));
  holder.left = std::max(Millis(0), span_of(item["left"]));
  holder.entries = item["entries"].count();
  holder.responsive = responsive_of(item["responsive"].text());
  holder.record = item["record"].text();
  holder.ttl = std::max(Millis(0), span_of(item["ttl"]));
  holder.slot = item["slot"].count();
  holder.min_hold = std::max(Millis(0), span_of(item["min_hold"]));
  holder.needs = newer_rules(item["needs"].text());
  return holder;
}

std::optional<lock::Holder> maybe_holder(Item item) {
  if (!item.is_array()) return std::nullopt;
  return holder_of(item);
}

// A closure is stored as a holder whose lease ends with it.
lock::Closure closure_of(Item item) {
  const lock::ServerTime since = time_of(item["since"]);
  const Millis left = std::max(Millis(0), span_of(item["left"]));
  const Millis held = std::max(Millis(0), span_of(item["held"]));
  return {string_of(item["owner"]),
          since,
          {since.ms + (held + left).count()},
          left,
          string_of(item["record"])};
}

std::optional<lock::Obstacle> obstacle_of(Item item) {
  if (!item.is_array()) return std::nullopt;
  if (item["state"].text() == "closed") return closure_of(item);
  return holder_of(item);
}

lock::Waiter waiter_of(Item item) {
  return {string_of(item["owner"]),
          limit_of(item["limit"]),
          time_of(item["since"]),
          std::max(Millis(0), span_of(item["waited"])),
          string_of(item["record"]),
          {item["ticket"].count()},
          1,
          std::max(Millis(0), span_of(item["silent"])),
          newer_rules(item["needs"].text())};
}

lock::Queued queued_of(Item item) {
  lock::Queued queued;
  queued.ticket = {item["ticket"].count()};
  queued.position = item["position"].count();
  if (item["look_again"].number() > 0) queued.look_again = span_of(item["look_again"]);
  queued.obstacle = obstacle_of(item["holder"]);
  if (item["slice"].number() > 0) queued.slice = span_of(item["slice"]);
  queued.forgotten = {item["forgotten"].count()};
  queued.needs = newer_rules(item["needs"].text());
  return queued;
}

lock::Superseded superseded_of(Item item) {
  lock::Superseded newer{
      string_of(item["record"]), {}, time_of(item["granted"]), time_of(item["since"])};
  if (item["number"].number() > 0) newer.number = item["number"].count();
  return newer;
}

void read_counts(lock::Snapshot& snapshot, Item item) {
  snapshot.counters = {item["runs"].count(),  item["failures"].count(), item["losses"].count(),
                       item["skips"].count(), item["done"].count(),     item["superseded"].count(),
                       item["held"].count(),  item["waited"].count()};
  snapshot.failures_in_a_row = item["streak"].count();
  if (const lock::ServerTime at = time_of(item["failed_at"]); at.ms > 0) {
    snapshot.last_failure = {at, std::max(Millis(0), span_of(item["failed_took"])),
                             string_of(item["failed_how"]), string_of(item["failed_record"])};
  }
  if (const lock::ServerTime at = time_of(item["succeeded_at"]); at.ms > 0) {
    const Millis took(at.ms - time_of(item["succeeded_from"]).ms);
    snapshot.last_success = {at, std::max(Millis(0), took), string_of(item["succeeded_record"])};
  }
}

// Returns nullopt for an unknown kind, which a later version may write.
std::optional<lock::HistoryRow> history_row_of(Item item) {
  const std::string_view kind = item["kind"].text();
  if (kind == "skip") {
    lock::Skips skips{item["times"].count(), time_of(item["first"]), time_of(item["last"])};
    skips.done = item["done"].count();
    skips.superseded = item["superseded"].count();
    skips.record = item["record"].text();
    return skips;
  }
  if (kind == "close" || kind == "open") {
    lock::Closing closing{time_of(item["at"]), time_of(item["ends"])};
    closing.record = item["record"].text();
    return closing;
  }
  if (kind != "run") return std::nullopt;
  lock::Run run{{item["token"].count()},
                time_of(item["since"]),
                time_of(item["ended"]),
                string_of(item["how"]),
                string_of(item["result"])};
  run.renewed = time_of(item["renewed"]);
  // The script quotes blanks, bars and other signs of its form. A text that it has not written is
  // shown as it is.
  const std::string note = string_of(item["note"]);
  run.note = util::percent_decoded(note).value_or(note);
  run.record = item["record"].text();
  return run;
}

}  // namespace

std::optional<lock::AcquireReply> decode_acquire(const redisReply& reply, Verdicts possible) {
  Item item(&reply);
  const std::string_view what = item.word() == "gone" ? item["kind"].text() : item.word();
  if ((what == "done" || what == "failed") && !possible.done) return std::nullopt;
  if (what == "superseded" && !possible.superseded) return std::nullopt;
  if (item.word() == "granted") {
    if (item["token"].number() <= 0) return std::nullopt;
    return lock::Granted{
        {item["token"].count()}, std::nullopt, item["slot"].count(), {item["forgotten"].count()}};
  }
  if (item.word() == "queued") return queued_of(item);
  if (item.word() == "busy") {
    return lock::Busy{
        obstacle_of(item["holder"]), item["waiters"].count(), {item["forgotten"].count()}};
  }
  if (item.word() == "done") return done_of(item);
  if (item.word() == "superseded") return superseded_of(item);
  if (item.word() == "failed") {
    return lock::FailedTooOften{item["times"].count(), {item["token"].count()}};
  }
  if (item.word() == "gone") {
    // The work was done, and has been forgotten since.
    if (what == "done") return lock::AlreadyDone{};
    if (what == "superseded") return lock::Superseded{string_of(item["note"]), {}, {}, {}};
    return lock::OwnerEnded{ending_of(what), string_of(item["note"])};
  }
  if (item.word() == "more") return lock::RetryNow{};
  return std::nullopt;
}

std::optional<lock::HeartbeatReply> decode_heartbeat(const redisReply& reply) {
  Item item(&reply);
  if (item.word() == "ask") return lock::RetryNow{};
  if (item.word() != "waits") return std::nullopt;
  return lock::StillQueued{item["position"].count(), span_of(item["slice"]),
                           string_of(item["holder"]), span_of(item["left"])};
}

std::optional<lock::RenewReply> decode_renew(const redisReply& reply, std::string_view self) {
  Item item(&reply);
  if (item.word() == "extended") return lock::Renewal::extended;
  if (item.word() == "restored") return lock::Renewal::restored;
  if (item.word() == "upgrade") return lock::Upgrade{};
  if (item.word() != "lost") return std::nullopt;
  lock::Lost lost{lost_of(item["how"].text()), maybe_holder(item["holder"]),
                  string_of(item["note"])};
  if (lost.by && lost.by->owner == self) lost.by.reset();
  if (item["untouched"].holds() && !lost.by) lost.later_holder = lock::LaterHolder::nobody;
  lost.data_lost = item["forgot"].holds();
  return lost;
}

std::optional<lock::ReleaseReply> decode_release(const redisReply& reply) {
  Item item(&reply);
  const lock::Marked marked = marked_of(item["mark"].text());
  if (item.word() == "freed" || item.word() == "kept") {
    lock::ReleaseReply freed;
    freed.marked = marked;
    freed.left = span_of(item["left"]);
    return freed;
  }
  // The owner was only queued; it has left the queue.
  if (item.word() == "left_queue") {
    return lock::ReleaseReply{OwnerEnd::cancelled, {}, std::nullopt, marked};
  }
  if (item.word() == "runs")
    return lock::ReleaseReply{OwnerEnd::unknown, {}, holder_of(item["holder"])};
  if (item.word() != "absent") return std::nullopt;
  return lock::ReleaseReply{ending_of(item["kind"].text()), string_of(item["note"]), std::nullopt,
                            marked, span_of(item["left"])};
}

std::optional<lock::CancelReply> decode_cancel(const redisReply& reply) {
  std::string_view word = Item(&reply).word();
  if (word == "left_queue") return lock::CancelReply::was_queued;
  if (word == "freed") return lock::CancelReply::was_granted;
  if (word == "absent") return lock::CancelReply::not_found;
  if (word == "holds") return lock::CancelReply::still_holds;
  return std::nullopt;
}

std::optional<lock::ForceReply> decode_force(const redisReply& reply) {
  Item item(&reply);
  if (item.word() == "free") return lock::NotHeld{};
  if (item.word() == "nomatch") return lock::NoMatch{};
  if (item.word() == "more") return lock::RetryNow{};
  if (item.word() != "forced") return std::nullopt;
  lock::Forced forced{each(item["broken"], holder_of), each(item["counting"], string_of),
                      std::nullopt, each(item["before"], string_of)};
  if (!item["next"].text().empty()) forced.next = string_of(item["next"]);
  return forced;
}

std::optional<lock::ClosureReply> decode_closure(const redisReply& reply) {
  std::string_view word = Item(&reply).word();
  if (word == "closed" || word == "opened") return lock::ClosureReply::done;
  if (word == "changed") return lock::ClosureReply::changed;
  return std::nullopt;
}

std::optional<lock::MoveReply> decode_move(const redisReply& reply) {
  std::string_view word = Item(&reply).word();
  if (word == "moved") return lock::MoveReply::moved;
  if (word == "holds") return lock::MoveReply::holds;
  if (word == "absent") return lock::MoveReply::not_found;
  return std::nullopt;
}

std::optional<lock::Forgotten> decode_forget(const redisReply& reply) {
  Item item(&reply);
  if (item.word() != "forgotten") return std::nullopt;
  return lock::Forgotten{item["marks"].count(), item["failures"].count(), item["numbers"].count()};
}

std::optional<lock::Snapshot> decode_snapshot(const redisReply& reply) {
  Item item(&reply);
  if (!item["holders"].is_array()) return std::nullopt;
  lock::Snapshot snapshot;
  snapshot.known = item["known"].holds();
  snapshot.live_holders = item["live_holders"].count();
  snapshot.holders = each(item["holders"], holder_of);
  snapshot.live_waiters = item["live_waiters"].count();
  snapshot.waiters = each(item["waiters"], waiter_of);
  snapshot.more_holders = item["more_holders"].holds();
  snapshot.more_waiters = item["more_waiters"].holds();
  snapshot.last_grant = {item["last_grant"].count()};
  snapshot.now = time_of(item["now"]);
  read_counts(snapshot, item);
  snapshot.needs = newer_rules(item["needs"].text());
  if (item["closure"].is_array()) snapshot.closure = closure_of(item["closure"]);
  if (const uint64_t number = item["newest"].count(); number > 0) {
    snapshot.newest = {number, time_of(item["newest_at"]), string_of(item["newest_record"])};
  }
  return snapshot;
}

std::optional<lock::Wake> decode_wake(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_NIL) return lock::Wake::slept;
  if (reply.type == REDIS_REPLY_ARRAY) return lock::Wake::woken;
  return std::nullopt;
}

std::optional<lock::HistoryRows> decode_history(const redisReply& reply) {
  Item list = Item(&reply)["rows"];
  if (!list.is_array()) return std::nullopt;
  lock::HistoryRows rows;
  for (size_t i = 0; i < list.size(); ++i) {
    if (auto history_row = history_row_of(list.at(i))) rows.push_back(std::move(*history_row));
  }
  return rows;
}

std::optional<lock::NamesPage> decode_names(const redisReply& reply, std::string_view prefix) {
  Item item(&reply);
  if (item.size() != 2) return std::nullopt;
  lock::NamesPage page;
  if (item.at(0).text() != "0") page.cursor = item.at(0).text();
  for (size_t i = 0; i < item.at(1).size(); ++i) {
    const KeyParts key = parts_of_key(item.at(1).at(i).text());
    const bool in_use = key.suffix == "holders" || key.suffix == "queue";
    if (key.name.empty() || key.prefix != prefix || !(in_use || key.suffix == "meta")) continue;
    page.names.emplace_back(key.name);
    if (in_use) page.in_use.emplace_back(key.name);
  }
  return page;
}

}  // namespace rlock::redis
