#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/random.hpp"
#include "util/result.hpp"

// Strong types for the terms of the lock: a name is never an owner.
namespace rlock::lock {

// Returns why a text is not a valid name: `it is empty`; nullptr if it is valid.
const char* why_bad_name(std::string_view text);

// 1-200 bytes of UTF-8 without control characters, `{` or `}`.
class LockName {
 public:
  // ErrorKind::usage, with what is wrong with the name.
  static Result<LockName> parse(std::string_view text);
  // The key of another client's lock: any text without control characters.
  static Result<LockName> parse_key(std::string_view text);
  const std::string& text() const { return text_; }
  auto operator<=>(const LockName&) const = default;

 private:
  explicit LockName(std::string_view text) : text_(text) {}
  std::string text_;
};

// 128 random bits, fresh for each acquisition: the identity of an execution unit.
class Owner {
 public:
  static Owner fresh(util::Random& random) { return Owner(util::random_hex(random)); }
  // 32 lower-case hexadecimal digits; ErrorKind::usage otherwise.
  static Result<Owner> parse(std::string_view text);
  // The owner of another client's lock as stored: any bytes.
  static Owner external(std::string text) { return Owner(std::move(text)); }
  const std::string& text() const { return text_; }
  bool operator==(const Owner&) const = default;

 private:
  explicit Owner(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// One use of a held lock: by the run that acquired it, or by a nested run. The server keeps a set
// of these, not a counter, so that a resent request changes nothing.
class Entry {
 public:
  static Entry outer() { return Entry("0"); }
  static Entry fresh(util::Random& random) { return Entry(util::random_hex(random)); }
  const std::string& text() const { return text_; }
  bool operator==(const Entry&) const = default;

 private:
  explicit Entry(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// Fencing token: strictly greater than every earlier one of the name; 0 is "none".
struct Token {
  uint64_t value = 0;
  auto operator<=>(const Token&) const = default;
};

// Position in the queue, from the same counter as the tokens; 0 is "none yet".
struct Ticket {
  uint64_t value = 0;
  auto operator<=>(const Ticket&) const = default;
};

enum class Mode { exclusive, slots, shared };

// The largest number of holders that a holder tolerates, itself included. [docs/PROTOCOL.md,
// "Modes"]
class Limit {
 public:
  static constexpr uint64_t kMostSlots = 1024;  // MOST_SLOTS of src/lua/constants.lua
  static constexpr Limit exclusive() { return Limit(1); }
  static constexpr Limit slots(uint64_t n) { return Limit(n); }
  static constexpr Limit shared() { return Limit(kUnlimited); }
  constexpr uint64_t value() const { return value_; }
  constexpr Mode mode() const {
    if (value_ <= 1) return Mode::exclusive;
    return value_ >= kUnlimited ? Mode::shared : Mode::slots;
  }
  bool operator==(const Limit&) const = default;

 private:
  static constexpr uint64_t kUnlimited = 1'000'000'000;
  constexpr explicit Limit(uint64_t value) : value_(value) {}
  uint64_t value_;
};

// Server time in milliseconds since 1970, for display; local deadlines never use it.
struct ServerTime {
  int64_t ms = 0;
  auto operator<=>(const ServerTime&) const = default;
};

// Whether a live rlock receives revocations and confirms them; a revoked holder without one is
// freed immediately. run: yes, and its command does not outlive the lease.
enum class Responsive { yes, no, run };

}  // namespace rlock::lock
