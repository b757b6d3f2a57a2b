#include "redis/store/decode.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "redis/link/reply.hpp"
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

// One element of a reply array, read leniently: a missing or unexpected one reads as empty or 0.
class Item {
 public:
  explicit Item(const redisReply* reply) : reply_(reply) {}

  bool is_array() const { return reply_ != nullptr && reply_->type == REDIS_REPLY_ARRAY; }
  size_t size() const { return is_array() ? reply_->elements : 0; }
  Item at(size_t i) const { return Item(i < size() ? reply_->element[i] : nullptr); }

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

// What `read` makes of each element.
template <class Read>
auto each(Item list, Read read) {
  std::vector<decltype(read(list))> all;
  for (size_t i = 0; i < list.size(); ++i) all.push_back(read(list.at(i)));
  return all;
}

std::string string_of(Item item) {
  return std::string(item.text());
}

// An owner that the server has forgotten counts as one whose lease expired.
OwnerEnd ending_of(std::string_view word) {
  if (word == "released") return OwnerEnd::released;
  if (word == "cancelled") return OwnerEnd::cancelled;
  if (word == "removed") return OwnerEnd::removed;
  return word == "forced" ? OwnerEnd::forced : OwnerEnd::expired;
}

lock::HolderState state_of(std::string_view word) {
  if (word == "granted") return lock::HolderState::granted;
  if (word == "revoked") return lock::HolderState::revoked;
  if (word == "cooldown") return lock::HolderState::cooldown;
  if (word == "closed") return lock::HolderState::closed;
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

lock::Marked marked_of(std::string_view word) {
  if (word == "no_room") return lock::Marked::no_room;
  return word == "marked" ? lock::Marked::yes : lock::Marked::no;
}

lock::AlreadyDone done_of(Item item) {
  return {{item.at(1).number()},
          std::max(Millis(0), span_of(item.at(2))),
          std::string(item.at(3).text()),
          {item.at(4).count()}};
}

lock::Holder holder_of(Item item) {
  lock::Holder holder;
  holder.owner = item.at(0).text();
  holder.state = state_of(item.at(1).text());
  holder.limit = limit_of(item.at(2));
  holder.token = {item.at(3).count()};
  holder.since = {item.at(4).number()};
  holder.held = std::max(Millis(0), span_of(item.at(5)));
  holder.left = span_of(item.at(6));
  holder.entries = item.at(7).count();
  holder.responsive = responsive_of(item.at(8).text());
  holder.record = item.at(9).text();
  holder.ttl = std::max(Millis(0), span_of(item.at(10)));
  holder.slot = item.at(11).count();
  return holder;
}

std::optional<lock::Holder> maybe_holder(Item item) {
  if (!item.is_array()) return std::nullopt;
  return holder_of(item);
}

lock::Waiter waiter_of(Item item) {
  return {std::string(item.at(0).text()), limit_of(item.at(1)),
          {item.at(2).number()},          std::max(Millis(0), span_of(item.at(3))),
          std::string(item.at(4).text()), {item.at(5).count()}};
}

lock::Queued queued_of(Item item) {
  lock::Queued queued;
  queued.ticket = {item.at(1).count()};
  queued.position = item.at(2).count();
  if (item.at(3).number() > 0) queued.look_again = span_of(item.at(3));
  queued.holder = maybe_holder(item.at(4));
  if (item.at(5).number() > 0) queued.slice = span_of(item.at(5));
  queued.forgotten = {item.at(6).count()};
  return queued;
}

// What is counted, as inspect.lua lists it.
void read_counts(lock::Snapshot& snapshot, Item list) {
  auto time_at = [&](size_t i) { return lock::ServerTime{list.at(i).number()}; };
  auto text_at = [&](size_t i) { return std::string(list.at(i).text()); };
  snapshot.counters = {list.at(0).count(), list.at(1).count(), list.at(2).count(),
                       list.at(3).count(), list.at(4).count()};
  snapshot.failures_in_a_row = list.at(5).count();
  if (time_at(6).ms > 0) {
    snapshot.last_failure = {time_at(6), std::max(Millis(0), span_of(list.at(7))), text_at(8),
                             text_at(12)};
  }
  if (time_at(10).ms > 0) {
    const Millis took = bounded_span(time_at(10).ms - time_at(9).ms);
    snapshot.last_success = {time_at(10), std::max(Millis(0), took), text_at(11)};
  }
}

// NAME of `prefix{NAME}:suffix`, where the suffix is one that every lock in use or remembered has.
std::string_view name_in(std::string_view key, std::string_view prefix) {
  constexpr std::array<std::string_view, 3> kSuffixes{"}:meta", "}:holders", "}:queue"};
  if (!key.starts_with(prefix)) return {};
  key.remove_prefix(prefix.size());
  if (!key.starts_with('{')) return {};
  for (std::string_view suffix : kSuffixes) {
    if (key.ends_with(suffix)) return key.substr(1, key.size() - 1 - suffix.size());
  }
  return {};
}

std::string_view next_word(std::string_view& text) {
  return util::take_until(text, ' ');
}

uint64_t next_number(std::string_view& text) {
  return util::parse_number<uint64_t>(next_word(text)).value_or(0);
}

lock::ServerTime next_time(std::string_view& text) {
  return {static_cast<int64_t>(next_number(text))};
}

// Splits `-+57 NOTE RECORD`: the length of an operator's note, the note and the record.
void split_note(lock::Run& run, std::string_view row) {
  const size_t plus = run.result.find('+');
  if (plus != std::string::npos) {
    std::string_view digits = std::string_view(run.result).substr(plus + 1);
    const size_t length = std::min<size_t>(next_number(digits), row.size());
    run.note = row.substr(0, length);
    row.remove_prefix(std::min(row.size(), length + 1));
    run.result.resize(plus);
  }
  run.record = row;
}

// A row of the history as the scripts write it; nullopt for any other text.
std::optional<lock::HistoryRow> history_row_of(std::string_view row) {
  std::string_view kind = next_word(row);
  if (kind == "skip") {
    std::string_view counts = next_word(row);
    auto next_count = [&counts] {
      return util::parse_number<uint64_t>(util::take_until(counts, '/')).value_or(0);
    };
    lock::Skips skips{next_count(), next_time(row), next_time(row)};
    skips.done = next_count();
    skips.superseded = next_count();
    skips.record = row;
    return skips;
  }
  if (kind == "close" || kind == "open") {
    lock::Closing closing{next_time(row), kind == "close" ? next_time(row) : lock::ServerTime{}};
    closing.record = row;
    return closing;
  }
  if (kind != "run") return std::nullopt;
  lock::Run run{{next_number(row)},
                next_time(row),
                next_time(row),
                std::string(next_word(row)),
                std::string(next_word(row))};
  split_note(run, row);
  constexpr std::string_view kRenewed = "renewed:";
  if (run.result.starts_with(kRenewed)) {
    run.renewed = {util::parse_number<int64_t>(run.result.substr(kRenewed.size())).value_or(0)};
    run.result = "-";
  }
  return run;
}

}  // namespace

std::optional<lock::AcquireReply> decode_acquire(const redisReply& reply, Verdicts possible) {
  Item item(&reply);
  std::string_view word = item.at(0).text();
  const std::string_view what = word == "gone" ? item.at(1).text() : word;
  if ((what == "done" || what == "failed") && !possible.done) return std::nullopt;
  if (what == "superseded" && !possible.superseded) return std::nullopt;
  if (word == "granted") {
    if (item.at(1).number() <= 0) return std::nullopt;
    return lock::Granted{
        {item.at(1).count()}, std::nullopt, item.at(2).count(), {item.at(3).count()}};
  }
  if (word == "queued") return queued_of(item);
  if (word == "busy") {
    return lock::Busy{maybe_holder(item.at(2)), item.at(1).count(), {item.at(3).count()}};
  }
  if (word == "done") return done_of(item);
  if (word == "superseded") return lock::Superseded{std::string(item.at(1).text())};
  if (word == "failed") return lock::FailedTooOften{item.at(1).count(), {item.at(2).count()}};
  if (word == "gone") {
    // It was done, and has been forgotten since.
    if (item.at(1).text() == "done") return lock::AlreadyDone{};
    if (item.at(1).text() == "superseded") return lock::Superseded{std::string(item.at(2).text())};
    return lock::OwnerEnded{ending_of(item.at(1).text()), std::string(item.at(2).text())};
  }
  if (word == "more") return lock::RetryNow{};
  return std::nullopt;
}

std::optional<lock::RenewReply> decode_renew(const redisReply& reply, std::string_view self) {
  Item item(&reply);
  std::string_view word = item.at(0).text();
  if (word == "extended") return lock::Renewal::extended;
  if (word == "put_back") return lock::Renewal::put_back;
  if (word == "upgrade") return lock::Upgrade{};
  if (word != "lost") return std::nullopt;
  lock::Lost lost{lost_of(item.at(1).text()), maybe_holder(item.at(3)),
                  std::string(item.at(2).text())};
  if (lost.by && lost.by->owner == self) lost.by.reset();
  if (item.at(4).number() == 1 && !lost.by) lost.later_holder = lock::LaterHolder::nobody;
  return lost;
}

std::optional<lock::ReleaseReply> decode_release(const redisReply& reply) {
  Item item(&reply);
  std::string_view word = item.at(0).text();
  if (word == "freed" || word == "kept") {
    lock::ReleaseReply freed;
    freed.marked = marked_of(item.at(1).text());
    return freed;
  }
  // It was only queued; its position was given up.
  if (word == "left_queue") {
    return lock::ReleaseReply{OwnerEnd::cancelled, {}, std::nullopt, marked_of(item.at(1).text())};
  }
  if (word == "runs") return lock::ReleaseReply{OwnerEnd::unknown, {}, holder_of(item.at(1))};
  if (word != "absent") return std::nullopt;
  return lock::ReleaseReply{ending_of(item.at(1).text()), std::string(item.at(2).text()),
                            std::nullopt, marked_of(item.at(3).text())};
}

std::optional<lock::CancelReply> decode_cancel(const redisReply& reply) {
  std::string_view word = Item(&reply).at(0).text();
  if (word == "left_queue") return lock::CancelReply::was_queued;
  if (word == "freed") return lock::CancelReply::was_granted;
  if (word == "absent") return lock::CancelReply::not_found;
  if (word == "holds") return lock::CancelReply::still_holds;
  return std::nullopt;
}

std::optional<lock::ForceReply> decode_force(const redisReply& reply) {
  Item item(&reply);
  std::string_view word = item.at(0).text();
  if (word == "free") return lock::NotHeld{};
  if (word == "nomatch") return lock::NoMatch{};
  if (word == "more") return lock::RetryNow{};
  if (word != "forced") return std::nullopt;
  lock::Forced forced{each(item.at(1), holder_of), each(item.at(2), string_of), std::nullopt,
                      each(item.at(4), string_of)};
  if (!item.at(3).text().empty()) forced.next = string_of(item.at(3));
  return forced;
}

std::optional<lock::ClosureReply> decode_closure(const redisReply& reply) {
  std::string_view word = Item(&reply).at(0).text();
  if (word == "closed" || word == "opened") return lock::ClosureReply::done;
  if (word == "changed") return lock::ClosureReply::changed;
  return std::nullopt;
}

std::optional<lock::MoveReply> decode_move(const redisReply& reply) {
  std::string_view word = Item(&reply).at(0).text();
  if (word == "moved") return lock::MoveReply::moved;
  if (word == "holds") return lock::MoveReply::holds;
  if (word == "absent") return lock::MoveReply::not_found;
  return std::nullopt;
}

std::optional<lock::Forgotten> decode_forget(const redisReply& reply) {
  Item item(&reply);
  if (item.at(0).text() != "forgotten") return std::nullopt;
  return lock::Forgotten{item.at(1).count(), item.at(2).count(), item.at(3).count()};
}

std::optional<lock::Snapshot> decode_snapshot(const redisReply& reply) {
  Item item(&reply);
  if (item.size() < 7) return std::nullopt;
  lock::Snapshot snapshot;
  snapshot.known = item.at(0).number() != 0;
  snapshot.live_holders = item.at(1).count();
  snapshot.holders = each(item.at(2), holder_of);
  snapshot.live_waiters = item.at(3).count();
  snapshot.waiters = each(item.at(4), waiter_of);
  snapshot.more_holders = item.at(5).number() != 0;
  snapshot.more_waiters = item.at(6).number() != 0;
  snapshot.last_grant = {item.at(7).count()};
  snapshot.now = {item.at(8).number()};
  read_counts(snapshot, item.at(9));
  snapshot.closure = maybe_holder(item.at(11));
  return snapshot;
}

std::optional<lock::Wake> decode_wake(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_NIL) return lock::Wake::slept;
  if (reply.type == REDIS_REPLY_ARRAY) return lock::Wake::woken;
  return std::nullopt;
}

std::optional<lock::HistoryRows> decode_history(const redisReply& reply) {
  Item list = Item(&reply).at(10);
  if (!list.is_array()) return std::nullopt;
  lock::HistoryRows rows;
  for (size_t i = 0; i < list.size(); ++i) {
    if (auto history_row = history_row_of(list.at(i).text()))
      rows.push_back(std::move(*history_row));
  }
  return rows;
}

std::optional<lock::NamesPage> decode_names(const redisReply& reply, std::string_view prefix) {
  Item item(&reply);
  if (item.size() != 2) return std::nullopt;
  lock::NamesPage page;
  if (item.at(0).text() != "0") page.cursor = item.at(0).text();
  for (size_t i = 0; i < item.at(1).size(); ++i) {
    std::string_view name = name_in(item.at(1).at(i).text(), prefix);
    if (name.empty()) continue;
    page.names.emplace_back(name);
    if (!item.at(1).at(i).text().ends_with("}:meta")) page.in_use.emplace_back(name);
  }
  return page;
}

Millis bounded_span(int64_t millis) {
  constexpr int64_t kMost = int64_t{1} << 53;  // 285,000 years
  return Millis(std::clamp(millis, -kMost, kMost));
}

}  // namespace rlock::redis
