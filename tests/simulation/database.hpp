#pragma once

#include <cstdint>
#include <deque>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// A server's keys in memory, and of its commands exactly those that the scripts of the native
// format use. Whether they answer as a real server does is shown by fidelity.cpp.
namespace rlock::sim {

struct Reply {
  enum class Type { nil, number, text, status, error, array };
  Type type = Type::nil;
  int64_t number = 0;
  std::string text{};
  std::vector<Reply> items{};

  static Reply of(int64_t number) { return {Type::number, number}; }
  static Reply of(std::string text) { return {Type::text, 0, std::move(text)}; }
  static Reply ok() { return {Type::status, 0, "OK"}; }
  static Reply error(std::string text) { return {Type::error, 0, std::move(text)}; }
  static Reply array(std::vector<Reply> items = {}) {
    return {Type::array, 0, {}, std::move(items)};
  }
};

// As the server sends it.
void append_wire(std::string& out, const Reply& reply);

class SortedSet {
 public:
  using Row = std::pair<double, std::string>;
  using Rows = __gnu_pbds::tree<Row, __gnu_pbds::null_type, std::less<>, __gnu_pbds::rb_tree_tag,
                                __gnu_pbds::tree_order_statistics_node_update>;

  bool put(std::string_view member, double score);  // whether it is new
  bool remove(std::string_view member);
  const double* score(std::string_view member) const;
  size_t rank(std::string_view member, double score) const;
  size_t size() const { return rows_.size(); }
  const Rows& rows() const { return rows_; }

 private:
  Rows rows_;
  std::unordered_map<std::string, double> scores_;
};

using Hash = std::unordered_map<std::string, std::string>;
using List = std::deque<std::string>;

struct Value {
  std::variant<std::string, Hash, List, SortedSet> data;
  int64_t expires = -1;  // ms; -1: never
};

class Database {
 public:
  using Words = std::vector<std::string_view>;

  // The time at which the next commands run, by the server's clock.
  void set_time(int64_t micros) { micros_ = micros; }
  int64_t micros() const { return micros_; }
  Reply call(const Words& words);
  static bool knows(std::string_view command);
  // Whether a command that it knows has that many words, its name included.
  static bool takes(std::string_view command, size_t words);

  // Of a list: its first element is taken; "" where there is none.
  std::string pop(const std::string& key);
  // Lists that were pushed to since the last call.
  std::vector<std::string> take_pushed() { return std::exchange(pushed_, {}); }
  const Value* look(const std::string& key);
  // The keys that have not expired, sorted.
  std::vector<std::string> keys();
  void clear() { values_.clear(); }

 private:
  struct Command {
    Reply (Database::*run)(const Words&);
    int arity;  // as COMMAND INFO has it: the number of words, or -N: at least N
  };
  static const std::unordered_map<std::string_view, Command>& commands();

  struct Typed;
  int64_t now() const { return micros_ / 1000; }
  Value* find(std::string_view key);
  template <class T>
  T* get(std::string_view key);
  template <class T>
  T& make(std::string_view key);
  void drop_empty(std::string_view key);
  Reply scores_between(const Words& words, bool count_only);

  Reply del(const Words&);
  Reply exists(const Words&);
  Reply get_string(const Words&);
  Reply set_string(const Words&);
  Reply hdel(const Words&);
  Reply hexists(const Words&);
  Reply hget(const Words&);
  Reply hgetall(const Words&);
  Reply hlen(const Words&);
  Reply hmget(const Words&);
  Reply hset(const Words&);
  Reply lindex(const Words&);
  Reply llen(const Words&);
  Reply lpush(const Words&);
  Reply lrange(const Words&);
  Reply lset(const Words&);
  Reply ltrim(const Words&);
  Reply pexpire(const Words&);
  Reply pexpireat(const Words&);
  Reply pttl(const Words&);
  Reply time(const Words&);
  Reply zadd(const Words&);
  Reply zcard(const Words&);
  Reply zcount(const Words&);
  Reply zmscore(const Words&);
  Reply zrange(const Words&);
  Reply zrangebyscore(const Words&);
  Reply zrank(const Words&);
  Reply zrem(const Words&);
  Reply zscore(const Words&);
  Reply expire_at(std::string_view key, int64_t ms);

  int64_t micros_ = 0;
  std::unordered_map<std::string, Value> values_;
  std::vector<std::string> pushed_;
};

std::string text_of(double score);

}  // namespace rlock::sim
