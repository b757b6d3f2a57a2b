// What a lock over several servers looks like, to those who only look.
#include <algorithm>
#include <map>
#include <set>

#include "lock/quorum_judge.hpp"

namespace rlock::lock {
namespace {

using util::Result;

// Each owner once, with the number of servers that know it; `better` chooses whose row is shown.
template <class Row, class Better>
std::vector<Row> by_owner(const Ballots<Snapshot>& ballots, std::vector<Row> Snapshot::*rows,
                          Better better) {
  std::map<std::string, Row> owners;
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    for (const Row& row : (**ballot).*rows) {
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

// A server that was late to hear of the majority's token has a number of its own.
Token agreed_token(const Ballots<Snapshot>& ballots, const std::string& owner) {
  std::map<Token, size_t> tokens;
  Token best{};
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    for (const Holder& holder : (*ballot)->holders) {
      if (holder.owner == owner && ++tokens[holder.token] >= tokens[best]) best = holder.token;
    }
  }
  return best;
}

void add_holders(Snapshot& all, const Ballots<Snapshot>& ballots, const Electorate& electorate) {
  // One that has not heard of the majority yet still has a grant.
  auto rank = [](const Holder& holder) {
    return std::make_pair(holder.state != HolderState::granted, holder.token);
  };
  auto newer = [&](const Holder& a, const Holder& b) { return rank(a) > rank(b); };
  const uint64_t silent = all.silent.size();
  for (Holder& holder : by_owner(ballots, &Snapshot::holders, newer)) {
    holder.token = agreed_token(ballots, holder.owner);
    bool may_hold = holder.servers + silent >= electorate.majority();
    (may_hold ? all.holders : all.partial).push_back(std::move(holder));
  }
  auto more = [](const Holder& a, const Holder& b) { return a.servers > b.servers; };
  std::stable_sort(all.holders.begin(), all.holders.end(), more);
  all.live_holders = all.holders.size();
}

// One that holds the lock may still stand in line at a server that another had taken.
void add_waiters(Snapshot& all, const Ballots<Snapshot>& ballots) {
  auto longer = [](const Waiter& a, const Waiter& b) { return a.waiting > b.waiting; };
  std::set<std::string> holding;
  for (const Holder& holder : all.holders) holding.insert(holder.owner);
  for (Waiter& waiter : by_owner(ballots, &Snapshot::waiters, longer)) {
    if (!holding.contains(waiter.owner)) all.waiters.push_back(std::move(waiter));
  }
  std::sort(all.waiters.begin(), all.waiters.end(), [](const Waiter& a, const Waiter& b) {
    return std::tie(a.ticket, a.owner) < std::tie(b.ticket, b.owner);
  });
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    all.known = all.known || (*ballot)->known;
    all.live_waiters = std::max(all.live_waiters, (*ballot)->live_waiters);
  }
}

// What a majority says; else some of them may not have heard of the last one.
Token last_grant(const Ballots<Snapshot>& ballots, const Electorate& electorate) {
  std::map<Token, size_t> servers;
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    const Token token = (*ballot)->last_grant;
    if (++servers[token] >= electorate.majority()) return token;
  }
  return {};
}

using History = std::vector<Past>;

size_t runs_in(const History& history) {
  return static_cast<size_t>(std::count_if(history.begin(), history.end(), [](const Past& past) {
    return std::holds_alternative<PastRun>(past);
  }));
}

// A server that was late to hear of a run's token has the run under a number of its own.
bool same_run(const PastRun& a, const PastRun& b) {
  if (a.token == b.token) return true;
  return a.record == b.record && a.since <= b.until && b.since <= a.until;
}

bool knows(const History& history, const PastRun& wanted) {
  return std::any_of(history.begin(), history.end(), [&](const Past& past) {
    const auto* run = std::get_if<PastRun>(&past);
    return run != nullptr && same_run(*run, wanted);
  });
}

void insert(History& history, const PastRun& run) {
  auto older = std::find_if(history.begin(), history.end(), [&](const Past& past) {
    const auto* other = std::get_if<PastRun>(&past);
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

}  // namespace

std::optional<Result<Snapshot>> judge(const Ballots<Snapshot>& ballots,
                                      const Electorate& electorate, Polls polls) {
  if (polls == Polls::open) return std::nullopt;
  const auto errors = errors_of(ballots);
  if (answers(ballots) < electorate.majority()) return too_few(electorate, errors);
  Snapshot all;
  all.servers = electorate.size();
  for (size_t i = 0; i < ballots.size(); ++i) {
    if (ballots[i] && *ballots[i]) continue;
    const std::string& server = electorate.servers[i];
    all.silent.push_back(
        {server, errors[i] ? trouble_at(server, *errors[i]) : server + ": no answer yet"});
  }
  add_holders(all, ballots, electorate);
  add_waiters(all, ballots);
  all.last_grant = last_grant(ballots, electorate);
  return all;
}

std::optional<Result<History>> judge(const Ballots<History>& ballots, const Electorate& electorate,
                                     Polls polls) {
  if (polls == Polls::open) return std::nullopt;
  if (answers(ballots) < electorate.majority()) return too_few(electorate, errors_of(ballots));
  const History* longest = nullptr;
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    if (longest == nullptr || runs_in(**ballot) > runs_in(*longest)) longest = &**ballot;
  }
  History all = *longest;
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    for (const Past& past : **ballot) {
      const auto* run = std::get_if<PastRun>(&past);
      if (run != nullptr && !knows(all, *run)) insert(all, *run);
    }
  }
  return all;
}

std::optional<Result<NamesPage>> judge(const Ballots<NamesPage>& ballots,
                                       const Electorate& electorate, Polls polls) {
  if (polls == Polls::open) return std::nullopt;
  const auto errors = errors_of(ballots);
  const auto failed = std::count_if(errors.begin(), errors.end(),
                                    [](const auto& error) { return error.has_value(); });
  if (electorate.size() - static_cast<size_t>(failed) < electorate.majority()) {
    return too_few(electorate, errors);
  }
  NamesPage all;
  bool over = true;
  for (size_t i = 0; i < ballots.size(); ++i) {
    if (i > 0) all.cursor += ' ';
    bool answered = ballots[i] && *ballots[i];
    if (answered) {
      const NamesPage& page = **ballots[i];
      all.names.insert(all.names.end(), page.names.begin(), page.names.end());
      over = over && page.cursor.empty();
    }
    all.cursor += answered && !(*ballots[i])->cursor.empty() ? (*ballots[i])->cursor : kListed;
  }
  if (over) all.cursor.clear();
  return all;
}

std::optional<std::string> cursor_at(const std::string& cursor, size_t member) {
  if (cursor.empty()) return cursor;
  const auto words = words_of(cursor);
  if (member >= words.size() || words[member] == kListed) return std::nullopt;
  return words[member];
}

}  // namespace rlock::lock
