#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"
#include "lua/scripts.hpp"
#include "redis/link/cluster.hpp"
#include "redis/link/connection.hpp"

namespace rlock::redis {

// The scripts that a store runs; tests replace them by broken ones.
struct Scripts {
  lua::Script acquire = lua::acquire;
  lua::Script heartbeat = lua::heartbeat;
  lua::Script renew = lua::renew;
  lua::Script release = lua::release;
  lua::Script force_unlock = lua::force_unlock;
  lua::Script inspect = lua::inspect;
  lua::Script forget = lua::forget;
  lua::Script closure = lua::closure;
  lua::Script first = lua::first;
};

// The native format over one link: one request in flight at a time. [docs/PROTOCOL.md]
class RedisStore : public lock::LockServer {
 public:
  RedisStore(std::unique_ptr<Link> link, std::string prefix, Scripts scripts = {});
  RedisStore(Server server, std::string prefix, Scripts scripts = {});

  lock::InFlight<lock::AcquireReply> acquire(const lock::AcquireCall& call) override;
  lock::InFlight<lock::HeartbeatReply> heartbeat(const lock::LockName& name,
                                                 const lock::Owner& owner) override;
  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override;
  lock::InFlight<lock::ReleaseReply> release(const lock::ReleaseCall& call) override;
  lock::InFlight<lock::CancelReply> cancel(const lock::CancelCall& call) override;
  lock::InFlight<lock::ForceReply> force_unlock(const lock::ForceCall& call) override;
  lock::InFlight<lock::Snapshot> inspect(const lock::InspectCall& call) override;
  lock::InFlight<lock::Snapshots> inspect_all(const std::vector<lock::InspectCall>& calls) override;
  lock::InFlight<lock::ClosureReply> set_closure(const lock::ClosureCall& call) override;
  lock::InFlight<lock::MoveReply> move_first(const lock::MoveCall& call) override;
  lock::InFlight<lock::Forgotten> forget(const lock::ForgetCall& call) override;
  lock::InFlight<lock::HistoryRows> history(const lock::LockName& name, uint64_t rows) override;
  lock::InFlight<lock::Histories> histories(const std::vector<lock::LockName>& names,
                                            uint64_t rows) override;
  lock::InFlight<lock::NamesPage> list_names(const std::string& cursor) override;
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                           Millis slice) override;
  lock::InFlight<lock::GrantReach> complete_grant() override { return grant_reach(*link_); }
  lock::InFlight<Done> check_failover(Millis patience) override {
    return link_->check_failover(patience);
  }
  bool was_reached() const override { return link_->was_accepted(); }
  std::string server() const override { return link_->label(); }

 protected:
  Link& link() { return *link_; }
  const std::string& prefix() const { return prefix_; }
  using DecodePage = std::function<std::optional<lock::NamesPage>(const redisReply&)>;
  // One page of the names at one server.
  lock::InFlight<lock::NamesPage> list_page(Link& link, const std::string& cursor,
                                            DecodePage decode) const;

 private:
  std::vector<std::string> scan(const std::string& cursor) const;
  std::vector<std::string> keys(const lock::LockName& name) const;
  // Calls one of `scripts_`; `verb` is for messages.
  template <class T, class Decode>
  lock::InFlight<T> run(const lua::Script& script, const char* verb, const lock::LockName& name,
                        const std::vector<std::string>& arguments, Decode decode);

  std::unique_ptr<Link> link_;
  std::string prefix_;
  Scripts scripts_;
  std::string user_;  // the user at the server, if any; empty: the ACL is asked each time
};

// The native format in a cluster. The keys of a lock lie in one slot; only listing all locks needs
// all masters.
class ClusterStore final : public RedisStore {
 public:
  ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix);

  // The first page is empty: it finds the masters, which the cursor then contains.
  lock::InFlight<lock::NamesPage> list_names(const std::string& cursor) override;
  // Leads to the names of the next master.
  std::string cursor_past_server(const std::string& cursor) const override;

 private:
  ClusterLink& cluster();

  std::optional<Connection> list_connection_;  // to the master whose names are being read
};

}  // namespace rlock::redis
