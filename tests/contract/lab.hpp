#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "lock/poller.hpp"
#include "redis/store/redis_store.hpp"
#include "support/changed_scripts.hpp"
#include "support/redis_server.hpp"

// What the contract's cases use: a real server, real scripts, and a clock of the test's
// own.
namespace rlock::contract {

// A case that does not hold. Thrown, so that a case can also be run to see it fail.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A change that breaks one script, to see a case fail.
using Mutation = test::TextChange;

struct Ask {
  lock::Limit limit = lock::Limit::exclusive();
  Millis ttl{30'000};
  Millis min_hold{0};
  lock::Responsive responsive = lock::Responsive::yes;
  lock::Queueing queueing = lock::Queueing::wait;
  std::optional<uint64_t> max_queue{};
  lock::Ticket ticket{};
  uint64_t attempt = 0;  // as to a server of a quorum
  std::string record{};  // instead of `record of A`; with renew: stored anew
  Millis ahead{0};       // with renew, as to a server of a quorum
  std::optional<uint64_t> history_rows{};
  uint64_t slot = 0;  // with renew
  std::optional<lock::Once> once{};
  std::optional<lock::Supersede> supersede{};
  Millis asked{0};          // how long ago it first asked; with once
  lock::Token forgotten{};  // with once, as to a server of a quorum
  bool while_closed = false;
  Millis urgent{0};
};

// One lock "job" on a server emptied for the case.
class Lab {
 public:
  explicit Lab(const std::vector<Mutation>& mutations = {});

  // ---- the lock's requests, carried out to the end; owners are called by a letter ----
  lock::AcquireReply acquire(char owner, const Ask& ask = {});
  lock::HeartbeatReply heartbeat(char owner);
  lock::RenewReply renew(char owner, lock::Token token, const Ask& ask = {},
                         const lock::Entry& entry = lock::Entry::outer());
  lock::ReleaseReply release(char owner, const lock::Entry& entry = lock::Entry::outer(),
                             const std::string& result = "-",
                             lock::ReleaseHow how = lock::ReleaseHow::released);
  lock::ReleaseReply ends_run(char owner);  // with the token of its last grant
  // Of a run that was to be done once.
  lock::ReleaseReply ends(char owner, const lock::OnceResult& result,
                          const std::string& ended = {});
  lock::Forgotten forget(std::optional<std::string> key = {}, lock::Token through = {});
  // By one who saw the closure with the id SEEN, or none.
  lock::ClosureReply close(const std::string& id, Millis length,
                           const std::optional<std::string>& seen = {});
  lock::ClosureReply open(const std::optional<std::string>& seen);
  lock::MoveReply move_first(char owner, const std::string& record = "moved");
  std::vector<lock::HistoryRow> history();
  lock::CancelReply cancel(char owner, lock::CancelHow how = lock::CancelHow::cancelled);
  // As a client of a quorum does: cancels what an attempt took, with the ticket to keep or 0.
  lock::CancelReply cancel_attempt(char owner, uint64_t attempt, lock::Ticket ticket);
  // All that hold it now, or one of them: with token 0 whatever token it has.
  lock::ForceReply force(lock::ForceWhen when = lock::ForceWhen::confirmed);
  lock::ForceReply force(char owner, lock::Token token = {},
                         lock::ForceWhen when = lock::ForceWhen::confirmed,
                         const std::string& note = "by the operator");
  lock::Snapshot inspect();
  bool woken(char owner);  // takes the wake that lies there

  // ---- in short ----
  lock::Token granted(char owner, const Ask& ask = {});  // throws Broken if it is not
  lock::Queued queued(char owner, const Ask& ask = {});  // throws Broken if it is not
  std::string holders();                                 // the letters, sorted
  // Runs, failures, losses, skips, failures in a row: `3 1 0 0 1`.
  std::string counts();
  // The runs of the history, the newest first: `forced - by the operator, released exit:0`.
  std::string rows();
  std::string slots();                                   // of all holders, sorted: `1 2`
  std::string waiters();                                 // the letters, in order
  Error acquire_error(char owner, const Ask& ask = {});  // throws Broken if acquire succeeds

  // Steps such as `A granted; BC queued ttl=1m; 5s pass; A released; B woken; B holds; C waits`. A
  // step is done for each of its letters in turn. Behind its verb stand words of asking(), below.
  //   asks, and this is the reply: granted, takes: SLOT, queued, busy (does not wait), refused,
  //     done[: BY], superseded: BY, ended[: HOW]
  //   renews with the token of its last grant: renewed, extended, restored, lost[: HOW]
  //   ends: released[: HOW], exit:N, signal:N, ends: RESULT, cancelled, times out, removed
  //   of what is done once: runs (a grant and a success), marked[: no_room], unmarked, fails
  //   of a client of a quorum: confirmed (a grant whose token is written back), withdraws
  //   as a run that is nested in it: inner VERB
  //   whether there is a wake, and who they are: woken, asleep, hold, wait (in the queue's order)
  // And these: nobody holds, nobody waits, all forced[ now], KEY deleted, 5s pass, data lost,
  // memory full, memory free, all keys end, counts NUMBERS, rows RUNS, slots NUMBERS, and KEY
  // forgotten[ MARKS FAILURES NUMBERS], where `all` is each KEY.
  // An operator closes the lock, having seen no closure or the one named, and opens it: ID closed
  // TIME[ over ID], ID opened.
  void play(const std::string& steps, const Ask& ask = {});
  lock::Token token(char letter) const { return tokens_.at(letter); }  // of its last grant
  static lock::Entry inner();

  // ---- the server ----
  void pass(Millis time);  // and ends the keys that end by then
  int64_t now() const { return now_ms_; }
  int64_t end_of(const std::string& suffix) {  // when this key ends; -1: never, -2: there is none
    return std::stoll(cli({"PEXPIRETIME", key(suffix)}));
  }
  // A script with arguments that the store does not send.
  std::string raw(lua::Script redis::Scripts::*script, const std::vector<std::string>& arguments);
  std::string cli(const std::vector<std::string>& words) { return server_.cli(words); }
  std::string key(const std::string& suffix) const { return "rlock:{job}:" + suffix; }
  // Every key with its bytes and whether it expires: equal before and after means nothing was
  // written.
  std::string fingerprint();
  bool mutations_applied() const { return mutated_.all_applied(); }

  lock::LockStore& store() { return store_; }
  const lock::LockName& name() const { return name_; }
  static lock::Owner owner(char letter);

 private:
  template <class T>
  Result<T> drive(lock::InFlight<T> request);
  template <class T>
  T value_or_fail(Result<T> result);
  lock::AcquireCall call(char owner, const Ask& ask) const;
  void set_clock();
  void perform(const std::string& step, Ask ask);
  void perform(char letter, const lock::Entry& entry, const std::string& verb,
               const std::string& how, const Ask& ask);

  test::RedisServer& server_;
  test::ScriptSet mutated_;
  lock::LockName name_;
  redis::RedisStore store_;
  int64_t now_ms_;
  std::map<char, lock::Token> tokens_{};
};

// Such as `slots=3 ttl=10m once=KEY`.
Ask asking(const std::string& words);

// A rule of the scripts left out: the case that it stands below must fail.
struct Mutant {
  const char* rule;
  std::vector<Mutation> change;
};

// The rules of the native protocol, one case each; docs/PROTOCOL.md says why.
struct NamedCase {
  std::string file, name;
  void (*run)(Lab&);
  std::vector<Mutant> mutants{};
};
std::vector<NamedCase>& cases();
bool add_case(const char* file, const char* name, void (*run)(Lab&));
bool add_mutant(const char* file, const char* rule, std::vector<Mutation> change);

// CASE("what holds") { … `lab` … }, and below it each MUTANT("what is left out", {"from", "to"},
// …).
#define RLOCK_CASE(function, name)                                                                \
  void function(Lab& lab);                                                                        \
  [[maybe_unused]] const bool DOCTEST_CAT(function, _added) = add_case(__FILE__, name, function); \
  void function([[maybe_unused]] Lab& lab)
#define CASE(name) RLOCK_CASE(DOCTEST_ANONYMOUS(case_), name)
#define MUTANT(rule, ...)                                  \
  [[maybe_unused]] const bool DOCTEST_ANONYMOUS(mutant_) = \
      add_mutant(__FILE__, rule, std::vector<Mutation>{__VA_ARGS__})

// Throws Broken with `what` unless it holds.
void need(bool holds, const std::string& what);

template <class T, class Variant>
const T& as(const Variant& reply, const std::string& what) {
  const T* value = nullptr;
  if constexpr (std::is_constructible_v<lock::Refused, T>) {
    value = lock::refusal_in<T>(reply);
  } else {
    value = std::get_if<T>(&reply);
  }
  if (value == nullptr) throw Broken(what);
  return *value;
}

}  // namespace rlock::contract
