#include "fake_redis/database.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace rlock::fake {
namespace {

struct WrongType {};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t number_in(std::string_view text) {
  return std::strtoll(std::string(text).c_str(), nullptr, 10);
}

double score_in(std::string_view text) {
  return std::strtod(std::string(text).c_str(), nullptr);
}

// A part of a list, in whose bounds -1 is the last element.
struct Bounds {
  size_t from = 0, end = 0;
  size_t size() const { return end - from; }
};

Bounds bounds_of(std::string_view first, std::string_view last, size_t size) {
  const auto all = static_cast<int64_t>(size);
  int64_t from = number_in(first), to = number_in(last);
  from = std::max<int64_t>(0, from < 0 ? from + all : from);
  to = std::min(all - 1, to < 0 ? to + all : to);
  if (from > to) return {};
  return {static_cast<size_t>(from), static_cast<size_t>(to) + 1};
}

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

Reply count(size_t number) {
  return Reply::of(static_cast<int64_t>(number));
}

Reply rows_of(const SortedSet& set, Bounds range, bool scores) {
  Reply reply = Reply::array();
  if (range.size() == 0) return reply;
  auto row = set.rows().find_by_order(range.from);
  for (size_t i = range.from; i < range.end; ++i, ++row) {
    reply.items.push_back(Reply::of(row->second));
    if (scores) reply.items.push_back(Reply::of(text_of(row->first)));
  }
  return reply;
}

Reply field(const Hash& hash, std::string_view name) {
  const auto found = hash.find(std::string(name));
  return found == hash.end() ? Reply{} : Reply::of(found->second);
}

Reply score(const SortedSet& set, std::string_view member) {
  const double* found = set.score(member);
  return found == nullptr ? Reply{} : Reply::of(text_of(*found));
}

// What `one` gives for each word from `first` on.
template <class One>
Reply each(const Database::Words& words, size_t first, One one) {
  Reply reply = Reply::array();
  for (size_t i = first; i < words.size(); ++i) reply.items.push_back(one(words[i]));
  return reply;
}

// For how many words from `first` on it is so.
template <class One>
Reply count_of(const Database::Words& words, size_t first, One one) {
  return count(static_cast<size_t>(
      std::count_if(words.begin() + static_cast<std::ptrdiff_t>(first), words.end(), one)));
}

}  // namespace

std::string text_of(double score) {
  const double whole = std::trunc(score);
  if (whole == score && std::abs(score) < 1e16) {
    return std::to_string(static_cast<int64_t>(score));
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", score);
  return text;
}

void append_wire(std::string& out, const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      out += "$-1\r\n";
      return;
    case Reply::Type::number:
      out += ":" + std::to_string(reply.number) + "\r\n";
      return;
    case Reply::Type::text:
      out += "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
      return;
    case Reply::Type::status:
      out += "+" + reply.text + "\r\n";
      return;
    case Reply::Type::error:
      out += "-" + reply.text + "\r\n";
      return;
    case Reply::Type::array:
      out += "*" + std::to_string(reply.items.size()) + "\r\n";
      for (const Reply& item : reply.items) append_wire(out, item);
  }
}

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

Value* Database::find(std::string_view key) {
  auto found = values_.find(std::string(key));
  if (found == values_.end()) return nullptr;
  if (found->second.expires < 0 || now() <= found->second.expires) return &found->second;
  values_.erase(found);
  return nullptr;
}

std::vector<std::string> Database::keys() {
  std::erase_if(values_, [this](const auto& row) {
    return row.second.expires >= 0 && now() > row.second.expires;
  });
  std::vector<std::string> all;
  for (const auto& [key, value] : values_) all.push_back(key);
  std::sort(all.begin(), all.end());
  return all;
}

template <class T>
T* Database::get(std::string_view key) {
  Value* value = find(key);
  if (value == nullptr) return nullptr;
  T* data = std::get_if<T>(&value->data);
  if (data == nullptr) throw WrongType{};
  return data;
}

template std::string* Database::get(std::string_view);
template Hash* Database::get(std::string_view);
template SortedSet* Database::get(std::string_view);

template <class T>
const T& Database::read(std::string_view key) {
  static const T none;
  const T* data = get<T>(key);
  return data == nullptr ? none : *data;
}

template <class T>
T& Database::make(std::string_view key) {
  if (T* data = get<T>(key)) return *data;
  return values_[std::string(key)].data.emplace<T>();
}

void Database::drop_empty(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return;
  const bool empty = std::visit([](const auto& data) { return data.size() == 0; }, value->data);
  if (empty && !std::holds_alternative<std::string>(value->data)) values_.erase(std::string(key));
}

std::string Database::pop(const std::string& key) {
  List* list = get<List>(key);
  if (list == nullptr || list->empty()) return {};
  std::string first = std::move(list->front());
  list->pop_front();
  drop_empty(key);
  return first;
}

Reply Database::expire_at(std::string_view key, int64_t ms) {
  Value* value = find(key);
  if (value == nullptr) return Reply::of(0);
  if (ms <= now()) {
    values_.erase(std::string(key));
  } else {
    value->expires = ms;
  }
  return Reply::of(1);
}

Reply Database::set(const Words& words) {
  int64_t expires = -1;
  const Value* before = find(words[1]);
  for (size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "KEEPTTL") {
      expires = before == nullptr ? -1 : before->expires;
    } else if (words[i] == "PXAT") {
      expires = number_in(words.at(++i));
    } else {
      return Reply::error("ERR syntax error");
    }
  }
  values_[std::string(words[1])] = Value{std::string(words[2]), expires};
  if (expires >= 0 && expires <= now()) values_.erase(std::string(words[1]));
  return Reply::ok();
}

Reply Database::rows_between(const Words& words, bool count_only) {
  const auto& set = read<SortedSet>(words[1]);
  const Edge least = edge_in(words[2]), most = edge_in(words[3]);
  const size_t from = rows_before(set, least.score, least.open);
  size_t end = std::max(from, rows_before(set, most.score, !most.open));
  if (count_only) return count(end - from);
  const bool scores = words.size() > 4 && words[4] == "WITHSCORES";
  const size_t limit = scores ? 5 : 4;
  if (words.size() > limit) {
    if (words.size() != limit + 3 || words[limit] != "LIMIT" || words[limit + 1] != "0") {
      return Reply::error("ERR syntax error");
    }
    end = std::min(end, from + static_cast<size_t>(number_in(words[limit + 2])));
  }
  return rows_of(set, {from, end}, scores);
}

const std::unordered_map<std::string_view, Database::Command>& Database::commands() {
  using D = Database;
  using W = Words;
  static const Command kRows[] = {
      // ---- of keys ----
      {"DEL", -2,
       [](D& d, const W& w) {
         return count_of(w, 1, [&](std::string_view key) {
           return d.find(key) != nullptr && d.values_.erase(std::string(key)) > 0;
         });
       }},
      {"EXISTS", -2,
       [](D& d, const W& w) {
         return count_of(w, 1, [&](std::string_view key) { return d.find(key) != nullptr; });
       }},
      {"PEXPIRE", -3,
       [](D& d, const W& w) { return d.expire_at(w[1], d.now() + number_in(w[2])); }},
      {"PEXPIREAT", -3, [](D& d, const W& w) { return d.expire_at(w[1], number_in(w[2])); }},
      {"PTTL", 2,
       [](D& d, const W& w) {
         const Value* value = d.find(w[1]);
         if (value == nullptr) return Reply::of(-2);
         const auto left = value->expires - d.now();
         return Reply::of(value->expires < 0 ? -1 : std::max<int64_t>(0, left));
       }},
      {"TIME", 1,
       [](D& d, const W&) {
         return Reply::array({Reply::of(std::to_string(d.micros_ / 1'000'000)),
                              Reply::of(std::to_string(d.micros_ % 1'000'000))});
       }},
      // ---- of strings ----
      {"GET", 2,
       [](D& d, const W& w) {
         const auto* text = d.get<std::string>(w[1]);
         return text == nullptr ? Reply{} : Reply::of(*text);
       }},
      {"SET", -3, [](D& d, const W& w) { return d.set(w); }},
      // ---- of hashes ----
      {"HDEL", -3,
       [](D& d, const W& w) {
         auto* hash = d.get<Hash>(w[1]);
         const Reply gone = count_of(w, 2, [&](std::string_view name) {
           return hash != nullptr && hash->erase(std::string(name)) > 0;
         });
         d.drop_empty(w[1]);
         return gone;
       }},
      {"HEXISTS", 3,
       [](D& d, const W& w) {
         return Reply::of(field(d.read<Hash>(w[1]), w[2]).type == Reply::Type::nil ? 0 : 1);
       }},
      {"HGET", 3, [](D& d, const W& w) { return field(d.read<Hash>(w[1]), w[2]); }},
      {"HGETALL", 2,
       [](D& d, const W& w) {
         Reply reply = Reply::array();
         for (const auto& [name, value] : d.read<Hash>(w[1])) {
           reply.items.push_back(Reply::of(name));
           reply.items.push_back(Reply::of(value));
         }
         return reply;
       }},
      {"HLEN", 2, [](D& d, const W& w) { return count(d.read<Hash>(w[1]).size()); }},
      {"HMGET", -3,
       [](D& d, const W& w) {
         const auto& hash = d.read<Hash>(w[1]);
         return each(w, 2, [&](std::string_view name) { return field(hash, name); });
       }},
      {"HSET", -4,
       [](D& d, const W& w) {
         auto& hash = d.make<Hash>(w[1]);
         size_t fresh = 0;
         for (size_t i = 2; i + 1 < w.size(); i += 2) {
           fresh += hash.insert_or_assign(std::string(w[i]), w[i + 1]).second ? 1 : 0;
         }
         return count(fresh);
       }},
      // ---- of lists ----
      {"LINDEX", 3,
       [](D& d, const W& w) {
         const auto& list = d.read<List>(w[1]);
         const auto at = bounds_of(w[2], w[2], list.size());
         return at.size() == 0 ? Reply{} : Reply::of(list[at.from]);
       }},
      {"LLEN", 2, [](D& d, const W& w) { return count(d.read<List>(w[1]).size()); }},
      {"LPUSH", -3,
       [](D& d, const W& w) {
         auto& list = d.make<List>(w[1]);
         for (size_t i = 2; i < w.size(); ++i) list.emplace_front(w[i]);
         d.pushed_.emplace_back(w[1]);
         return count(list.size());
       }},
      {"LRANGE", 4,
       [](D& d, const W& w) {
         const auto& list = d.read<List>(w[1]);
         const auto range = bounds_of(w[2], w[3], list.size());
         Reply reply = Reply::array();
         for (size_t i = range.from; i < range.end; ++i) {
           reply.items.push_back(Reply::of(list[i]));
         }
         return reply;
       }},
      {"LSET", 4,
       [](D& d, const W& w) {
         auto* list = d.get<List>(w[1]);
         if (list == nullptr) return Reply::error("ERR no such key");
         const auto at = bounds_of(w[2], w[2], list->size());
         if (at.size() == 0) return Reply::error("ERR index out of range");
         (*list)[at.from] = w[3];
         return Reply::ok();
       }},
      {"LTRIM", 4,
       [](D& d, const W& w) {
         auto* list = d.get<List>(w[1]);
         if (list == nullptr) return Reply::ok();
         const auto range = bounds_of(w[2], w[3], list->size());
         const auto first = list->begin() + static_cast<std::ptrdiff_t>(range.from);
         *list = List(first, first + static_cast<std::ptrdiff_t>(range.size()));
         d.drop_empty(w[1]);
         return Reply::ok();
       }},
      // ---- of sorted sets ----
      {"ZADD", -4,
       [](D& d, const W& w) {
         auto& set = d.make<SortedSet>(w[1]);
         size_t fresh = 0;
         for (size_t i = 2; i + 1 < w.size(); i += 2) {
           fresh += set.put(w[i + 1], score_in(w[i])) ? 1 : 0;
         }
         return count(fresh);
       }},
      {"ZCARD", 2, [](D& d, const W& w) { return count(d.read<SortedSet>(w[1]).size()); }},
      {"ZCOUNT", 4, [](D& d, const W& w) { return d.rows_between(w, true); }},
      {"ZMSCORE", -3,
       [](D& d, const W& w) {
         const auto& set = d.read<SortedSet>(w[1]);
         return each(w, 2, [&](std::string_view member) { return score(set, member); });
       }},
      {"ZRANGE", -4,
       [](D& d, const W& w) {
         const auto& set = d.read<SortedSet>(w[1]);
         const bool scores = w.size() > 4 && w[4] == "WITHSCORES";
         if (w.size() > 4 && !scores) return Reply::error("ERR syntax error");
         return rows_of(set, bounds_of(w[2], w[3], set.size()), scores);
       }},
      {"ZRANGEBYSCORE", -4, [](D& d, const W& w) { return d.rows_between(w, false); }},
      {"ZRANK", 3,
       [](D& d, const W& w) {
         const auto& set = d.read<SortedSet>(w[1]);
         const double* found = set.score(w[2]);
         if (found == nullptr) return Reply{};
         return count(set.rows().order_of_key({*found, std::string(w[2])}));
       }},
      {"ZREM", -3,
       [](D& d, const W& w) {
         auto* set = d.get<SortedSet>(w[1]);
         const Reply gone = count_of(
             w, 2, [&](std::string_view member) { return set != nullptr && set->remove(member); });
         d.drop_empty(w[1]);
         return gone;
       }},
      {"ZSCORE", 3, [](D& d, const W& w) { return score(d.read<SortedSet>(w[1]), w[2]); }},
  };
  static const auto kByName = [] {
    std::unordered_map<std::string_view, Command> all;
    for (const Command& row : kRows) all.emplace(row.name, row);
    return all;
  }();
  return kByName;
}

bool Database::knows(std::string_view command) {
  return command == "BLPOP" || commands().contains(command);
}

bool Database::takes(std::string_view command, size_t words) {
  const int arity = command == "BLPOP" ? -3 : commands().at(command).arity;
  return arity < 0 ? words >= static_cast<size_t>(-arity) : words == static_cast<size_t>(arity);
}

Reply Database::call(const Words& words) {
  auto found = commands().find(words.front());
  if (found == commands().end()) {
    return Reply::error("ERR the simulated server has no command " + std::string(words.front()));
  }
  if (!takes(words.front(), words.size())) {
    return Reply::error("ERR wrong number of arguments for " + std::string(words.front()));
  }
  try {
    return found->second.run(*this, words);
  } catch (const WrongType&) {
    return Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value");
  }
}

}  // namespace rlock::fake
