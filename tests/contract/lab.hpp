#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "lock/poller.hpp"
#include "redis/store/redis_store.hpp"
#include "support/redis_server.hpp"

// What the contract's cases use: a real server, real scripts, and a clock of the test's
// own.
namespace rlock::contract {

// A case that does not hold. Thrown, so that a case can also be run to see it fail.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A change that breaks one script, to see a case fail.
struct Mutation {
  std::string from;
  std::string to;
};

// The scripts with their TIME replaced by a clock that the test sets, and with mutations.
class MutatedScripts {
 public:
  explicit MutatedScripts(const std::vector<Mutation>& mutations = {});
  redis::Scripts scripts() const;
  // Whether every mutation was applied: one that was not would prove nothing.
  bool all_applied() const { return all_applied_; }

 private:
  std::string mutate(const lua::Script& script, const std::vector<Mutation>& mutations,
                     std::vector<bool>& applied) const;
  bool all_applied_ = true;
  std::string acquire_, renew_, release_, force_unlock_, inspect_, forget_, closure_;
};

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
};

// One lock "job" on a server emptied for the case.
class Lab {
 public:
  explicit Lab(const std::vector<Mutation>& mutations = {});

  // ---- the lock's requests, carried out to the end; owners are called by a letter ----
  lock::AcquireReply acquire(char owner, const Ask& ask = {});
  lock::RenewReply renew(char owner, lock::Token token, const Ask& ask = {},
                         const lock::Entry& entry = lock::Entry::outer());
  lock::ReleaseReply release(char owner, const lock::Entry& entry = lock::Entry::outer(),
                             const std::string& result = "-",
                             lock::ReleaseHow how = lock::ReleaseHow::released);
  // Of a run that was to be done once.
  lock::ReleaseReply ends(char owner, const lock::OnceResult& result,
                          const std::string& ended = {});
  lock::Forgotten forget(std::optional<std::string> key = {}, lock::Token through = {});
  // By one who saw the closure with the id SEEN, or none.
  lock::ClosureReply close(const std::string& id, Millis length,
                           const std::optional<std::string>& seen = {});
  lock::ClosureReply open(const std::optional<std::string>& seen);
  std::vector<lock::HistoryRow> history();
  lock::CancelReply cancel(char owner, lock::CancelHow how = lock::CancelHow::cancelled);
  // As a client of a quorum does: cancels what an attempt took, with the ticket to keep or 0.
  lock::CancelReply cancel_attempt(char owner, uint64_t attempt, lock::Ticket ticket);
  // All that hold it now, or one of them: with token 0 whatever token it has.
  lock::ForceReply force(lock::ForceWhen when = lock::ForceWhen::confirmed);
  lock::ForceReply force(char owner, lock::Token token = {},
                         lock::ForceWhen when = lock::ForceWhen::confirmed);
  lock::Snapshot inspect();
  bool woken(char owner);  // takes the wake that lies there

  // ---- in short ----
  lock::Token granted(char owner, const Ask& ask = {});  // throws Broken if it is not
  lock::Queued queued(char owner, const Ask& ask = {});  // throws Broken if it is not
  std::string holders();                                 // the letters, sorted
  std::string waiters();                                 // the letters, in order
  Error acquire_error(char owner, const Ask& ask = {});  // throws Broken if acquire succeeds

  // ---- the server ----
  void pass(Millis time);  // and ends the keys that end by then
  int64_t now() const { return now_ms_; }
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

  test::RedisServer& server_;
  MutatedScripts mutated_;
  lock::LockName name_;
  redis::RedisStore store_;
  int64_t now_ms_;
};

using Case = void (*)(Lab&);

// The rules of the native protocol, one case each; docs/PROTOCOL.md says why.
struct NamedCase {
  const char* name;
  Case run;
};
const std::vector<NamedCase>& cases();

// Throws Broken with `what` unless it holds.
void need(bool holds, const std::string& what);

template <class T, class Variant>
const T& as(const Variant& reply, const std::string& what) {
  const T* value = std::get_if<T>(&reply);
  if (value == nullptr) throw Broken(what);
  return *value;
}

}  // namespace rlock::contract
