// The quorum's own logic against servers in memory: clients take, keep, lose and release the lock
// under any network fault; holders never overlap, and tokens grow. Each rule of docs/PROTOCOL.md,
// "Quorum", is shown to be needed by leaving it out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>

#include "lock_quorum_client.hpp"

namespace rlock::test {
namespace {

// What an observer of all clients counted.
struct Record {
  uint64_t grants = 0;
  uint64_t overlaps = 0;
  uint64_t disorders = 0;
  uint64_t messages = 0;
  uint64_t of_first = 0;  // grants of the first client
  uint64_t marks = 0;     // successes that were recorded
  uint64_t done = 0;      // clients that had nothing to do
  uint64_t repeats = 0;   // grants for work whose success was recorded
  lock::Token highest{};
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

void note_work(Client& client, std::set<std::string>& recorded, Record& record) {
  record.done += client.was_done() ? 1 : 0;
  if (!client.has_marked()) return;
  ++record.marks;
  recorded.insert(client.work());
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
  std::set<std::string> recorded;
  for (size_t i = 0; i < setting.clients; ++i) {
    clients.emplace_back(world, random, setting, makers, i == 0 ? setting.ahead : Nanos(0));
  }
  inject_faults(world, setting.network, servers);

  const TimePoint end = world.now() + setting.lasts;
  while (world.now() < end) {
    for (Client& client : clients) {
      const bool granted = client.advance();
      note_work(client, recorded, record);
      if (!granted) continue;
      ++record.grants;
      record.repeats += recorded.contains(client.work()) ? 1 : 0;
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

// Ten times as slow under a sanitizer, which looks for other faults.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 25;
#else
constexpr uint64_t kSeeds = 250;
#endif

// RLOCK_QUORUM_SEEDS for a longer run.
uint64_t seeds() {
  const char* text = std::getenv("RLOCK_QUORUM_SEEDS");
  return text == nullptr ? kSeeds : std::strtoull(text, nullptr, 10);
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
    sum.marks += one.marks;
    sum.done += one.done;
    sum.repeats += one.repeats;
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

TEST_CASE("over a quorum nobody repeats what is recorded as done, whatever the network does") {
  Setting setting;
  setting.network = storm();
  setting.network.skew = 5s;
  setting.period = 2s;
  Record seen = many(setting, 1, seeds());
  MESSAGE(seen.grants, " holds, ", seen.marks, " recorded, ", seen.done, " times it was done");
  CHECK(seen.marks > seeds());
  CHECK(seen.done > seeds());
  CHECK(seen.repeats == 0);
  CHECK(seen.overlaps == 0);
  setting.rules.mark_at_release = false;
  CHECK(many(setting, 1, 100).repeats > 0);
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
