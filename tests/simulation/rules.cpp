#include "simulation/rules.hpp"

#include <algorithm>
#include <utility>

namespace rlock::sim {
namespace {

using lock::InFlight;

// Passes everything on.
class PassingStore : public lock::LockServer {
 public:
  explicit PassingStore(std::unique_ptr<lock::LockServer> store) : store_(std::move(store)) {}

  InFlight<lock::AcquireReply> acquire(const lock::AcquireCall& call) override {
    return store_->acquire(call);
  }
  InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override {
    return store_->renew(call);
  }
  InFlight<lock::ReleaseReply> release(const lock::ReleaseCall& call) override {
    return store_->release(call);
  }
  InFlight<lock::CancelReply> cancel(const lock::CancelCall& call) override {
    return store_->cancel(call);
  }
  InFlight<lock::GrantReach> complete_grant() override { return store_->complete_grant(); }
  InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                     Millis slice) override {
    return store_->wait_for_wake(name, owner, slice);
  }
  InFlight<lock::ForceReply> force_unlock(const lock::ForceCall& call) override {
    return store_->force_unlock(call);
  }
  InFlight<lock::Snapshot> inspect(const lock::InspectCall& call) override {
    return store_->inspect(call);
  }
  InFlight<std::vector<Result<lock::Snapshot>>> inspect_all(
      const std::vector<lock::InspectCall>& calls) override {
    return store_->inspect_all(calls);
  }
  InFlight<std::vector<lock::HistoryRow>> history(const lock::LockName& name,
                                                  uint64_t rows) override {
    return store_->history(name, rows);
  }
  InFlight<lock::NamesPage> list_names(const std::string& cursor) override {
    return store_->list_names(cursor);
  }
  bool was_reached() const override { return store_->was_reached(); }
  std::string server() const override { return store_->server(); }

 protected:
  std::unique_ptr<lock::LockServer> store_;
};

InFlight<lock::RenewReply> extended() {
  return std::make_unique<lock::ReadyReply<lock::RenewReply>>(
      lock::RenewReply(lock::Renewal::extended));
}

// Never renews, and believes that it did.
class UnrenewedStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  InFlight<lock::RenewReply> renew(const lock::RenewCall&) override { return extended(); }
};

class UnconfirmedStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override {
    lock::RenewCall one = call;
    one.replicas = 0;
    return store_->renew(one);
  }
};

class UnwrittenMember final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override {
    return call.attempt > 0 ? extended() : store_->renew(call);
  }
};

uint64_t scripts_changed = 0;

}  // namespace

ScriptSet::ScriptSet(const std::vector<TextChange>& changes) {
  std::vector<bool> applied(changes.size(), false);
  for (lua::Script* script : {&for_stores_.acquire, &for_stores_.renew, &for_stores_.release,
                              &for_stores_.force_unlock, &for_stores_.inspect}) {
    *script = changed(*script, changes, applied);
    for_servers_.push_back(*script);
  }
  for_servers_.push_back(lua::wake);
  all_applied_ = std::find(applied.begin(), applied.end(), false) == applied.end();
}

lua::Script ScriptSet::changed(const lua::Script& script, const std::vector<TextChange>& changes,
                               std::vector<bool>& applied) {
  std::string text(script.text);
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [from, to] = changes[i];
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
      applied[i] = true;
    }
  }
  if (text == script.text) return script;
  const std::string& digest = texts_.emplace_back("changed-" + std::to_string(++scripts_changed));
  return {digest, texts_.emplace_back(std::move(text))};
}

std::unique_ptr<lock::LockServer> break_member(std::unique_ptr<lock::LockServer> store,
                                               ClientRule rule) {
  if (rule != ClientRule::writes_the_token_back) return store;
  return std::make_unique<UnwrittenMember>(std::move(store));
}

std::unique_ptr<lock::LockServer> break_store(std::unique_ptr<lock::LockServer> store,
                                              ClientRule rule) {
  if (rule == ClientRule::believes_confirmed_renewals_alone) {
    return std::make_unique<UnconfirmedStore>(std::move(store));
  }
  if (rule != ClientRule::renews) return store;
  return std::make_unique<UnrenewedStore>(std::move(store));
}

}  // namespace rlock::sim
