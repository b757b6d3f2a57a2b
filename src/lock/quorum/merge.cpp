#include "lock/quorum/merge.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "util/text.hpp"

namespace rlock::lock {
namespace {

template <class T, class Holds>
size_t count(const Replies<T>& replies, Holds holds) {
  const auto all = answers(replies);
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](const T* one) { return holds(*one); }));
}

// The first answer for which `holds` returns true.
template <class T, class Holds>
const T* find(const Replies<T>& replies, Holds holds) {
  for (const T* one : answers(replies)) {
    if (holds(*one)) return one;
  }
  return nullptr;
}

// A loss with a lower rank explains more.
size_t rank(LostHow how) {
  constexpr LostHow kRanks[] = {LostHow::forced,   LostHow::taken,   LostHow::full,
                                LostHow::released, LostHow::deleted, LostHow::expired,
                                LostHow::unissued, LostHow::gone};
  return static_cast<size_t>(std::find(std::begin(kRanks), std::end(kRanks), how) - kRanks);
}

// A server knows only its own grants, so only a majority knows that there was no later holder, or
// that the lease was lost with their data.
Lost merged_loss(const Replies<RenewReply>& replies, const Quorum& quorum) {
  const Lost* best = nullptr;
  size_t untouched = 0, data_lost = 0;
  for (const RenewReply* reply : answers(replies)) {
    const auto* lost = std::get_if<Lost>(reply);
    if (lost == nullptr) continue;
    if (best == nullptr || rank(lost->how) < rank(best->how)) best = lost;
    untouched += lost->later_holder == LaterHolder::nobody ? 1 : 0;
    data_lost += lost->data_lost ? 1 : 0;
  }
  Lost lost = best == nullptr ? Lost{} : *best;
  lost.later_holder = untouched >= quorum.majority() ? LaterHolder::nobody : LaterHolder::unknown;
  lost.data_lost = data_lost >= quorum.majority();
  return lost;
}

// A server's error preceded by its name, for a message that already names the request.
std::string error_at(const std::string& server, const Error& error) {
  size_t named = error.text.find(server);
  return named == std::string::npos ? server + ": " + error.text : error.text.substr(named);
}

// Why a server did not give a usable reply.
template <class T>
std::string silence_text(const std::optional<Result<T>>& reply, const std::string& server) {
  return reply ? error_at(server, reply->error()) : server + ": no answer yet";
}

// Some servers refused and others were silent, so neither side has a majority. That may be
// temporary.
Error no_majority(const Replies<RenewReply>& replies, const Quorum& quorum) {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < replies.size(); ++i) {
    const std::string& server = quorum.servers[i];
    if (!replies[i] || !*replies[i]) {
      reasons.push_back(silence_text(replies[i], server));
    } else if (!std::holds_alternative<Renewal>(**replies[i])) {
      const auto* lost = std::get_if<Lost>(&**replies[i]);
      reasons.push_back(
          util::format("{}: {}", server, lost != nullptr ? to_string(lost->how) : "refused"));
    }
  }
  return {ErrorKind::unavailable,
          util::format("only {} of {} servers renewed the lease, {} required: {}",
                       count_renewed(replies), quorum.size(), quorum.majority(),
                       util::joined(reasons, "; ")),
          Retry::later};
}

// `: db1:6379, db2:6379: Connection refused; db3:6379: timed out`.
std::string reasons_text(const Quorum& quorum, const std::vector<std::optional<Error>>& errors) {
  std::vector<std::pair<std::string, std::string>> reasons;  // servers, and their reason
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    const std::string& server = quorum.servers[i];
    const std::string why = error_at(server, *errors[i]).substr(server.size());
    auto same = std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) {
      return reason.second == why && why.starts_with(": ");
    });
    if (same == reasons.end()) {
      reasons.emplace_back(server, why);
    } else {
      same->first += ", " + server;
    }
  }
  std::string text;
  for (const auto& [servers, why] : reasons) util::append(text, "; ", servers + why);
  return text.empty() ? text : ": " + text;
}

// Merges broken holders, because each server may have broken a different part of the named ones.
template <class T, class Same>
void add_missing(std::vector<T>& all, const std::vector<T>& more, Same same) {
  for (const T& one : more) {
    if (std::none_of(all.begin(), all.end(), [&](const T& other) { return same(one, other); })) {
      all.push_back(one);
    }
  }
}

constexpr uint64_t Forgotten::*kForgotten[] = {&Forgotten::marks, &Forgotten::failures,
                                               &Forgotten::numbers};
constexpr uint64_t Counters::*kCounters[] = {
    &Counters::runs, &Counters::failures,   &Counters::losses,  &Counters::skips,
    &Counters::done, &Counters::superseded, &Counters::held_ms, &Counters::waited_ms};

// Merges counters. Each server counts what it saw, and a server that was unavailable has missed
// some, so the server that saw most is nearest to the truth.
template <class T, size_t kSize>
void keep_greatest(T& most, const T& one, uint64_t T::*const (&members)[kSize]) {
  static_assert(sizeof(T) == kSize * sizeof(uint64_t), "a member is not in the list");
  for (uint64_t T::*member : members) most.*member = std::max(most.*member, one.*member);
}

// A cool-down has the owner of the run that left it.
bool same_holder(const Holder& a, const Holder& b) {
  return a.owner == b.owner &&
         (a.state == HolderState::cooldown) == (b.state == HolderState::cooldown);
}

}  // namespace

size_t count_errors(const std::vector<std::optional<Error>>& errors) {
  return static_cast<size_t>(
      std::count_if(errors.begin(), errors.end(), [](const auto& e) { return e.has_value(); }));
}

size_t count_renewed(const Replies<RenewReply>& replies) {
  return count(replies, [](const auto& reply) { return std::holds_alternative<Renewal>(reply); });
}

Error too_few_servers(const Quorum& quorum, const std::vector<std::optional<Error>>& errors) {
  const size_t available = quorum.size() - count_errors(errors);
  Error error{ErrorKind::unavailable,
              util::format("only {} of {} servers available, {} required{}", available,
                           quorum.size(), quorum.majority(), reasons_text(quorum, errors)),
              Retry::later, available > 0 ? Answered::yes : Answered::no};
  size_t may_pass = 0;
  const Error* permanent = nullptr;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    error.answered = std::max(error.answered, errors[i]->answered);
    if (errors[i]->retry == Retry::later) {
      ++may_pass;
    } else if (permanent == nullptr) {
      permanent = &*errors[i];
    }
  }
  if (permanent != nullptr && available + may_pass < quorum.majority()) {
    error.kind = permanent->kind;
    error.retry = Retry::never;
    error.cause = permanent->cause;
  }
  const auto prevents = [&](auto holds) {
    const auto count = std::count_if(errors.begin(), errors.end(),
                                     [&](const auto& each) { return each && holds(*each); });
    return quorum.size() - static_cast<size_t>(count) < quorum.majority();
  };
  for (const Cause cause : {Cause::unknown_host, Cause::read_only}) {
    if (prevents([&](const Error& each) { return each.cause == cause; })) error.cause = cause;
  }
  const auto distrusts = [](const Error& each) {
    return each.kind == ErrorKind::denied && is_about_tls(each.cause);
  };
  if (prevents(distrusts)) {
    error.kind = ErrorKind::denied;
    error.cause = Cause::tls;
  }
  return error;
}

std::optional<Result<RenewReply>> merge_replies(const Replies<RenewReply>& replies,
                                                const Quorum& quorum, Collecting collecting) {
  auto count_of = [&](Renewal wanted) {
    return count(replies, [wanted](const RenewReply& reply) {
      const auto* renewal = std::get_if<Renewal>(&reply);
      return renewal != nullptr && *renewal == wanted;
    });
  };
  const size_t extended = count_of(Renewal::extended), restored = count_of(Renewal::restored);
  if (extended + restored >= quorum.majority()) {
    return RenewReply(extended > 0 ? Renewal::extended : Renewal::restored);
  }
  auto refuses = [](const RenewReply& reply) { return !std::holds_alternative<Renewal>(reply); };
  const size_t refused = count(replies, refuses);
  if (quorum.size() - refused < quorum.majority()) {
    auto upgrade = [](const RenewReply& r) { return std::holds_alternative<Upgrade>(r); };
    if (find(replies, upgrade) != nullptr) return RenewReply(Upgrade{});
    return RenewReply(merged_loss(replies, quorum));
  }
  if (collecting == Collecting::open) return std::nullopt;
  if (count_answers(replies) >= quorum.majority()) return no_majority(replies, quorum);
  return too_few_servers(quorum, errors_of(replies));
}

// A success counts as done if a majority has marked it, because every later acquire asks at least
// one of these servers.
Marked merged_mark(const Replies<ReleaseReply>& replies, const Quorum& quorum) {
  auto marks = [](const ReleaseReply& reply) { return reply.marked != Marked::no; };
  auto no_room = [](const ReleaseReply& reply) { return reply.marked == Marked::no_room; };
  if (count(replies, marks) < quorum.majority()) return Marked::no;
  return find(replies, no_room) == nullptr ? Marked::yes : Marked::no_room;
}

// Whether a server that has not replied could still make the mark count.
bool mark_is_open(const Replies<ReleaseReply>& replies, const Quorum& quorum) {
  auto marks = [](const ReleaseReply& reply) { return reply.marked != Marked::no; };
  const size_t marked = count(replies, marks);
  const auto silent = static_cast<size_t>(
      std::count_if(replies.begin(), replies.end(), [](const auto& reply) { return !reply; }));
  return marked > 0 && marked < quorum.majority() && marked + silent >= quorum.majority();
}

Millis greatest_left(const Replies<ReleaseReply>& replies) {
  Millis left{0};
  for (const ReleaseReply* one : answers(replies)) left = std::max(left, one->left);
  return left;
}

std::optional<Result<ReleaseReply>> merge_replies(const Replies<ReleaseReply>& replies,
                                                  const Quorum& quorum, Collecting collecting) {
  auto ended = [&](OwnerEnd ending) {
    return [ending](const ReleaseReply& reply) { return reply.ending == ending; };
  };
  const bool open = collecting == Collecting::open;
  if (count(replies, ended(OwnerEnd::released)) >= quorum.majority() &&
      !(open && mark_is_open(replies, quorum))) {
    return ReleaseReply{
        OwnerEnd::released, {}, std::nullopt, merged_mark(replies, quorum), greatest_left(replies)};
  }
  if (open) return std::nullopt;
  if (count_answers(replies) < quorum.majority())
    return too_few_servers(quorum, errors_of(replies));
  auto live_run = [](const ReleaseReply& reply) { return reply.run.has_value(); };
  if (const ReleaseReply* reply = find(replies, live_run)) return *reply;
  // It need not have been held at every server: if a server released it, it was held there until
  // then.
  for (OwnerEnd ending :
       {OwnerEnd::forced, OwnerEnd::released, OwnerEnd::removed, OwnerEnd::cancelled,
        OwnerEnd::expired, OwnerEnd::forgotten, OwnerEnd::unknown}) {
    if (const ReleaseReply* reply = find(replies, ended(ending))) {
      ReleaseReply merged = *reply;
      merged.marked = merged_mark(replies, quorum);
      merged.left = greatest_left(replies);
      return merged;
    }
  }
  return ReleaseReply{OwnerEnd::expired, {}};
}

Result<Forgotten> merge_answers(const Replies<Forgotten>& replies, const Quorum&) {
  Forgotten most;
  for (const Forgotten* one : answers(replies)) keep_greatest(most, *one, kForgotten);
  return most;
}

Result<CancelReply> merge_answers(const Replies<CancelReply>& replies, const Quorum& quorum) {
  auto count_of = [&](CancelReply wanted) {
    return count(replies, [wanted](CancelReply reply) { return reply == wanted; });
  };
  if (count_of(CancelReply::still_holds) >= quorum.majority()) return CancelReply::still_holds;
  for (CancelReply reply : {CancelReply::was_granted, CancelReply::was_queued}) {
    if (count_of(reply) > 0) return reply;
  }
  return CancelReply::not_found;
}

Result<ForceReply> merge_answers(const Replies<ForceReply>& replies, const Quorum& quorum) {
  auto more = [](const ForceReply& reply) { return std::holds_alternative<RetryNow>(reply); };
  if (find(replies, more) != nullptr) return ForceReply(RetryNow{});
  std::optional<Forced> all;
  for (const ForceReply* reply : answers(replies)) {
    const auto* forced = std::get_if<Forced>(reply);
    if (forced == nullptr) continue;
    if (!all) all = Forced{};
    add_missing(all->broken, forced->broken, same_holder);
    add_missing(all->unconfirmed, forced->unconfirmed, std::equal_to<>());
    add_missing(all->broken_before, forced->broken_before, std::equal_to<>());
    if (!all->next) all->next = forced->next;
  }
  if (all) return ForceReply(*std::move(all));
  auto free = [](const ForceReply& reply) { return std::holds_alternative<NotHeld>(reply); };
  auto other = [&](const ForceReply& reply) { return !free(reply); };
  if (count(replies, free) >= quorum.majority()) return ForceReply(NotHeld{});
  return *find(replies, other);
}

// ---- what inspectors see ----

namespace {

// Lists each owner once, with the number of servers that know it; `better` chooses whose row is
// shown.
template <class Row, class Better>
std::vector<Row> by_owner(const Replies<Snapshot>& replies, std::vector<Row> Snapshot::*rows,
                          Better better) {
  std::map<std::string, Row> owners;
  for (const Snapshot* one : answers(replies)) {
    for (const Row& row : one->*rows) {
      auto [known, fresh] = owners.try_emplace(row.owner, row);
      if (fresh) continue;
      const uint64_t servers = known->second.servers + 1;
      if (better(row, known->second)) known->second = row;
      known->second.servers = servers;
    }
  }
  std::vector<Row> out;
  for (auto& [owner, row] : owners) out.push_back(std::move(row));
  return out;
}

// The majority's token. A server that was late to learn it has its own token.
Token agreed_token(const Replies<Snapshot>& replies, const std::string& owner) {
  std::map<Token, size_t> tokens;
  Token best{};
  for (const Snapshot* one : answers(replies)) {
    const Holder* holder = find_holder(one->holders, owner);
    if (holder != nullptr && ++tokens[holder->token] >= tokens[best]) best = holder->token;
  }
  return best;
}

// How long a majority still has the lease, as far as the servers have answered.
std::optional<Millis> agreed_left(const Replies<Snapshot>& replies, const std::string& owner,
                                  size_t majority) {
  std::vector<std::optional<Millis>> left;
  for (const Snapshot* one : answers(replies)) {
    const Holder* holder = find_holder(one->holders, owner);
    if (holder != nullptr) left.push_back(holder->left);
  }
  // A lease that does not expire is the longest.
  std::sort(left.begin(), left.end(),
            [](const auto& a, const auto& b) { return a ? b && *a > *b : b.has_value(); });
  return left.at(std::min(left.size(), majority) - 1);
}

void add_holders(Snapshot& all, const Replies<Snapshot>& replies, const Quorum& quorum) {
  // A server that has not learned about the majority yet still has a grant.
  auto rank = [](const Holder& holder) {
    return std::make_tuple(holder.state != HolderState::granted, holder.token, holder.left);
  };
  auto newer = [&](const Holder& a, const Holder& b) { return rank(a) > rank(b); };
  const uint64_t silent = all.silent.size();
  for (Holder& holder : by_owner(replies, &Snapshot::holders, newer)) {
    // A server at which the holder is no longer a mere grant has learned the majority's token.
    if (holder.state == HolderState::granted) holder.token = agreed_token(replies, holder.owner);
    holder.left = agreed_left(replies, holder.owner, quorum.majority());
    bool may_hold = holder.servers + silent >= quorum.majority();
    (may_hold ? all.holders : all.partial).push_back(std::move(holder));
  }
  auto more = [](const Holder& a, const Holder& b) { return a.servers > b.servers; };
  std::stable_sort(all.holders.begin(), all.holders.end(), more);
  all.live_holders = all.holders.size();
}

// Adds the closure that most servers have.
void add_closure(Snapshot& all, const Replies<Snapshot>& replies) {
  std::map<std::string, uint64_t> servers;
  uint64_t most = 0;
  for (const Snapshot* one : answers(replies)) {
    if (!one->closure) continue;
    const uint64_t count = ++servers[one->closure->id];
    if (count <= most) continue;
    most = count;
    all.closure = one->closure;
    all.closure->servers = most;
  }
}

// Adds the waiters. A holder of the lock may still be queued at a server that granted it to another
// owner.
void add_waiters(Snapshot& all, const Replies<Snapshot>& replies) {
  auto longer = [](const Waiter& a, const Waiter& b) { return a.waiting > b.waiting; };
  std::set<std::string> holding;
  for (const Holder& holder : all.holders) holding.insert(holder.owner);
  std::map<std::string, Millis> silent;  // at the server of its last heartbeat
  for (const Snapshot* one : answers(replies)) {
    for (const Waiter& waiter : one->waiters) {
      Millis& least = silent.try_emplace(waiter.owner, waiter.silent).first->second;
      least = std::min(least, waiter.silent);
    }
  }
  for (Waiter& waiter : by_owner(replies, &Snapshot::waiters, longer)) {
    waiter.silent = silent[waiter.owner];
    if (!holding.contains(waiter.owner)) all.waiters.push_back(std::move(waiter));
  }
  std::sort(all.waiters.begin(), all.waiters.end(), [](const Waiter& a, const Waiter& b) {
    return std::tie(a.ticket, a.owner) < std::tie(b.ticket, b.owner);
  });
  for (const Snapshot* one : answers(replies)) {
    all.known = all.known || one->known;
    all.live_waiters = std::max(all.live_waiters, one->live_waiters);
  }
}

// The token that a majority reports, because other servers may have missed the last grant.
Token last_grant(const Replies<Snapshot>& replies, const Quorum& quorum) {
  std::map<Token, size_t> servers;
  for (const Snapshot* one : answers(replies)) {
    if (++servers[one->last_grant] >= quorum.majority()) return one->last_grant;
  }
  return {};
}

void merge_counts(Snapshot& all, const Snapshot& one) {
  keep_greatest(all.counters, one.counters, kCounters);
  all.failures_in_a_row = std::max(all.failures_in_a_row, one.failures_in_a_row);
  auto later = [](auto& last, const auto& other) {
    if (other && (!last || last->at < other->at)) last = other;
  };
  later(all.last_success, one.last_success);
  later(all.last_failure, one.last_failure);
  if (one.newest && (!all.newest || all.newest->number < one.newest->number)) {
    all.newest = one.newest;
  }
  if (!all.needs) all.needs = one.needs;
  all.now = std::max(all.now, one.now);
}

size_t runs_in(const HistoryRows& history) {
  return static_cast<size_t>(
      std::count_if(history.begin(), history.end(),
                    [](const HistoryRow& row) { return std::holds_alternative<Run>(row); }));
}

// Compares without the token, because a server that was late to learn a run's token stores the run
// under its own token.
bool same_run(const Run& a, const Run& b) {
  if (a.token == b.token) return true;
  return a.record == b.record && a.since <= b.until && b.since <= a.until;
}

bool knows(const HistoryRows& history, const Run& wanted) {
  return std::any_of(history.begin(), history.end(), [&](const HistoryRow& row) {
    const auto* run = std::get_if<Run>(&row);
    return run != nullptr && same_run(*run, wanted);
  });
}

void insert(HistoryRows& history, const Run& run) {
  auto older = std::find_if(history.begin(), history.end(), [&](const HistoryRow& row) {
    const auto* other = std::get_if<Run>(&row);
    return other != nullptr && other->token < run.token;
  });
  history.insert(older, run);
}

// The part of a cursor for a server that has listed everything, or failed. For other servers it is
// that server's own cursor.
constexpr const char* kListingDone = "-";

// All servers that did not give a usable reply, and why.
template <class T>
std::vector<SilentServer> silent_servers(const Replies<T>& replies, const Quorum& quorum) {
  std::vector<SilentServer> silent;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i] && *replies[i]) continue;
    silent.push_back({quorum.servers[i], silence_text(replies[i], quorum.servers[i])});
  }
  return silent;
}

}  // namespace

Result<Snapshot> merge_answers(const Replies<Snapshot>& replies, const Quorum& quorum) {
  Snapshot all;
  all.servers = quorum.size();
  all.silent = silent_servers(replies, quorum);
  add_holders(all, replies, quorum);
  add_closure(all, replies);
  add_waiters(all, replies);
  all.last_grant = last_grant(replies, quorum);
  for (const Snapshot* one : answers(replies)) merge_counts(all, *one);
  return all;
}

Result<HistoryRows> merge_answers(const Replies<HistoryRows>& replies, const Quorum&) {
  const auto histories = answers(replies);
  HistoryRows all = **std::max_element(
      histories.begin(), histories.end(),
      [](const HistoryRows* a, const HistoryRows* b) { return runs_in(*a) < runs_in(*b); });
  for (const HistoryRows* history : histories) {
    for (const HistoryRow& row : *history) {
      const auto* run = std::get_if<Run>(&row);
      if (run != nullptr && !knows(all, *run)) insert(all, *run);
    }
  }
  return all;
}

std::optional<Result<NamesPage>> merge_replies(const Replies<NamesPage>& replies,
                                               const Quorum& quorum, Collecting collecting) {
  if (collecting == Collecting::open) return std::nullopt;
  const auto errors = errors_of(replies);
  if (quorum.size() - count_errors(errors) < quorum.majority()) {
    return too_few_servers(quorum, errors);
  }
  NamesPage all;
  all.silent = silent_servers(replies, quorum);
  bool over = true;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (i > 0) all.cursor += ' ';
    bool answered = replies[i] && *replies[i];
    if (answered) {
      const NamesPage& page = **replies[i];
      all.names.insert(all.names.end(), page.names.begin(), page.names.end());
      all.in_use.insert(all.in_use.end(), page.in_use.begin(), page.in_use.end());
      over = over && page.cursor.empty();
    }
    all.cursor += answered && !(*replies[i])->cursor.empty() ? (*replies[i])->cursor : kListingDone;
  }
  if (over) all.cursor.clear();
  return all;
}

std::optional<std::string> cursor_at(const std::string& cursor, size_t member) {
  if (cursor.empty()) return cursor;
  const auto words = util::split(cursor, ' ');
  if (member >= words.size() || words[member] == kListingDone) return std::nullopt;
  return std::string(words[member]);
}

}  // namespace rlock::lock
