// The keys of every type: what is there, until when, and the commands on strings and lists.
#include "simulation/database.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "simulation/database_parts.hpp"

namespace rlock::sim {

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

const std::unordered_map<std::string_view, Database::Command>& Database::commands() {
  using D = Database;
  static const std::unordered_map<std::string_view, Command> all{
      {"DEL", {&D::del, -2}},
      {"EXISTS", {&D::exists, -2}},
      {"GET", {&D::get_string, 2}},
      {"SET", {&D::set_string, -3}},
      {"HDEL", {&D::hdel, -3}},
      {"HEXISTS", {&D::hexists, 3}},
      {"HGET", {&D::hget, 3}},
      {"HGETALL", {&D::hgetall, 2}},
      {"HLEN", {&D::hlen, 2}},
      {"HMGET", {&D::hmget, -3}},
      {"HSET", {&D::hset, -4}},
      {"LINDEX", {&D::lindex, 3}},
      {"LLEN", {&D::llen, 2}},
      {"LPUSH", {&D::lpush, -3}},
      {"LRANGE", {&D::lrange, 4}},
      {"LSET", {&D::lset, 4}},
      {"LTRIM", {&D::ltrim, 4}},
      {"PEXPIRE", {&D::pexpire, -3}},
      {"PTTL", {&D::pttl, 2}},
      {"PEXPIREAT", {&D::pexpireat, -3}},
      {"TIME", {&D::time, 1}},
      {"ZADD", {&D::zadd, -4}},
      {"ZCARD", {&D::zcard, 2}},
      {"ZCOUNT", {&D::zcount, 4}},
      {"ZMSCORE", {&D::zmscore, -3}},
      {"ZRANGE", {&D::zrange, -4}},
      {"ZRANGEBYSCORE", {&D::zrangebyscore, -4}},
      {"ZRANK", {&D::zrank, 3}},
      {"ZREM", {&D::zrem, -3}},
      {"ZSCORE", {&D::zscore, 3}}};
  return all;
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
    return (this->*found->second.run)(words);
  } catch (const WrongType&) {
    return Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value");
  }
}

Value* Database::find(std::string_view key) {
  auto found = values_.find(std::string(key));
  if (found == values_.end()) return nullptr;
  if (found->second.expires < 0 || now() <= found->second.expires) return &found->second;
  values_.erase(found);
  return nullptr;
}

const Value* Database::look(const std::string& key) {
  return find(key);
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

template <class T>
T& Database::make(std::string_view key) {
  if (T* data = get<T>(key)) return *data;
  Value& value = values_[std::string(key)];
  value.data = T{};
  return std::get<T>(value.data);
}

template std::string* Database::get(std::string_view);
template Hash* Database::get(std::string_view);
template List* Database::get(std::string_view);
template SortedSet* Database::get(std::string_view);
template Hash& Database::make(std::string_view);
template List& Database::make(std::string_view);
template SortedSet& Database::make(std::string_view);

void Database::drop_empty(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return;
  const bool empty = std::visit([](const auto& data) { return data.size() == 0; }, value->data);
  if (empty && !std::holds_alternative<std::string>(value->data)) values_.erase(std::string(key));
}

Reply Database::del(const Words& words) {
  int64_t gone = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    if (find(words[i]) == nullptr) continue;
    values_.erase(std::string(words[i]));
    ++gone;
  }
  return Reply::of(gone);
}

Reply Database::exists(const Words& words) {
  int64_t there = 0;
  for (size_t i = 1; i < words.size(); ++i) there += find(words[i]) != nullptr ? 1 : 0;
  return Reply::of(there);
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

Reply Database::pexpire(const Words& words) {
  return expire_at(words.at(1), now() + number_in(words.at(2)));
}

Reply Database::pexpireat(const Words& words) {
  return expire_at(words.at(1), number_in(words.at(2)));
}

Reply Database::pttl(const Words& words) {
  const Value* value = find(words.at(1));
  if (value == nullptr) return Reply::of(-2);
  return Reply::of(value->expires < 0 ? -1 : std::max<int64_t>(0, value->expires - now()));
}

Reply Database::time(const Words&) {
  return Reply::array({Reply::of(std::to_string(micros_ / 1'000'000)),
                       Reply::of(std::to_string(micros_ % 1'000'000))});
}

Reply Database::get_string(const Words& words) {
  const auto* text = get<std::string>(words.at(1));
  return text == nullptr ? Reply{} : Reply::of(*text);
}

Reply Database::set_string(const Words& words) {
  int64_t expires = -1;
  const Value* before = find(words.at(1));
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

Reply Database::lindex(const Words& words) {
  const List* list = get<List>(words.at(1));
  const auto at = bounds_of(words.at(2), words.at(2), list == nullptr ? 0 : list->size());
  return at.size() == 0 ? Reply{} : Reply::of((*list)[at.from]);
}

Reply Database::llen(const Words& words) {
  const List* list = get<List>(words.at(1));
  return Reply::of(list == nullptr ? 0 : static_cast<int64_t>(list->size()));
}

Reply Database::lpush(const Words& words) {
  List& list = make<List>(words.at(1));
  for (size_t i = 2; i < words.size(); ++i) list.emplace_front(words[i]);
  pushed_.emplace_back(words[1]);
  return Reply::of(static_cast<int64_t>(list.size()));
}

Reply Database::lrange(const Words& words) {
  const List* list = get<List>(words.at(1));
  const auto range = bounds_of(words.at(2), words.at(3), list == nullptr ? 0 : list->size());
  Reply reply = Reply::array();
  for (size_t i = range.from; i < range.end; ++i) reply.items.push_back(Reply::of((*list)[i]));
  return reply;
}

Reply Database::lset(const Words& words) {
  List* list = get<List>(words.at(1));
  if (list == nullptr) return Reply::error("ERR no such key");
  const auto at = bounds_of(words.at(2), words.at(2), list->size());
  if (at.size() == 0) return Reply::error("ERR index out of range");
  (*list)[at.from] = words.at(3);
  return Reply::ok();
}

Reply Database::ltrim(const Words& words) {
  List* list = get<List>(words.at(1));
  if (list == nullptr) return Reply::ok();
  const auto range = bounds_of(words.at(2), words.at(3), list->size());
  const auto first = list->begin() + static_cast<std::ptrdiff_t>(range.from);
  *list = List(first, first + static_cast<std::ptrdiff_t>(range.size()));
  drop_empty(words[1]);
  return Reply::ok();
}

std::string Database::pop(const std::string& key) {
  List* list = get<List>(key);
  if (list == nullptr || list->empty()) return {};
  std::string first = std::move(list->front());
  list->pop_front();
  drop_empty(key);
  return first;
}

}  // namespace rlock::sim
