#pragma once

#include <algorithm>
#include <string>

#include "cli/options/parse.hpp"
#include "lock/poller.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// One command's talk with the server: each request is bounded, and what may pass (a restart, a
// fail-over) is tried again until the connect timeout is over; all in all it takes that and 3 s.
class Session {
 public:
  // From the options and the environment; connects to nothing yet.
  static Result<Session> open(const Choices& choices);

  std::string server() const { return store_->server(); }
  const std::string& prefix() const { return options_.prefix; }
  redis::Format format() const { return options_.format; }
  // The same server, locks of another format.
  Result<Session> in_format(redis::Format format) const;
  lock::LockServer& store() { return *store_; }
  const lock::MakeServer& make_server() const { return make_server_; }
  Millis connect_timeout() const { return options_.connect_timeout; }
  size_t servers() const { return options_.urls.size(); }  // more than one: a quorum
  // Whether this kind of server can hold what `claim` wants; ErrorKind::usage says why not.
  Status check_supported(const lock::AcquireCall& claim) const;

  // `start` sends the request, once for each try.
  template <class Start>
  auto ask(Start start) -> decltype(start(std::declval<lock::LockServer&>())->take()) {
    // A script takes microseconds: a server this slow is stuck, or the connection is.
    constexpr Millis kAnswer{3000};
    constexpr Millis kPause{50};
    const TimePoint give_up = poller_.now() + connect_timeout();
    const TimePoint end = give_up + kAnswer;
    while (true) {
      // Half of it: where the connection was stuck, a fresh one has the other half.
      const TimePoint attempt_end =
          std::min(end, poller_.now() + (connect_timeout() + kAnswer) / 2);
      auto result = lock::finish(poller_, start(*store_), attempt_end, store_->server());
      if (result || result.error().retry == Retry::never) return result;
      const TimePoint until = poller_.now() >= attempt_end ? end : give_up;
      if (poller_.now() + kPause >= until) return result;
      poller_.pause(poller_.now() + kPause);
    }
  }

 private:
  Session(lock::MakeServer make_server, redis::OpenOptions options)
      : make_server_(std::move(make_server)),
        store_(make_server_()),
        options_(std::move(options)) {}
  static Result<Session> open(redis::OpenOptions options);

  lock::MakeServer make_server_;
  std::unique_ptr<lock::LockServer> store_;
  redis::OpenOptions options_;
  lock::SystemPoller poller_;
};

// All holders of the lock, whatever number of pages that takes; waiters are counted, not listed.
Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name);

// NAME in the format of another client, where it is held in one: a string or a hash with the shape
// of a lock and an end. Nothing where it is not, or where this user may not look.
Result<std::optional<Session>> find_external(const Session& session, const lock::LockName& name);

// All waiters in order of service.
Result<std::vector<lock::Waiter>> inspect_waiters(Session& session, const lock::LockName& name);

// The names of all locks under the prefix, each once, sorted, as far as they could be had.
struct AllNames {
  std::vector<std::string> names;
  std::vector<Error> missing;  // one for each server of a cluster whose part is not there
};
Result<AllNames> all_names(Session& session);

}  // namespace rlock::cli
