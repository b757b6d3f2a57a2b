#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/parse.hpp"
#include "lock/poller.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

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
  // The same server, with locks of another format.
  Result<Session> in_format(redis::Format format) const;
  lock::LockServer& store() { return *store_; }
  const lock::MakeServer& make_server() const { return make_server_; }
  Millis connect_timeout() const { return options_.connect_timeout; }
  size_t servers() const { return options_.urls.size(); }  // more than one: a quorum
  // ErrorKind::usage if this kind of server cannot hold what `claim` asks for.
  Status check_supported(const lock::AcquireCall& claim) const;
  uint64_t replicas() const { return options_.replicas; }  // that have to confirm a grant

  // The reply to the request that `start` sends, once for each attempt.
  template <class Start>
  auto ask(Start start) -> decltype(start(std::declval<lock::LockServer&>())->take()) {
    // A script takes microseconds: a server this slow is stuck, or the connection is.
    constexpr Millis kAnswer{3000};
    return lock::finish_with_retries(poller_, server(), {connect_timeout(), kAnswer},
                                     [&] { return start(*store_); });
  }

 private:
  Session(lock::MakeServer make_server, redis::OpenOptions options)
      : make_server_(std::move(make_server)),
        store_(make_server_()),
        options_(std::move(options)) {}

  lock::MakeServer make_server_;
  std::unique_ptr<lock::LockServer> store_;
  redis::OpenOptions options_;
  lock::SystemPoller poller_;
};

// All holders of the lock, from all pages of the listing; waiters are counted, not listed.
Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name);

// The same of several locks, which are read in batches; called after each with how many were read.
using Progress = std::function<void(uint64_t count)>;
std::vector<Result<lock::Snapshot>> inspect_holders(Session& session,
                                                    std::span<const lock::LockName> names,
                                                    const Progress& progress = {});

// Of each, its holders and the first waiters: those that have waited for the longest time.
std::vector<Result<lock::Snapshot>> inspect_first_waiter(Session& session,
                                                         std::span<const lock::LockName> names);

// A session in the format of another client, if the lock is held in one: a string or a hash that
// has the shape of a lock and expires. Nothing if it is not, or if this user may not read the key.
Result<std::optional<Session>> find_external(const Session& session, const lock::LockName& name);

// All waiters, in the order of the queue. inspect_queue: with the closure, and without holders.
Result<lock::Snapshot> inspect_queue(Session& session, const lock::LockName& name);
Result<std::vector<lock::Waiter>> inspect_waiters(Session& session, const lock::LockName& name);

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

}  // namespace rlock::cli
