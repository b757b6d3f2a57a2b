// The commands on hashes and sorted sets.
#include <cmath>
#include <limits>

#include "simulation/database.hpp"
#include "simulation/database_parts.hpp"

namespace rlock::sim {
namespace {

double score_in(std::string_view text) {
  return std::strtod(std::string(text).c_str(), nullptr);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// `(17`: without 17 itself.
struct Edge {
  double score;
  bool open;
};
Edge edge_in(std::string_view text) {
  if (text == "-inf") return {-kInfinity, false};
  if (text == "+inf") return {kInfinity, false};
  const bool open = text.front() == '(';
  return {score_in(text.substr(open ? 1 : 0)), open};
}

// How many rows come before the first one within, or at the end: before the first one beyond.
size_t rows_before(const SortedSet& set, double score, bool with_equal) {
  if (with_equal && score == kInfinity) return set.size();
  const double from = with_equal ? std::nextafter(score, kInfinity) : score;
  return set.rows().order_of_key({from, std::string()});
}

}  // namespace

bool SortedSet::put(std::string_view member, double score) {
  auto [known, fresh] = scores_.try_emplace(std::string(member), score);
  if (!fresh) {
    if (known->second == score) return false;
    rows_.erase({known->second, known->first});
    known->second = score;
  }
  rows_.insert({score, known->first});
  return fresh;
}

bool SortedSet::remove(std::string_view member) {
  auto known = scores_.find(std::string(member));
  if (known == scores_.end()) return false;
  rows_.erase({known->second, known->first});
  scores_.erase(known);
  return true;
}

const double* SortedSet::score(std::string_view member) const {
  auto known = scores_.find(std::string(member));
  return known == scores_.end() ? nullptr : &known->second;
}

size_t SortedSet::rank(std::string_view member, double score) const {
  return rows_.order_of_key({score, std::string(member)});
}

Reply Database::hdel(const Words& words) {
  Hash* hash = get<Hash>(words.at(1));
  if (hash == nullptr) return Reply::of(0);
  int64_t gone = 0;
  for (size_t i = 2; i < words.size(); ++i) {
    gone += static_cast<int64_t>(hash->erase(std::string(words[i])));
  }
  drop_empty(words[1]);
  return Reply::of(gone);
}

Reply Database::hexists(const Words& words) {
  const Hash* hash = get<Hash>(words.at(1));
  return Reply::of(hash != nullptr && hash->contains(std::string(words.at(2))) ? 1 : 0);
}

Reply Database::hmget(const Words& words) {
  const Hash* hash = get<Hash>(words.at(1));
  Reply reply = Reply::array();
  for (size_t i = 2; i < words.size(); ++i) {
    auto found = hash == nullptr ? Hash::const_iterator{} : hash->find(std::string(words[i]));
    const bool there = hash != nullptr && found != hash->end();
    reply.items.push_back(there ? Reply::of(found->second) : Reply{});
  }
  return reply;
}

Reply Database::hget(const Words& words) {
  return std::move(hmget({words.at(0), words.at(1), words.at(2)}).items.front());
}

Reply Database::hgetall(const Words& words) {
  Reply reply = Reply::array();
  const Hash* hash = get<Hash>(words.at(1));
  if (hash == nullptr) return reply;
  for (const auto& [field, value] : *hash) {
    reply.items.push_back(Reply::of(field));
    reply.items.push_back(Reply::of(value));
  }
  return reply;
}

Reply Database::hlen(const Words& words) {
  const Hash* hash = get<Hash>(words.at(1));
  return Reply::of(hash == nullptr ? 0 : static_cast<int64_t>(hash->size()));
}

Reply Database::hset(const Words& words) {
  Hash& hash = make<Hash>(words.at(1));
  int64_t fresh = 0;
  for (size_t i = 2; i + 1 < words.size(); i += 2) {
    fresh += hash.insert_or_assign(std::string(words[i]), words[i + 1]).second ? 1 : 0;
  }
  return Reply::of(fresh);
}

Reply Database::zadd(const Words& words) {
  SortedSet& set = make<SortedSet>(words.at(1));
  int64_t fresh = 0;
  for (size_t i = 2; i + 1 < words.size(); i += 2) {
    fresh += set.put(words[i + 1], score_in(words[i])) ? 1 : 0;
  }
  return Reply::of(fresh);
}

Reply Database::zcard(const Words& words) {
  const SortedSet* set = get<SortedSet>(words.at(1));
  return Reply::of(set == nullptr ? 0 : static_cast<int64_t>(set->size()));
}

Reply Database::zmscore(const Words& words) {
  const SortedSet* set = get<SortedSet>(words.at(1));
  Reply reply = Reply::array();
  for (size_t i = 2; i < words.size(); ++i) {
    const double* score = set == nullptr ? nullptr : set->score(words[i]);
    reply.items.push_back(score == nullptr ? Reply{} : Reply::of(text_of(*score)));
  }
  return reply;
}

Reply Database::zscore(const Words& words) {
  return std::move(zmscore({words.at(0), words.at(1), words.at(2)}).items.front());
}

Reply Database::zrank(const Words& words) {
  const SortedSet* set = get<SortedSet>(words.at(1));
  const double* score = set == nullptr ? nullptr : set->score(words.at(2));
  if (score == nullptr) return {};
  return Reply::of(static_cast<int64_t>(set->rank(words[2], *score)));
}

Reply Database::zrem(const Words& words) {
  SortedSet* set = get<SortedSet>(words.at(1));
  if (set == nullptr) return Reply::of(0);
  int64_t gone = 0;
  for (size_t i = 2; i < words.size(); ++i) gone += set->remove(words[i]) ? 1 : 0;
  drop_empty(words[1]);
  return Reply::of(gone);
}

Reply Database::zrange(const Words& words) {
  const SortedSet* set = get<SortedSet>(words.at(1));
  const auto range = bounds_of(words.at(2), words.at(3), set == nullptr ? 0 : set->size());
  const bool scores = words.size() > 4 && words[4] == "WITHSCORES";
  if (words.size() > 4 && !scores) return Reply::error("ERR syntax error");
  Reply reply = Reply::array();
  if (range.size() == 0) return reply;
  auto row = set->rows().find_by_order(range.from);
  for (size_t i = range.from; i < range.end; ++i, ++row) {
    reply.items.push_back(Reply::of(row->second));
    if (scores) reply.items.push_back(Reply::of(text_of(row->first)));
  }
  return reply;
}

Reply Database::scores_between(const Words& words, bool count_only) {
  const SortedSet* set = get<SortedSet>(words.at(1));
  if (set == nullptr) return count_only ? Reply::of(0) : Reply::array();
  const Edge least = edge_in(words.at(2)), most = edge_in(words.at(3));
  const size_t from = rows_before(*set, least.score, least.open);
  size_t end = std::max(from, rows_before(*set, most.score, !most.open));
  if (count_only) return Reply::of(static_cast<int64_t>(end - from));
  const bool scores = words.size() > 4 && words[4] == "WITHSCORES";
  const size_t limit = scores ? 5 : 4;
  if (words.size() > limit) {
    if (words.size() != limit + 3 || words[limit] != "LIMIT" || words[limit + 1] != "0") {
      return Reply::error("ERR syntax error");
    }
    end = std::min(end, from + static_cast<size_t>(number_in(words[limit + 2])));
  }
  Reply reply = Reply::array();
  auto row = set->rows().find_by_order(from);
  for (size_t i = from; i < end; ++i, ++row) {
    reply.items.push_back(Reply::of(row->second));
    if (scores) reply.items.push_back(Reply::of(text_of(row->first)));
  }
  return reply;
}

Reply Database::zcount(const Words& words) {
  return scores_between(words, true);
}

Reply Database::zrangebyscore(const Words& words) {
  return scores_between(words, false);
}

}  // namespace rlock::sim
