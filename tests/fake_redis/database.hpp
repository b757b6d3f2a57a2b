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
// format use. Whether they answer as a real server does is shown by simulation/fidelity.cpp.
namespace rlock::fake {

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
  Reply call(const Words& words);
  static bool knows(std::string_view command);
  // Whether a command that it knows has that many words, its name included.
  static bool takes(std::string_view command, size_t words);

  // Of a list: its first element is taken; "" where there is none.
  std::string pop(const std::string& key);
  // Lists that were pushed to since the last call.
  std::vector<std::string> take_pushed() { return std::exchange(pushed_, {}); }
  const Value* look(const std::string& key) { return find(key); }
  // What it has of this type, or nothing.
  template <class T>
  T* get(std::string_view key);
  // The keys that have not expired, sorted.
  std::vector<std::string> keys();
  void clear() { values_.clear(); }

 private:
  struct Command {
    std::string_view name;
    int arity;  // as COMMAND INFO has it: the number of words, or -N: at least N
    Reply (*run)(Database&, const Words&);
  };
  static const std::unordered_map<std::string_view, Command>& commands();

  int64_t now() const { return micros_ / 1000; }
  Value* find(std::string_view key);
  template <class T>
  const T& read(std::string_view key);  // likewise; empty where it has none
  template <class T>
  T& make(std::string_view key);
  void drop_empty(std::string_view key);
  Reply expire_at(std::string_view key, int64_t ms);
  Reply set(const Words& words);
  Reply rows_between(const Words& words, bool count_only);

  int64_t micros_ = 0;
  std::unordered_map<std::string, Value> values_;
  std::vector<std::string> pushed_;
};

std::string text_of(double score);

}  // namespace rlock::fake
