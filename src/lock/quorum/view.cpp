// The inspectors' view of a lock over several servers.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "lock/quorum/merge.hpp"

namespace rlock::lock {
namespace {

// Each owner once, with the number of servers that know it; `better` chooses whose row is shown.
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

// A server that was late to learn the majority's token has a number of its own.
Token agreed_token(const Replies<Snapshot>& replies, const std::string& owner) {
  std::map<Token, size_t> tokens;
  Token best{};
  for (const Snapshot* one : answers(replies)) {
    for (const Holder& holder : one->holders) {
      if (holder.owner == owner && ++tokens[holder.token] >= tokens[best]) best = holder.token;
    }
  }
  return best;
}

void add_holders(Snapshot& all, const Replies<Snapshot>& replies, const Quorum& quorum) {
  // A server that has not learned of the majority yet still has a grant.
  auto rank = [](const Holder& holder) {
    return std::make_tuple(holder.state != HolderState::granted, holder.token, holder.left);
  };
  auto newer = [&](const Holder& a, const Holder& b) { return rank(a) > rank(b); };
  const uint64_t silent = all.silent.size();
  for (Holder& holder : by_owner(replies, &Snapshot::holders, newer)) {
    // One that is not a mere grant any more has learned the majority's token.
    if (holder.state == HolderState::granted) holder.token = agreed_token(replies, holder.owner);
    bool may_hold = holder.servers + silent >= quorum.majority();
    (may_hold ? all.holders : all.partial).push_back(std::move(holder));
  }
  auto more = [](const Holder& a, const Holder& b) { return a.servers > b.servers; };
  std::stable_sort(all.holders.begin(), all.holders.end(), more);
  all.live_holders = all.holders.size();
}

// The one that most servers have.
void add_closure(Snapshot& all, const Replies<Snapshot>& replies) {
  std::map<std::string, uint64_t> servers;
  uint64_t most = 0;
  for (const Snapshot* one : answers(replies)) {
    if (!one->closure) continue;
    const Holder& closure = *one->closure;
    if (++servers[closure.owner] <= most) continue;
    most = servers[closure.owner];
    all.closure = closure;
    all.closure->servers = most;
  }
}

// A holder of the lock may still be queued at a server where another owner was granted it.
void add_waiters(Snapshot& all, const Replies<Snapshot>& replies) {
  auto longer = [](const Waiter& a, const Waiter& b) { return a.waiting > b.waiting; };
  std::set<std::string> holding;
  for (const Holder& holder : all.holders) holding.insert(holder.owner);
  for (Waiter& waiter : by_owner(replies, &Snapshot::waiters, longer)) {
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

// The one that a majority reports: other servers may have missed the last one.
Token last_grant(const Replies<Snapshot>& replies, const Quorum& quorum) {
  std::map<Token, size_t> servers;
  for (const Snapshot* one : answers(replies)) {
    if (++servers[one->last_grant] >= quorum.majority()) return one->last_grant;
  }
  return {};
}

// Each server counts what it saw, and a server that was away has missed some: the one that saw most
// is nearest to the truth.
void merge_counts(Snapshot& all, const Snapshot& one) {
  auto more = [](uint64_t& count, uint64_t other) { count = std::max(count, other); };
  more(all.counters.runs, one.counters.runs);
  more(all.counters.failures, one.counters.failures);
  more(all.counters.losses, one.counters.losses);
  more(all.counters.skips, one.counters.skips);
  more(all.counters.done, one.counters.done);
  more(all.failures_in_a_row, one.failures_in_a_row);
  auto later = [](auto& last, const auto& other) {
    if (other && (!last || last->at < other->at)) last = other;
  };
  later(all.last_success, one.last_success);
  later(all.last_failure, one.last_failure);
  all.now = std::max(all.now, one.now);
}

using History = HistoryRows;

size_t runs_in(const History& history) {
  return static_cast<size_t>(
      std::count_if(history.begin(), history.end(),
                    [](const HistoryRow& row) { return std::holds_alternative<Run>(row); }));
}

// A server that was late to learn a run's token has the run under a number of its own.
bool same_run(const Run& a, const Run& b) {
  if (a.token == b.token) return true;
  return a.record == b.record && a.since <= b.until && b.since <= a.until;
}

bool knows(const History& history, const Run& wanted) {
  return std::any_of(history.begin(), history.end(), [&](const HistoryRow& row) {
    const auto* run = std::get_if<Run>(&row);
    return run != nullptr && same_run(*run, wanted);
  });
}

void insert(History& history, const Run& run) {
  auto older = std::find_if(history.begin(), history.end(), [&](const HistoryRow& row) {
    const auto* other = std::get_if<Run>(&row);
    return other != nullptr && other->token < run.token;
  });
  history.insert(older, run);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Those of all servers that gave no usable reply, and why.
template <class T>
std::vector<SilentServer> silent_servers(const Replies<T>& replies, const Quorum& quorum) {
  const auto errors = errors_of(replies);
  std::vector<SilentServer> silent;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i] && *replies[i]) continue;
    const std::string& server = quorum.servers[i];
    silent.push_back(
        {server, errors[i] ? error_at(server, *errors[i]) : server + ": no answer yet"});
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

Result<History> merge_answers(const Replies<History>& replies, const Quorum&) {
  const auto histories = answers(replies);
  History all = **std::max_element(
      histories.begin(), histories.end(),
      [](const History* a, const History* b) { return runs_in(*a) < runs_in(*b); });
  for (const History* history : histories) {
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
  const auto failed = std::count_if(errors.begin(), errors.end(),
                                    [](const auto& error) { return error.has_value(); });
  if (quorum.size() - static_cast<size_t>(failed) < quorum.majority()) {
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
  const auto words = words_of(cursor);
  if (member >= words.size() || words[member] == kListingDone) return std::nullopt;
  return words[member];
}

}  // namespace rlock::lock
