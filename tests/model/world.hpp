#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fake_redis/database.hpp"
#include "lock/timing.hpp"

// What the model consists of: a server's memory of one lock, the clients, the messages between
// them, and what a perfect observer knows. A value: a step makes a new one.
namespace rlock::model {

// Milliseconds of the one clock that server and clients share here.
using Moment = int64_t;
constexpr Moment kNever = INT64_MAX;
// What the server's clock shows at 0. Far in the future, so that no real clock ends a key: that is
// for the model's time to do.
constexpr int64_t kEpochMs = 4'000'000'000'000;

// As in the scripts and in rlock, with a lease of 30 s.
constexpr Moment kTtl = 30'000;
constexpr Moment kDrift = kTtl / 100 + 2;
constexpr Moment kRenewEvery = timing::renew_interval(Millis(kTtl)).count();
constexpr Moment kSlice = 5'000;  // of a waiter near the head
constexpr Moment kLongestSlice = 4 * kSlice;
constexpr Moment kHeartbeatSlices = 3;
constexpr Moment kClaim = 2'000;
constexpr Moment kTombstone = 60'000;
constexpr Moment kClosed = 12'000;                            // by an operator of the model
constexpr int64_t kRequeued = 1, kDone = 4, kSuperseded = 5;  // kinds of tombstones

struct Row {
  std::string member;
  int64_t score = 0;
  int64_t quarters = 0;  // of the score
};

// What a client does once, and how it supersedes others.
struct Work {
  std::string once{};        // a field of the key `once`; empty: none
  Moment span = 0;           // of a period or distance
  int64_t max_failures = 0;  // 0: any number
  std::string supersede{};   // its number, or `+`; empty: nobody
  bool operator==(const Work&) const = default;
  bool is_distance() const { return once == "within"; }
  int64_t number() const {
    return supersede.empty() || supersede == "+" ? 0 : std::stoll(supersede);
  }
};

// A field of `once`.
struct Mark {
  int64_t token = 0;
  Moment asked = 0, granted = 0;
  bool ended = false;  // something succeeded
  int64_t failures = 0;
  Moment failed = 0;
  std::string record;   // of `waits`: the owner that came last
  std::string claimer;  // of `waits`
};

// What a script left: for the next one, and read for the checks.
struct Memory {
  fake::Database keys;
  std::vector<Row> holders, limits, queue, alive, released;
  std::map<std::string, std::string> who;
  std::string closure{};    // its id
  Moment closed_until = 0;  // the closure is not among the holders
  std::map<std::string, int64_t> meta;
  std::map<std::string, Mark> once;
  std::vector<Row> ends;           // of each key; kNever for none
  std::vector<std::string> woken;  // by the last script
};

// `+owner` of the memory.
struct Line {
  std::string state;
  int64_t limit = 0;
  int64_t token = 0;
  int64_t slot = 0;
  bool once = false;  // has the words of what is done once
  bool supersedes = false;
  bool counted = false;  // as failed
  Moment asked = 0, since = 0;
};
Line line_of(const Memory& memory, const std::string& owner);
const Row* find(const std::vector<Row>& rows, const std::string& member);
// Whether `owner` holds the lock at `now`, in the server's eyes.
bool holds(const Memory& memory, const std::string& owner, Moment now);
// The kind of the owner's tombstone; -1 without one that counts at `now`.
int64_t kind_of(const Memory& memory, const std::string& owner, Moment now);

enum class Op { acquire, renew, release, cancel, force, forget, close, open };

// How a command ended that is to be done once.
enum class Outcome { open, succeeded, failed };

struct Request {
  Op op = Op::acquire;
  int client = -1;    // an operator's: none
  std::string owner;  // with forget: the field, or empty for all; with close and open: an id
  int64_t limit = 1;
  int64_t ticket = 0;
  int64_t token = 0;
  Moment sent_at = 0;
  int64_t slot = 0;
  const Work* work = nullptr;  // of the bounds
  Moment asked_ago = 0;
  Outcome outcome = Outcome::open;
};

struct Reply {
  std::string word;
  std::string how;         // of lost, gone, absent
  std::string mark;        // of a release
  int64_t number = 0;      // of granted, queued
  int64_t slot = 0;        // of granted
  Moment look_again = -1;  // of queued
  Moment slice = kSlice;   // of queued
  Moment at = 0;           // when the server gave it
};

// One that is slow: everything that goes well is no message but one step.
struct Message {
  Request request;
  bool answered = false;
  bool abandoned = false;  // nobody waits for the answer; the request may still arrive
  bool before_loss = false;
  Reply reply;
};

enum class ClientPhase { idle, waiting, holding, leaving, done, dead };

struct Client {
  ClientPhase phase = ClientPhase::idle;
  int64_t limit = 1;
  const Work* work = nullptr;  // of the bounds
  int round = 1;
  int rounds_left = 1;
  int64_t ticket = 0;
  int64_t token = 0;
  int64_t slot = 0;
  Moment sent_at = 0;    // from which its lease counts
  Moment due = kNever;   // time does not pass beyond while it is well
  bool stalled = false;  // stopped: may act again at any time
  bool punctual = true;  // no message of this round was slow, nor was it ever stopped
  Moment lost_at = -1;   // when data loss hit what it holds; it does not know yet
  Moment asked_at = 0;
  Outcome outcome = Outcome::open;
  bool lost_reply = false;  // a request of this round was given up; noted where there is work
  Moment deadline() const { return sent_at + kTtl - kDrift; }
};

// What a perfect observer knows of a field of `once`.
struct Known {
  int64_t done = 0;  // token of the success that counts; 0: none
  Moment asked = 0, granted = 0;
  int64_t failures = 0;      // since then
  int64_t forgotten = 0;     // no success with this token or a smaller one is to count
  std::set<int64_t> failed;  // tokens of runs that were counted
};

struct World {
  std::shared_ptr<const Memory> memory = std::make_shared<const Memory>();
  Moment now = 0;
  int64_t scripts_now = 0;  // run at this very moment: each sees a later microsecond
  std::vector<Client> clients;
  std::vector<Message> messages;
  int faults_left = 0;
  int losses_left = 0;
  int forces_left = 0;
  int closures_left = 0;
  int forgets_left = 0;
  int failures_left = 0;
  // What a perfect observer remembers.
  int64_t newest = 0;                   // token ever granted
  int64_t newest_since_loss = 0;        // of the server's data
  std::map<std::string, Moment> ended;  // owners whose end was answered, and when
  std::map<std::string, Moment>
      forced;  // owners that an operator broke: until when they are barred
  std::map<std::string, Known> known;
  int64_t newest_number = 0;  // that superseded others and was claimed
  // Of the last one without a number that superseded others and was claimed: its ticket and owner.
  int64_t newest_ticket = 0;
  std::string newest_owner{};
  // The one without a number whose late first request joined the queue, until another one joins.
  std::string late_owner{};
};

std::string owner_of(const World& world, int client);
bool awaits_reply(const World& world, int client);

}  // namespace rlock::model
