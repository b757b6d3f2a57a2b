#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/report.hpp"
#include "lock/failures.hpp"
#include "lock/poller.hpp"
#include "redis/open.hpp"

// What the commands share: the selection of locks, and their requests to the server.
namespace rlock::cli {

// Whether the error concerns one lock, which a listing may skip, and not the server.
inline bool concerns_one_lock(const Error& error) {
  return error.kind == ErrorKind::wrong_type || error.cause == Cause::other_version;
}

// The one NAME of `rlock COMMAND NAME`; words after `--` are names, too.
Result<lock::LockName> only_name(const Invocation& invocation);

// The NAME of `rlock COMMAND [NAME]`; nullopt: all locks.
Result<std::optional<lock::LockName>> optional_name(const Invocation& invocation);

// From `rlock COMMAND [NAME...]`, where a NAME with `*` or `?` is a pattern.
Result<Selection> selection_of(const Invocation& invocation);

// The lock and the owner that `renew` and `release` act on.
struct LeaseId {
  lock::LockName name;
  lock::Owner owner;

  Subject subject() const { return {name.text(), owner.text()}; }
};

// From NAME and --owner ID. Does not read RLOCK_OWNER, because inside a run that names the run's
// own lock.
Result<LeaseId> parse_lease_id(const Invocation& invocation);

// ErrorKind::lost: this owner no longer holds the lock; `how` is a phrase that says why; with the
// present holder.
Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server);

// The requests of one command to its server. A failure that may be temporary (a restart, a
// failover) is retried until the connect timeout expires; a request takes that and 3 s at most.
class Session {
 public:
  // From the options and the environment; does not connect yet.
  static Result<Session> open(const Choices& choices);
  // The same, but adds what it would print to `warnings`.
  static Result<Session> open(const Choices& choices, std::vector<std::string>& warnings);
  static Result<Session> open(redis::OpenOptions options);

  std::string server() const { return store_->server(); }
  const std::string& prefix() const { return options_.prefix; }
  redis::Format format() const { return options_.format; }
  const redis::OpenOptions& options() const { return options_; }
  // For the command lines that messages name: the options that lead to these locks, such as `
  // --prefix ci:`; empty if none are needed.
  const std::string& lock_options() const { return lock_options_; }
  // The same server, with locks of another format.
  Result<Session> in_format(redis::Format format) const;
  lock::LockServer& store() { return *store_; }
  const lock::MakeServer& make_server() const { return make_server_; }
  Millis connect_timeout() const { return options_.connect_timeout; }
  size_t servers() const { return options_.urls.size(); }  // more than one: a quorum
  // ErrorKind::usage if this kind of server cannot hold what `claim` asks for.
  Status check(const lock::AcquireCall& claim) const;
  uint64_t replicas() const { return options_.replicas; }  // that have to confirm a grant

  // The reply to the request that `start` sends, once for each attempt. A failure that may be
  // temporary (a restart, a failover) is retried for as long as it may take to reach a server.
  template <class Start>
  auto ask(Start start) -> decltype(start(std::declval<lock::LockServer&>())->take()) {
    // A script takes microseconds. If the answer takes this long, the server or the connection is
    // stuck.
    constexpr Millis kAnswer{3000}, kPause{50};
    const TimePoint begun = poller_.now();
    const TimePoint give_up = begun + connect_timeout();
    const TimePoint end = give_up + kAnswer;
    lock::Failures failures;
    while (true) {
      // Half of the time, so that a fresh connection has the other half if this one is stuck.
      const TimePoint attempt_end =
          std::min(end, poller_.now() + (connect_timeout() + kAnswer) / 2);
      auto result = lock::finish(poller_, start(*store_), attempt_end, server());
      if (result || result.error().retry == Retry::never) return result;
      const TimePoint now = poller_.now();
      failures.note(result.error().cause, now);
      const TimePoint until = now >= attempt_end ? end : give_up;
      if (now + kPause >= until || failures.is_lasting(now)) {
        return failures.end(std::move(result).error(),
                            std::chrono::duration_cast<Millis>(now - begun), now);
      }
      poller_.pause(now + kPause);
    }
  }

  // Like ask(), for a request that changes something. Repeats it while a failover may lose it.
  // Returns the reply to the first request, because the new master may not know what that changed.
  template <class Start>
  auto change(Start start) -> decltype(start(std::declval<lock::LockServer&>())->take()) {
    using Reply = decltype(start(std::declval<lock::LockServer&>())->take());
    std::optional<Reply> first;
    return ask(
        [&](lock::LockServer& store) { return lock::outlasting(store, start(store), first); });
  }

 private:
  Session(lock::MakeServer make_server, redis::OpenOptions options)
      : make_server_(std::move(make_server)),
        store_(make_server_()),
        options_(std::move(options)) {}

  lock::MakeServer make_server_;
  std::unique_ptr<lock::LockServer> store_;
  redis::OpenOptions options_;
  std::string lock_options_{};
  lock::SystemPoller poller_;
};

// All holders of the lock, from all pages of the listing; waiters are counted, not listed.
Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name);

// The same for several locks, which are read in batches; called after each batch with the number of
// locks read.
using Progress = std::function<void(uint64_t count)>;
lock::Snapshots inspect_holders(Session& session, std::span<const lock::LockName> names,
                                const Progress& progress = {});

// For each lock, its holders and the first waiters: those that have waited for the longest time.
lock::Snapshots inspect_first_waiter(Session& session, std::span<const lock::LockName> names);

// All waiters, in the order of the queue, with the closure, and without holders.
Result<lock::Snapshot> inspect_queue(Session& session, const lock::LockName& name);

// The names of the locks under the prefix, sorted, each once: of all locks, or only of those that
// are held or waited for.
enum class ListedNames { all, in_use };
struct ListedName {
  lock::LockName name;
  bool in_use;  // is held or waited for, or was within the last minute; otherwise the lock is free
};
struct AllNames {
  std::vector<ListedName> names;
  uint64_t others = 0;         // with in_use: the number of other locks
  std::vector<Error> missing;  // one for each node of a cluster that could not be listed
};
// `progress`: called after each page, with the number of names seen so far.
Result<AllNames> all_names(Session& session, ListedNames listed = ListedNames::all,
                           const Progress& progress = {});

// The names in a listing that the user selected.
std::vector<lock::LockName> selected(std::vector<ListedName> listed, const Selection& locks = {});

}  // namespace rlock::cli
