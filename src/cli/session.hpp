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

// What the commands share: which locks they are about, and their requests to the server.
namespace rlock::cli {

// Whether the error is about one lock, which may be passed over, not about the server.
inline bool concerns_one_lock(const Error& error) {
  return error.kind == ErrorKind::wrong_type || error.cause == Cause::other_version;
}

// The one NAME of `rlock COMMAND NAME`; words after `--` are names, too.
Result<lock::LockName> only_name(const Invocation& invocation);

// Of `rlock COMMAND [NAME]`; none: all locks.
Result<std::optional<lock::LockName>> optional_name(const Invocation& invocation);

// From `rlock COMMAND [NAME...]`, where a NAME with `*` or `?` is a pattern.
Result<Selection> selection_of(const Invocation& invocation);

// Which owner of which lock `renew` and `release` are about.
struct LeaseId {
  lock::LockName name;
  lock::Owner owner;

  Subject subject() const { return {name.text(), owner.text()}; }
};

// From NAME and --owner ID. RLOCK_OWNER is not read: inside a run it names that run's own lock.
Result<LeaseId> parse_lease_id(const Invocation& invocation);

// ErrorKind::lost: that this owner no longer holds the lock, why (`how`, a phrase), and the present
// holder.
Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server);

// The requests of one command to its server. A failure that may pass (a restart, a fail-over) is
// retried until the connect timeout is over; a request takes that and 3 s at most.
class Session {
 public:
  // From the options and the environment; does not connect yet.
  static Result<Session> open(const Choices& choices);
  static Result<Session> open(redis::OpenOptions options);

  std::string server() const { return store_->server(); }
  const std::string& prefix() const { return options_.prefix; }
  redis::Format format() const { return options_.format; }
  const redis::OpenOptions& options() const { return options_; }
  // For the command lines that messages name: the options that lead to these locks, such as
  // ` --prefix ci:`; empty where nothing is needed.
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

  // The reply to the request that `start` sends, once for each attempt: a failure that may pass (a
  // restart, a fail-over) is retried as long as a server may take to be reached.
  template <class Start>
  auto ask(Start start) -> decltype(start(std::declval<lock::LockServer&>())->take()) {
    // A script takes microseconds: a server this slow is stuck, or the connection is.
    constexpr Millis kAnswer{3000}, kPause{50};
    const TimePoint begun = poller_.now();
    const TimePoint give_up = begun + connect_timeout();
    const TimePoint end = give_up + kAnswer;
    lock::Failures failures;
    while (true) {
      // Half of the time: where a connection is stuck, a fresh one has the other half.
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

  // As ask(), for a request that changes something: it is repeated while a failover may lose it.
  // The reply is that to the first one, since the new master may not know what that changed.
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

// The same of several locks, which are read in batches; called after each with how many were read.
using Progress = std::function<void(uint64_t count)>;
lock::Snapshots inspect_holders(Session& session, std::span<const lock::LockName> names,
                                const Progress& progress = {});

// Of each, its holders and the first waiters: those that have waited for the longest time.
lock::Snapshots inspect_first_waiter(Session& session, std::span<const lock::LockName> names);

// All waiters, in the order of the queue, with the closure, and without holders.
Result<lock::Snapshot> inspect_queue(Session& session, const lock::LockName& name);

// The names of the locks under the prefix, sorted, each once: of all, or of those that are held or
// waited for.
enum class ListedNames { all, in_use };
struct ListedName {
  lock::LockName name;
  bool in_use;  // or was within the last minute; otherwise it is free
};
struct AllNames {
  std::vector<ListedName> names;
  uint64_t others = 0;         // with in_use: how many more there are
  std::vector<Error> missing;  // one for each node of a cluster that could not be listed
};
// `progress`: called after each page, with the number of names seen so far.
Result<AllNames> all_names(Session& session, ListedNames listed = ListedNames::all,
                           const Progress& progress = {});

// Of a listing, the names that are asked for.
std::vector<lock::LockName> selected(std::vector<ListedName> listed, const Selection& locks = {});

}  // namespace rlock::cli
