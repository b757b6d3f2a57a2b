#pragma once

#include <string>

#include "cli/parse.hpp"
#include "lock/poller.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// One command's talk with the server: each request is bounded, and what may pass (a restart, a
// fail-over) is tried again until the connect timeout is over.
class Session {
 public:
  // From the options and the environment; connects to nothing yet.
  static util::Result<Session> open(const Choices& choices);

  std::string server() const { return store_->server(); }
  const std::string& prefix() const { return prefix_; }
  lock::LockStore& store() { return *store_; }
  const lock::MakeStore& make_store() const { return make_store_; }
  util::Millis connect_timeout() const { return connect_timeout_; }
  uint64_t servers() const { return servers_; }  // more than one: a quorum
  // Whether this kind of server can hold what `claim` wants; ErrorKind::usage says why not.
  util::Status fits(const lock::AcquireCall& claim) const;

  // `start` sends the request, once for each try.
  template <class Start>
  auto ask(Start start) -> decltype(start(std::declval<lock::LockStore&>())->take()) {
    constexpr util::Millis kAnswer{
        3000};  // a script takes microseconds: a server this slow is stuck
    constexpr util::Millis kPause{50};
    const util::TimePoint give_up = poller_.now() + connect_timeout_;
    while (true) {
      auto result = lock::finish(poller_, start(*store_),
                                 poller_.now() + connect_timeout_ + kAnswer, store_->server());
      if (result || result.error().retry == util::Retry::never) return result;
      if (poller_.now() + kPause >= give_up) return result;
      poller_.pause(poller_.now() + kPause);
    }
  }

 private:
  Session(lock::MakeStore make_store, const redis::OpenOptions& options)
      : make_store_(std::move(make_store)),
        store_(make_store_()),
        prefix_(options.prefix),
        connect_timeout_(options.connect_timeout),
        servers_(options.urls.size()) {}

  lock::MakeStore make_store_;
  std::unique_ptr<lock::LockStore> store_;
  std::string prefix_;
  util::Millis connect_timeout_;
  uint64_t servers_;
  lock::SystemPoller poller_;
};

// All holders of the lock, whatever number of pages that takes; waiters are counted, not listed.
util::Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name);

// All waiters in order of service.
util::Result<std::vector<lock::Waiter>> inspect_waiters(Session& session,
                                                        const lock::LockName& name);

// The names of all locks under the prefix, each once, sorted.
util::Result<std::vector<std::string>> all_names(Session& session);

}  // namespace rlock::cli
