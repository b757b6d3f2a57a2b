// The quorum's own logic against servers in memory: clients take, keep, lose and release the lock
// under any network fault; holders never overlap, and tokens grow. Each rule of docs/PROTOCOL.md,
// "Quorum", is shown to be needed by leaving it out.
#include <doctest/doctest.h>

#include <cstdlib>
#include <deque>

#include "lock/lease.hpp"
#include "support/quorum_world.hpp"

namespace rlock::test {
namespace {

constexpr Millis kTtl{1000};

class WorldRandom final : public util::Random {
 public:
  explicit WorldRandom(SimWorld& world) : world_(world) {}
  uint64_t next() override { return world_.next(); }

 private:
  SimWorld& world_;
};

// What an observer of all clients counted.
struct Record {
  uint64_t grants = 0;
  uint64_t overlaps = 0;
  uint64_t disorders = 0;
  uint64_t messages = 0;
  uint64_t of_first = 0;  // grants of the first client
  lock::Token highest{};
};

struct Setting {
  size_t servers = 5;
  size_t clients = 4;
  Rules rules{};
  NetworkFaults network{};
  Nanos lasts{15s};
  Nanos short_hold{100ms};
  double long_holds = 0.3;  // several leases long
  Nanos pause{200ms};       // between two acquisitions of a client
  Nanos ahead{0};           // the clock of the first client
};

// A client that takes the lock again and again.
class Client {
 public:
  Client(SimWorld& world, WorldRandom& random, const Setting& setting,
         std::vector<lock::MakeServer> makers, Nanos ahead)
      : world_(world),
        random_(random),
        setting_(setting),
        ahead_(ahead),
        makers_(std::move(makers)),
        next_(world.now() + world.up_to(setting.pause)) {}

  bool holds() const { return token_.value != 0 && world_.now() < deadline_; }

  TimePoint due() const {
    TimePoint due = next_;
    if (acquire_) due = std::min(due, acquire_->due());
    if (wake_) due = std::min(due, wake_->due());
    if (renew_) due = std::min(due, renew_->due());
    if (end_) due = std::min(due, end_->due());
    return std::max(due, world_.now() + 10us);
  }

  // Proceeds as far as possible; true when the lock has just been granted.
  bool advance() {
    const TimePoint now = world_.now();
    if (end_) return ending(now);
    if (acquire_) return acquiring(now);
    if (wake_) return waiting(now);
    if (token_.value != 0) return holding(now);
    if (now < next_) return false;
    if (!store_) begin(now);
    ask(now);
    return false;
  }
  lock::Token token() const { return token_; }

 private:
  std::unique_ptr<lock::LockStore> open() {
    return std::make_unique<lock::QuorumStore>(
        makers_,
        lock::QuorumSources{random_, [this] {
                              return static_cast<uint64_t>(
                                  (world_.now().time_since_epoch() + ahead_).count() / 1000);
                            }});
  }

  void begin(TimePoint now) {
    owner_ = lock::Owner::fresh(random_);
    store_ = open();
    give_up_ = now + 5s + world_.up_to(20s);
    ticket_ = {};
  }

  void ask(TimePoint now) {
    lock::AcquireCall call{name_, *owner_};
    call.ttl = kTtl;
    call.ticket = ticket_;
    acquire_ = store_->acquire(call);
    sent_at_ = now;
    next_ = now + 2s;
  }

  bool acquiring(TimePoint now) {
    if (!acquire_->advance(now)) {
      // Often in the middle of a try: what was sent arrives all the same.
      if (now < next_) return false;
      acquire_.reset();
      return now >= give_up_ ? leave(now) : pause(now);
    }
    auto reply = acquire_->take();
    acquire_.reset();
    if (!reply) return now >= give_up_ ? leave(now) : pause(now);
    if (const auto* granted = std::get_if<lock::Granted>(&*reply)) return hold(granted->token, now);
    const auto* queued = std::get_if<lock::Queued>(&*reply);
    if (queued == nullptr || now >= give_up_) return leave(now);
    ticket_ = queued->ticket;
    Millis slice = std::min(Millis(5000), queued->look_again.value_or(Millis(5000)));
    wake_ = store_->wait_for_wake(name_, *owner_, slice);
    next_ = now + slice + 1s;
    return false;
  }

  bool waiting(TimePoint now) {
    if (!wake_->advance(now) && now < next_) return false;
    wake_.reset();
    ask(now);
    return false;
  }

  bool hold(lock::Token token, TimePoint now) {
    token_ = token;
    deadline_ = lock::lease_deadline(sent_at_, kTtl);
    until_ = now + world_.up_to(world_.chance(setting_.long_holds) ? Nanos(3 * kTtl)
                                                                   : setting_.short_hold);
    renew_at_ = sent_at_ + kTtl / 3;
    keeper_ = open();
    next_ = std::min(until_, renew_at_);
    return true;
  }

  bool holding(TimePoint now) {
    if (renew_ && (renew_->advance(now) || now >= renew_give_up_)) renewed(now);
    if (now >= until_ || now >= deadline_) {
      const bool crashes = world_.chance(0.1);
      renew_.reset();
      token_ = {};
      return crashes ? forget(now) : release(now);
    }
    if (!renew_ && now >= renew_at_) {
      lock::RenewCall call{name_, *owner_};
      call.token = token_;
      call.ttl = kTtl;
      call.valid_until = deadline_;
      renew_ = keeper_->renew(call);
      renew_sent_ = now;
      renew_give_up_ = now + kTtl / 6;
    }
    next_ = std::min({until_, deadline_, renew_ ? renew_give_up_ : renew_at_});
    return false;
  }

  void renewed(TimePoint now) {
    auto over = std::exchange(renew_, nullptr);
    renew_at_ = now + 20ms;
    if (!over->advance(now)) return;
    auto reply = over->take();
    if (!reply) return;
    if (std::holds_alternative<lock::Renewal>(*reply)) {
      deadline_ = std::max(deadline_, lock::lease_deadline(renew_sent_, kTtl));
      renew_at_ = renew_sent_ + kTtl / 3;
    } else {
      until_ = now;
    }
  }

  bool release(TimePoint now) {
    end_ = std::unique_ptr<lock::Request>(store_->release({name_, *owner_}).release());
    next_ = now + 1s;
    return false;
  }
  bool leave(TimePoint now) {
    end_ = std::unique_ptr<lock::Request>(store_->cancel({name_, *owner_}).release());
    next_ = now + 1s;
    return false;
  }
  bool pause(TimePoint now) {
    next_ = now + 20ms;
    return false;
  }
  bool ending(TimePoint now) {
    if (!end_->advance(now) && now < next_) return false;
    return forget(now);
  }
  bool forget(TimePoint now) {
    end_.reset();
    keeper_.reset();
    store_.reset();
    next_ = now + world_.up_to(setting_.pause);
    return false;
  }

  SimWorld& world_;
  WorldRandom& random_;
  const Setting& setting_;
  const Nanos ahead_;
  std::vector<lock::MakeServer> makers_;
  lock::LockName name_ = *lock::LockName::parse("job");
  std::optional<lock::Owner> owner_;
  std::unique_ptr<lock::LockStore> store_, keeper_;
  lock::InFlight<lock::AcquireReply> acquire_;
  lock::InFlight<lock::Wake> wake_;
  lock::InFlight<lock::RenewReply> renew_;
  std::unique_ptr<lock::Request> end_;
  lock::Ticket ticket_{};
  lock::Token token_{};
  TimePoint next_, sent_at_, deadline_, give_up_, until_, renew_at_, renew_sent_, renew_give_up_;
};

void inject_faults(SimWorld& world, const NetworkFaults& network, std::deque<SimServer>& servers) {
  world.after(1s, [&world, &network, &servers] {
    for (SimServer& server : servers) {
      if (world.chance(network.stops)) server.hang_until(world.now() + world.up_to(6s));
      if (world.chance(network.restarts)) server.restart_empty();
    }
    inject_faults(world, network, servers);
  });
}

Record live(uint64_t seed, const Setting& setting) {
  SimWorld world(seed);
  WorldRandom random(world);
  Record record;
  std::deque<SimServer> servers;
  std::vector<lock::MakeServer> makers;
  for (size_t i = 0; i < setting.servers; ++i) {
    auto skew = std::chrono::duration_cast<Millis>(world.up_to(Nanos(2 * setting.network.skew)));
    SimServer& server =
        servers.emplace_back(world, setting.rules, setting.network, skew - setting.network.skew);
    makers.push_back([&] {
      return std::make_unique<SimStore>(world, server, setting.network, record.messages);
    });
  }
  std::deque<Client> clients;
  for (size_t i = 0; i < setting.clients; ++i) {
    clients.emplace_back(world, random, setting, makers, i == 0 ? setting.ahead : Nanos(0));
  }
  inject_faults(world, setting.network, servers);

  const TimePoint end = world.now() + setting.lasts;
  while (world.now() < end) {
    for (Client& client : clients) {
      if (!client.advance()) continue;
      ++record.grants;
      record.of_first += &client == &clients.front() ? 1 : 0;
      for (Client& other : clients) record.overlaps += &other != &client && other.holds() ? 1 : 0;
      if (client.token() <= record.highest) ++record.disorders;
      record.highest = std::max(record.highest, client.token());
    }
    TimePoint next = world.next_event();
    for (Client& client : clients) next = std::min(next, client.due());
    world.go_to(std::min(next, end));
  }
  return record;
}

NetworkFaults storm() {
  NetworkFaults network;
  network.loss = 0.02;
  network.twice = 0.03;
  network.late = 0.03;
  network.stops = 0.02;
  network.forgets = 0.02;
  return network;
}

// RLOCK_QUORUM_SEEDS for a longer run.
uint64_t seeds() {
  const char* text = std::getenv("RLOCK_QUORUM_SEEDS");
  return text == nullptr ? 250 : std::strtoull(text, nullptr, 10);
}

// The first of the seeds in which something went wrong; the last one where nothing did.
Record first_wrong(const Setting& setting, uint64_t seeds) {
  Record one;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    one = live(seed, setting);
    if (one.overlaps + one.disorders == 0) continue;
    MESSAGE("goes wrong in seed ", seed);
    break;
  }
  return one;
}

// Counts what went wrong over many seeds.
Record many(const Setting& setting, uint64_t first, uint64_t seeds) {
  Record sum;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    Record one = live(seed, setting);
    if (one.overlaps + one.disorders > 0 && sum.overlaps + sum.disorders == 0) {
      MESSAGE("the first seed in which something went wrong: ", seed);
    }
    sum.grants += one.grants;
    sum.overlaps += one.overlaps;
    sum.disorders += one.disorders;
    sum.messages += one.messages;
    sum.of_first += one.of_first;
  }
  return sum;
}

}  // namespace

TEST_CASE("over a quorum nobody overlaps and tokens grow, whatever the network does") {
  Setting setting;
  setting.network = storm();
  setting.network.skew = 5s;  // while counters survive no clock is trusted
  for (size_t servers : {3, 5}) {
    setting.servers = servers;
    Record seen = many(setting, 1, seeds());
    MESSAGE(servers, " servers, seeds 1 to ", seeds(), ": ", seen.grants, " holds");
    CHECK(seen.grants > seeds() * 5);
    CHECK(seen.overlaps == 0);
    CHECK(seen.disorders == 0);
  }
}

TEST_CASE("servers that come back empty do not vote, and nobody overlaps") {
  Setting setting;
  setting.network = storm();
  setting.network.restarts = 0.02;
  Record seen = many(setting, 5000, seeds());
  MESSAGE("seeds 5000 and on: ", seen.grants, " holds");
  CHECK(seen.overlaps == 0);
  CHECK(seen.disorders == 0);
}

TEST_CASE("without the owner check a write-back makes two holders") {
  Setting setting;
  setting.network = storm();
  setting.network.forgets = 0.2;
  setting.network.usual = 20ms;
  setting.pause = 20ms;
  CHECK(many(setting, 1, 40).overlaps == 0);
  setting.rules.owner_check = false;
  CHECK(first_wrong(setting, 300).overlaps > 0);
}

TEST_CASE("without the write-back tokens do not grow") {
  Setting setting;
  setting.network = storm();
  setting.network.skew = 5s;
  setting.rules.write_back = false;
  CHECK(first_wrong(setting, 50).disorders > 0);
}

TEST_CASE("without attempt numbers a late cancel makes two holders") {
  Setting setting;
  setting.servers = 3;
  setting.clients = 6;
  setting.pause = 20ms;
  setting.network = storm();
  setting.network.twice = 0.5;
  setting.network.loss = 0.1;
  setting.network.forgets = 0.3;  // a write-back that fails cancels everywhere
  setting.network.usual = 20ms;
  CHECK(many(setting, 1, 100).overlaps == 0);
  setting.rules.attempts = false;
  CHECK(first_wrong(setting, 400).overlaps > 0);
}

TEST_CASE("without the common ticket a hand-over costs many times the messages") {
  Setting setting;
  setting.clients = 20;
  setting.long_holds = 0;
  setting.short_hold = 10ms;
  setting.pause = 1ms;
  auto cost = [&](bool common) {
    setting.rules.common_ticket = common;
    Record seen = many(setting, 1, 3);
    const uint64_t each = seen.messages / seen.grants;
    MESSAGE(each, " messages a hold with 20 clients");
    return each;
  };
  CHECK(cost(false) > 4 * cost(true));
}

TEST_CASE(
    "a host whose clock is ahead is served like the others; it starves if its tickets are taken as "
    "they are") {
  Setting setting;
  setting.servers = 3;
  setting.clients = 5;
  setting.long_holds = 0;
  setting.short_hold = 20ms;
  setting.pause = 1ms;
  setting.ahead = 1h;
  auto share = [&](bool bound) {
    setting.rules.ticket_bound = bound;
    const Record seen = many(setting, 1, 5);
    MESSAGE(seen.of_first, " of ", seen.grants, " holds are those of the host ahead");
    return static_cast<double>(seen.of_first * setting.clients) / static_cast<double>(seen.grants);
  };
  CHECK(share(true) > 0.7);
  CHECK(share(false) < 0.1);
}

}  // namespace rlock::test
