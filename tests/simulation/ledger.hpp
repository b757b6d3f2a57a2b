#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/scenario.hpp"

namespace rlock::sim {

struct Violation {
  Check check;
  Moment at;
  std::string text;
};
const char* to_string(Check check);

// By how much a message may be late, or the answer to what was asked of a server that hung.
inline constexpr Nanos kLatest = 45s;

// How one run went, in true time.
struct RunRecord {
  enum class Phase { coming, asking, waiting, granted, running, over };
  Phase phase = Phase::coming;
  Moment queued{0};  // known to it
  Moment granted{0};
  Moment started{0};
  Moment asked{0};
  Moment stopped{0};           // its command
  Moment left{Moment::max()};  // its process has ended
  uint64_t ticket = 0;         // 0: it was never queued
  uint64_t token = 0;
  bool disturbed = false;  // something befell its process or its messages
  bool ran = false;
  uint64_t calls = 1;  // with `away`
  // ---- what is done once ----
  std::string work{};      // empty: it does nothing once
  bool succeeded = false;  // its command, by itself
  bool recorded = false;   // as far as it knows
  bool failed = false;     // and the server knows
  // ---- of those that supersede others ----
  uint64_t inherits = UINT64_MAX;  // the ticket of one that it replaced
  // ----
  Moment broken{0};    // when an operator broke its hold
  bool freed = false;  // without waiting for its command's end
};

// Before the world began.
inline constexpr Moment kLongAgo{-1h};

// After which one that waits asks again, and may pass a closure then.
inline constexpr Nanos kPasses = 5s;

struct Counts {
  uint64_t runs = 0, commands = 0, queued = 0, scripts = 0, kills = 0, faults = 0;
  uint64_t overlaps = 0;  // commands that overlapped another, whether that is a violation or not
  uint64_t successes = 0, done = 0, failed_too_often = 0, superseded = 0, broken = 0;
  uint64_t closed = 0;  // and opened, by an operator
  uint64_t forgotten = 0;
  uint64_t returned = 0;
  Nanos longest_gap{0};  // between two commands while one waited, undisturbed
};

// What the commands did in true time, which nobody in the world knows, and whether it was right.
class Ledger {
 public:
  Ledger(const World& world, const Scenario& scenario);

  void came(size_t run);
  void queued(size_t run, uint64_t ticket);
  // It leaves the queue, and comes back to it.
  void goes_away(size_t run);
  void returns(size_t run);
  void granted(size_t run, uint64_t token);
  void started(size_t run);
  void stopped(size_t run, bool succeeded);
  void left(size_t run);  // its process has ended
  void note_mishap(size_t run);
  void note_server_mishap() { server_mishap_ = world_.now(); }
  // Its lease, or its place in the queue, is left to end by itself; what it has sent may arrive
  // `late`.
  void died(size_t run, Nanos late = 0s);

  // ---- what is done once, in ledger_once.cpp ----
  void asks(size_t run, std::string work);
  // Its release is over.
  void released(size_t run, bool confirmed, bool marked);
  void found_done(size_t run, uint64_t token);
  void failed_too_often(size_t run, uint64_t times);
  void superseded(size_t run, size_t by);
  // An operator has it forgotten what was done; until `at_most` that may happen.
  void asks_to_forget(size_t lock, Moment at_most);
  // What had ended when the operator `asked` is forgotten by now.
  void forgotten(size_t lock, Moment asked);
  // ---- what befalls the servers ----
  void note_data_lost() { data_lost_ = world_.now(); }
  // An operator has broken the hold with that token; `counts`: until its owner confirms.
  void broken(size_t lock, uint64_t token, bool counts);

  // ---- what closes a lock, and who comes before whom, in ledger_places.cpp ----
  // What an operator has seen, since `looked`, and will ask for: for so long, or to open it.
  struct Closing {
    size_t lock;
    std::string id{};    // of the new closure; empty: opens it
    std::string seen{};  // the id of the present one
    Moment looked{0};
    Nanos length{0};
  };
  void asks_to_close(const Closing& closing);
  // The reply confirmed it.
  void closed(const Closing& closing);

  void report(Check check, const std::string& text);
  const std::vector<Violation>& violations() const { return violations_; }
  Counts& counts() { return counts_; }
  size_t still_there() const { return there_; }
  // Each step, for a replay to be read.
  void trace_to(std::vector<std::string>* lines) { trace_ = lines; }
  void trace(const std::string& text);

 private:
  struct LockBook {
    std::vector<size_t> running;
    std::vector<size_t> waiting;  // that know of their places
    uint64_t highest = 0;         // token under which a command was started
    Moment free_since{0};         // the last command's end
    Moment leased_until{0};       // to one that is gone without having given it back
    // By the token of each grant: the latest ticket that was served up to then.
    std::map<uint64_t, uint64_t> served;
    std::map<uint64_t, size_t> granted;                // runs by their tokens
    std::map<std::string, std::vector<size_t>> works;  // runs by what they do once
    std::map<uint64_t, uint64_t> numbers;              // that superseded others, by token
    Moment forgets_until = kLongAgo;                   // what was done may be forgotten until then
    Moment forgot_before = kLongAgo, forgot_at{0};     // what surely is, and since when
    std::set<uint64_t> freed;  // tokens of those that were broken before they knew them
    struct Closure {
      Moment since = Moment::max();  // surely
      Moment until{0};               // surely
      Moment at_most{0};             // until then it may be closed
    };
    std::map<std::string, Closure> closures;  // by their ids
    std::vector<size_t> cooling;              // runs with --min-hold that ran something
  };

  LockBook& book_of(size_t run) { return books_[scenario_.runs[run].lock]; }
  void check_exclusion(size_t run, const LockBook& book);
  void check_tokens(size_t run, LockBook& book);
  void check_order(size_t run, LockBook& book);
  void check_returned(size_t run, const LockBook& book);
  void check_prompt(size_t run, const LockBook& book);
  bool may_be_granted_unknown(size_t lock) const;
  void check_repeated(size_t run, const LockBook& book);
  void check_failures(size_t run, const LockBook& book);
  void check_newest(size_t run, LockBook& book);
  void check_inherited(size_t run);
  bool may_inherit(size_t run) const;
  void check_given_up(size_t run);
  void check_broken(size_t run);
  void check_closed(size_t run, const LockBook& book);
  void check_passing(const LockBook& book);
  void check_min_hold(size_t run, const LockBook& book);
  void check_places(size_t run, const LockBook& book);
  void check_place(size_t later, size_t before, const LockBook& book);
  bool has_usual_place(size_t run) const;
  static Moment closed_at_most(const LockBook& book);
  void free_at_once(size_t run, LockBook& book);
  bool is_remembered(size_t run) const;
  bool is_done_by(size_t run, size_t before) const;
  bool may_be_done_by(size_t run, size_t before) const;
  bool is_well(size_t run) const;
  std::string name(size_t run) const;
  std::string with_token(size_t run) const;

  const World& world_;
  const Scenario& scenario_;
  std::vector<RunRecord> records_;
  std::map<size_t, LockBook> books_;
  std::vector<Violation> violations_;
  std::vector<std::string>* trace_ = nullptr;
  Counts counts_;
  Moment server_mishap_{-1h};
  Moment data_lost_{-1h};
  size_t there_ = 0;
};

}  // namespace rlock::sim
