#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"
#include "lua/scripts.hpp"
#include "redis/link/connection.hpp"
#include "redis/link/link.hpp"
#include "util/random.hpp"

namespace rlock::redis {

// What the lock formats of other clients have in common: one key with the name of the lock, which
// contains the owner; exclusive; no queue, token, record or memory of earlier owners. If the server
// cannot know something, the reply says that it is unknown; rlock never guesses. One request in
// flight at a time.
class ExternalStore : public lock::LockServer {
 public:
  struct FormatScripts {
    const lua::Script& acquire;
    const lua::Script& renew;
    const lua::Script& release;
    const lua::Script& inspect;
  };

  // Queued has no position, and says when to ask again: after a while with jitter if the format has
  // no wake.
  lock::InFlight<lock::AcquireReply> acquire(const lock::AcquireCall& call) override;
  // Only the outer entry exists: returns Upgrade for any other entry while the owner holds the
  // lock.
  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override;
  // OwnerEnd::unknown if this owner does not hold the lock. A repeated release over this store
  // succeeds if the earlier one may have reached a server.
  lock::InFlight<lock::ReleaseReply> release(const lock::ReleaseCall& call) override;
  lock::InFlight<lock::CancelReply> cancel(const lock::CancelCall& call) override;
  // Frees the lock immediately, because the holder cannot be notified. There are no tokens to
  // check.
  lock::InFlight<lock::ForceReply> force_unlock(const lock::ForceCall& call) override;
  lock::InFlight<lock::Snapshot> inspect(const lock::InspectCall& call) override;
  lock::InFlight<lock::Snapshots> inspect_all(const std::vector<lock::InspectCall>& calls) override;
  // ErrorKind::usage, because these formats have no history.
  lock::InFlight<lock::HistoryRows> history(const lock::LockName& name, uint64_t rows) override;
  // ErrorKind::usage, because nothing distinguishes the keys of locks from others.
  lock::InFlight<lock::NamesPage> list_names(const std::string& cursor) override;
  lock::InFlight<lock::GrantReach> complete_grant() override { return grant_reach(*link_); }
  lock::InFlight<Done> check_failover(Millis patience) override {
    return link_->check_failover(patience);
  }
  bool was_reached() const override { return link_->was_accepted(); }
  std::string server() const override { return link_->label(); }

 protected:
  ExternalStore(std::unique_ptr<Link> link, FormatScripts scripts);

  // How long a waiter sleeps at most before it asks again; 0: until the lease expires.
  virtual Millis retry_after() = 0;
  // Converts an owner to the text that this format stores, and back.
  virtual std::string encode_owner(const lock::Owner& owner) const { return owner.text(); }
  virtual std::string decode_owner(std::string owner) const { return owner; }

 private:
  template <class T, class Read>
  lock::InFlight<T> call(const lua::Script& script, const char* verb, const lock::LockName& name,
                         const std::vector<std::string>& arguments, Read read);
  // Decodes a script's reply; `read` gets it with the owner as it was before encode_owner().
  template <class T, class Read>
  auto decoder(Read read) const;
  // Called before another command is started: records whether the last release may have reached a
  // server.
  void note_release();

  std::unique_ptr<Link> link_;
  FormatScripts scripts_;
  std::optional<std::string> releasing_;  // the owner of the last release that was sent
  std::string released_;  // the owner of the release before, if that may have reached a server
};

// The format of redsync, redis-py, node-redlock, redlock-rb and bsm/redislock: `SET NAME owner NX
// PX ttl`, with owner-checked renewal and release. A waiter asks again after a while, with jitter.
class PlainStore final : public ExternalStore {
 public:
  explicit PlainStore(std::unique_ptr<Link> link);
  // Sends nothing: sleeps for `slice`.
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                           Millis slice) override;

 private:
  Millis retry_after() override;

  util::SystemRandom random_;
};

// Redisson's RLock: a hash owner -> entries, and a message on the lock's channel when the lock is
// free. The owner is written as `<32 hex digits>:1`, as Redisson writes `<uuid>:<thread>`.
class RedissonStore final : public ExternalStore {
 public:
  explicit RedissonStore(Server server);
  // The first call subscribes over its own connection and ends when that is confirmed. The caller
  // then asks for the lock, and misses no later message.
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                           Millis slice) override;

 private:
  Millis retry_after() override { return Millis(0); }
  std::string encode_owner(const lock::Owner& owner) const override;
  std::string decode_owner(std::string owner) const override;

  Connection channel_;
};

}  // namespace rlock::redis
