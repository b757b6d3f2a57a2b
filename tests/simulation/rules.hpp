#pragma once

#include <vector>

#include "support/changed_scripts.hpp"

// What can be broken on purpose, to see that the checks notice it.
namespace rlock::sim {

// A rule of the client that is left out.
enum class ClientRule {
  none,  // all are kept
  renews,
  ends_the_command_in_time,
  has_a_guard,
  allows_for_drift,
  writes_the_token_back,
  passes_over_members_that_restarted,
  needs_a_majority,
  starts_when_confirmed,
  believes_confirmed_renewals_alone,
  waits_for_the_end_of_a_failover,
};

struct Broken {
  ClientRule client = ClientRule::none;
  std::vector<test::TextChange> scripts{};
};

// One that may leave out a rule of renewals.
class Store final : public redis::RedisStore {
 public:
  Store(ClientRule broken, std::unique_ptr<redis::Link> link, const redis::Scripts& scripts)
      : RedisStore(std::move(link), "rlock:", scripts), broken_(broken) {}

  lock::InFlight<Done> check_failover(Millis patience) override {
    if (broken_ == ClientRule::waits_for_the_end_of_a_failover) return nullptr;
    return RedisStore::check_failover(patience);
  }

  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override {
    const bool believes_it =
        broken_ == ClientRule::renews ||
        (broken_ == ClientRule::writes_the_token_back && call.restore && call.restore->attempt > 0);
    if (believes_it) {
      return std::make_unique<lock::ReadyReply<lock::RenewReply>>(
          lock::RenewReply(lock::Renewal::extended));
    }
    lock::RenewCall one = call;
    if (broken_ == ClientRule::believes_confirmed_renewals_alone) one.replicas = 0;
    return RedisStore::renew(one);
  }

 private:
  const ClientRule broken_;
};

}  // namespace rlock::sim
