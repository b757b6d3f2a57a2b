// instructions TABLE [--write]: counts the instructions that a server executes for what rlock asks
// of it, and compares them with the column of this server in TABLE. Fails if one is above it by
// more than 3 %. Only prints them if TABLE has no column of this server; --write writes it.
//
// The numbers depend on nothing that a busy machine changes:
// - callgrind counts only while the server handles what a client has sent (readQueryFromClient).
//   That leaves out its timers, which run more often if it is slow, the accepting of a connection,
//   and the writing of replies. The difference between N and 2N requests would contain the timers.
// - A marker (ECHO) ends each count, so that preparations do not count.
// - The server's wall clock stands still, and each request moves it by 1 ms. Owners and records are
//   fixed. So a script does the same in each run of this program, to the digits of its numbers.
// The seeds of the server's hash tables and the heights in its skip lists are left: see kChance.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

#include "lock/poller.hpp"
#include "lock/timing.hpp"
#include "redis/store/redis_store.hpp"
#include "support/frozen_clock.hpp"
#include "support/waiting.hpp"
#include "util/text.hpp"

namespace rlock::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 20;
constexpr int kUncountedRounds = 3;  // until the keys exist and the script is loaded
constexpr double kMostAbove = 0.03;
constexpr double kChance = 0.01;  // of two counts of the same scripts
constexpr uint64_t kNear = 64;    // NEAR of src/lua/constants.lua
constexpr uint64_t kCrowd = 100'000;
// So many of the crowd ask by themselves: the last one is as far from the head as all behind it.
constexpr uint64_t kAsking = 300;
constexpr const char* kRecord =
    R"({"host":"web1","user":"backup","pid":471100,"command":"/usr/local/bin/backup --full /srv",)"
    R"("processes":"4026531836 0f3c2a1b-5d6e-4f70-8192-a3b4c5d6e7f8"})";

[[noreturn]] void fail(const std::string& why) {
  throw std::runtime_error(why);
}

void need(bool holds, const char* what) {
  if (!holds) fail(util::format("expected that {}", what));
}

// ---- the server ----

class World {
 public:
  World() { clock_.set(micros_); }

  std::unique_ptr<test::RedisServer> serve(std::vector<std::string> args = {},
                                           std::vector<std::string> before = {}) const {
    return clock_.serve(std::move(args), std::move(before));
  }

  template <class T>
  T answer(lock::InFlight<T> request) {
    clock_.set(micros_ += 1000);
    lock::SystemPoller poller;
    auto reply = lock::finish(poller, std::move(request), poller.now() + test::kPatience, "server");
    if (!reply) fail(reply.error().text);
    return *std::move(reply);
  }

 private:
  test::FrozenClock clock_;
  int64_t micros_ = 1'800'000'000'123'456;
};

class CountedServer {
 public:
  CountedServer(const World& world, const std::string& data)
      : server_(world.serve(
            {"--dir", data, "--loading-process-events-interval-bytes", "65536"},
            {"valgrind", "--tool=callgrind", "--toggle-collect=readQueryFromClient",
             "--dump-before=echoCommand", "--callgrind-out-file=" + folder_.file("count")})) {
    need(test::eventually([&] { return server_->cli({"PING"}) == "PONG"; }, 10min),
         "the server loads its data");
    lap();
    of_the_marker_ = lap();
  }

  const test::RedisServer& server() const { return *server_; }
  // The instructions since the last call.
  uint64_t lap() {
    server_->cli({"ECHO", "end of a count"});
    std::ifstream file(folder_.file(util::format("count.{}", ++laps_)));
    constexpr std::string_view kTotal = "totals: ";
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(kTotal)) continue;
      const auto total = util::parse_number<uint64_t>(line.substr(kTotal.size()));
      if (total && *total > 0) return *total - std::min(*total, of_the_marker_);
    }
    fail("callgrind counted nothing: has redis-server the names of its functions?");
  }

 private:
  test::Scratch folder_;
  std::unique_ptr<test::RedisServer> server_;
  int laps_ = 0;
  uint64_t of_the_marker_ = 0;
};

// ---- what rlock asks ----

redis::Server at(const test::RedisServer& server) {
  redis::Server where;
  where.path = server.socket_path();
  where.connect_timeout = test::kPatience;
  return where;
}

lock::Owner owner(uint64_t number) {
  return *lock::Owner::parse(util::format("{:032x}", number));
}

lock::AcquireCall claim(const std::string& name, uint64_t number) {
  lock::AcquireCall call{{*lock::LockName::parse(name), owner(number)}};
  call.responsive = lock::Responsive::run;
  call.record = kRecord;
  return call;
}

// An `rlock run` at its own connection.
class Run {
 public:
  Run(World& world, const test::RedisServer& server, lock::AcquireCall claim)
      : call(std::move(claim)), world_(world), store_(at(server), "rlock:") {}

  lock::AcquireReply asks() {
    auto reply = world_.answer(store_.acquire(call));
    if (const auto* granted = std::get_if<lock::Granted>(&reply)) granted_ = *granted;
    if (const auto* queued = std::get_if<lock::Queued>(&reply)) call.ticket = queued->ticket;
    return reply;
  }
  void is_granted() { need(std::holds_alternative<lock::Granted>(asks()), "the lock is granted"); }
  uint64_t is_queued() {
    const auto reply = asks();
    const auto* queued = std::get_if<lock::Queued>(&reply);
    need(queued != nullptr, "the run waits");
    return queued->position;
  }
  void sleeps() {
    wake_ = store_.wait_for_wake(call.name, call.owner, timing::kWaitSlice);
    wake_->advance(BootClock::now());  // sends it
  }
  void is_woken() {
    need(world_.answer(std::move(wake_)) == lock::Wake::woken, "the run is woken");
  }
  // Does not wait: the reply to a later request shows that the server has sent all wakes.
  bool sleeps_on() {
    if (wake_ && !wake_->advance(BootClock::now())) return true;
    wake_.reset();
    return false;
  }
  void beats(const lock::Owner& waiter) {
    const auto reply = world_.answer(store_.heartbeat(call.name, waiter));
    need(std::holds_alternative<lock::StillQueued>(reply), "the run is far from the head");
  }
  void renews() {
    lock::RenewCall renewal{call, lock::Entry::outer(),
                            lock::Restore{granted_.token, granted_.slot, {}}};
    const auto reply = world_.answer(store_.renew(renewal));
    need(std::holds_alternative<lock::Renewal>(reply), "the lease is renewed");
  }
  void releases() {
    lock::ReleaseCall release{call.name, call.owner};
    release.result = "exit:0";
    if (call.once) release.once = {*call.once, 5000ms, granted_.token, true, 0ms};
    release.run = granted_.token;
    release.record = call.record;
    world_.answer(store_.release(release));
  }

  lock::AcquireCall call;

 private:
  World& world_;
  redis::RedisStore store_;
  lock::Granted granted_{};
  lock::InFlight<lock::Wake> wake_{};
};

// A holder and those who wait behind it.
class Queue {
 public:
  Queue(World& world, const test::RedisServer& server, std::string name, uint64_t waiters)
      : world_(world), server_(server), name_(std::move(name)) {
    join(0).is_granted();
    for (uint64_t number = 1; number <= waiters; ++number) join(number).is_queued();
  }

  // The head gets the lock, and those who are woken ask again.
  void hand_over() {
    runs_.front()->releases();
    runs_.pop_front();
    runs_.front()->is_woken();
    runs_.front()->is_granted();
    all_sleep();
  }
  uint64_t joins() {
    const uint64_t position = join(++newcomers_).is_queued();
    runs_.back()->sleeps();
    return position;
  }
  void all_sleep() {
    for (size_t place = 1; place < runs_.size(); ++place) {
      Run& waiter = *runs_[place];
      while (!waiter.sleeps_on()) {
        waiter.is_queued();
        waiter.sleeps();
      }
    }
  }

 private:
  Run& join(uint64_t number) {
    return *runs_.emplace_back(std::make_unique<Run>(world_, server_, claim(name_, number)));
  }

  World& world_;
  const test::RedisServer& server_;
  std::string name_;
  std::deque<std::unique_ptr<Run>> runs_{};
  uint64_t newcomers_ = 2 * kCrowd;
};

// Stores, for the owners after the last one that has asked, what the server stores for that one.
void lengthen(const test::RedisServer& server) {
  constexpr const char* kCopy = R"(
    local function owner(number) return string.format('%032x', number) end
    local first, last = tonumber(ARGV[1]), tonumber(ARGV[2])
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local kind = redis.call('TYPE', key).ok
      local score = kind == 'zset' and redis.call('ZSCORE', key, owner(first))
      local text = kind == 'hash' and redis.call('HGET', key, owner(first))
      for number = first + 1, last do
        if score then
          redis.call('ZADD', key, string.format('%.2f', score + number - first), owner(number))
        end
        if text then redis.call('HSET', key, owner(number), text) end
      end
    end)";
  server.cli({"EVAL", kCopy, "0", std::to_string(kAsking), std::to_string(kCrowd - 1)});
}

// ---- the counts ----

struct Count {
  std::string request;
  uint64_t instructions;

  uint64_t thousands() const { return (instructions + 500) / 1000; }
  // 0.03: 3 % more than so many thousands.
  double above(uint64_t expected) const {
    return static_cast<double>(instructions) / 1000 / static_cast<double>(expected) - 1;
  }
};

class Bench {
 public:
  std::vector<Count> all() {
    runs();
    queues();
    return std::move(counts_);
  }

 private:
  // Has ended; its folder contains a lock for which a crowd waits.
  static std::unique_ptr<test::RedisServer> crowded(World& world) {
    auto server = world.serve();
    Queue(world, *server, "crowd", kAsking);
    lengthen(*server);
    server->cli({"SAVE"});
    server->kill();
    return server;
  }

  void count(
      const std::string& request, const std::function<void()>& asks,
      const std::function<void()>& prepare = [] {}) {
    uint64_t sum = 0;
    for (int round = -kUncountedRounds; round < kRounds; ++round) {
      prepare();
      counted_.lap();
      asks();
      const uint64_t lap = counted_.lap();
      if (round >= 0) sum += lap;
    }
    counts_.push_back({request, sum / kRounds});
  }

  Run run(const std::string& name) { return {world_, server_, claim(name, ++runs_)}; }
  void count_run(
      const std::string& request, const std::string& name,
      const std::function<void(lock::AcquireCall&)>& change = [](auto&) {}) {
    count(request, [&] {
      Run one = run(name);
      change(one.call);
      one.is_granted();
      one.releases();
    });
  }

  void runs() {
    count_run("uncontended run", "alone");
    auto in_slots = [](lock::AcquireCall& call) {
      call.limit = lock::Limit::slots(3);
      call.numbered = true;
    };
    Run other = run("slots");
    in_slots(other.call);
    other.is_granted();
    count_run("run with --slots 3, another holds one", "slots", in_slots);
    auto shared = [](lock::AcquireCall& call) { call.limit = lock::Limit::shared(); };
    Run reader = run("shared");
    shared(reader.call);
    reader.is_granted();
    count_run("run with --shared, another holds it", "shared", shared);
    auto once = [](lock::AcquireCall& call) {
      call.once = {lock::OnceKind::key, "release-" + call.owner.text().substr(26)};
    };
    count_run("run with --once", "once", once);
    const lock::Once release{lock::OnceKind::key, "release"};
    Run first = run("done");
    first.call.once = release;
    first.is_granted();
    first.releases();
    count("run with --once, done before", [&] {
      Run late = run("done");
      late.call.once = release;
      need(lock::refusal_in<lock::AlreadyDone>(late.asks()), "the work is done");
    });
    Run holder = run("renewed");
    holder.is_granted();
    count("renewal", [&] { holder.renews(); });
  }

  void count_hand_over(Queue& queue, uint64_t waiters) {
    queue.all_sleep();
    auto joins = [&] { need(queue.joins() == waiters, "as many runs wait as before"); };
    auto hands_over = [&] { queue.hand_over(); };
    count(util::format("hand-over, {} waiters", waiters), hands_over, joins);
    if (waiters != 10) return;
    joins();
    count("joining, 10 waiters", joins, hands_over);
  }

  void queues() {
    for (const uint64_t waiters : {10, 50}) {
      const std::string name = util::format("queue-{}", waiters);
      Queue queue(world_, server_, name, waiters - 1);
      if (waiters == 10) count("status, 10 waiters", [&] { status(name); });
      count_hand_over(queue, waiters);
    }
    // The way to a waiter in the skip lists is a matter of chance: so they are many.
    uint64_t number = 0;
    Run any = run("crowd");
    count("heartbeat, 100000 waiters", [&] { any.beats(owner(number += kCrowd / 30)); });
    // Whoever comes near the head is woken, and asks again.
    Queue crowd(world_, server_, "crowd", kNear + kRounds + kUncountedRounds);
    count_hand_over(crowd, kCrowd);
  }

  void status(const std::string& name) {
    redis::RedisStore store(at(server_), "rlock:");
    lock::InspectCall call{*lock::LockName::parse(name)};
    call.waiters_page = 0;
    const auto reply = world_.answer(store.inspect_all({call}));
    need(reply.front() && reply.front()->live_holders == 1, "the lock has a holder");
  }

  World world_{};
  std::unique_ptr<test::RedisServer> crowded_ = crowded(world_);
  CountedServer counted_{world_, crowded_->folder()};
  const test::RedisServer& server_ = counted_.server();
  uint64_t runs_ = 0;
  std::vector<Count> counts_{};
};

// ---- the table ----

// Thousands of instructions for each request, with a column for each server.
class Table {
 public:
  explicit Table(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      const auto cells = util::split(line, '\t');
      if (servers_.empty()) {
        servers_.assign(cells.begin() + 1, cells.end());
        continue;
      }
      for (size_t i = 1; i < cells.size(); ++i) {
        if (const auto cell = util::parse_number<uint64_t>(cells[i])) {
          cells_[{std::string(cells[0]), servers_.at(i - 1)}] = *cell;
        }
      }
    }
  }

  bool has(const std::string& server) const {
    return std::find(servers_.begin(), servers_.end(), server) != servers_.end();
  }
  std::optional<uint64_t> at(const std::string& request, const std::string& server) const {
    const auto cell = cells_.find({request, server});
    return cell == cells_.end() ? std::nullopt : std::optional(cell->second);
  }
  // Leaves what has not changed, so that the difference shows what a commit has changed.
  void set(const std::string& server, const std::vector<Count>& counts) {
    if (!has(server)) servers_.push_back(server);
    for (const Count& count : counts) {
      const auto before = at(count.request, server);
      if (before && std::abs(count.above(*before)) < kChance) continue;
      cells_[{count.request, server}] = count.thousands();
    }
  }
  void write(const std::vector<Count>& counts) const {
    std::ofstream file(path_);
    file << "thousands of instructions";
    for (const std::string& server : servers_) file << '\t' << server;
    for (const Count& count : counts) {
      file << '\n' << count.request;
      for (const std::string& server : servers_) {
        const auto cell = at(count.request, server);
        file << '\t' << (cell ? std::to_string(*cell) : "-");
      }
    }
    file << '\n';
    if (!file.flush()) fail("cannot write " + path_);
  }

 private:
  std::string path_;
  std::vector<std::string> servers_{};
  std::map<std::pair<std::string, std::string>, uint64_t> cells_{};  // of (request, server)
};

// `Redis 7.0.15 ae4d7c971a948f0`: the build identifies the package.
std::string server_name() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen("redis-server --version", "r"), pclose);
  char line[256] = "";
  if (pipe == nullptr || fgets(line, sizeof line, pipe.get()) == nullptr) fail("no redis-server");
  const auto words = util::split(std::string_view(line).substr(0, strcspn(line, "\n")), ' ');
  std::string name(words[0]);
  for (const std::string_view word : words) {
    for (const std::string_view key : {"v=", "build="}) {
      if (word.starts_with(key)) name += " " + std::string(word.substr(key.size()));
    }
  }
  return name;
}

// Prints the counts. Returns whether none is too far above the table.
bool compare(const std::vector<Count>& counts, const Table& table, const std::string& server) {
  bool holds = true;
  printf("%-38s %10s %10s\n", "instructions", "counted", "table");
  for (const Count& count : counts) {
    const auto expected = table.at(count.request, server);
    printf("%-38s %9luk", count.request.c_str(), count.thousands());
    if (expected) printf(" %9luk %+6.1f %%", *expected, 100 * count.above(*expected));
    const bool fits = !table.has(server) || (expected && count.above(*expected) <= kMostAbove);
    printf("%s\n", fits ? "" : expected ? "  TOO MANY" : "  NOT IN THE TABLE");
    holds = holds && fits;
  }
  return holds;
}

int count_and_compare(const std::string& path, bool writes) {
  const std::string server = server_name();
  const std::vector<Count> counts = Bench().all();
  Table table(path);
  const bool holds = compare(counts, table, server);
  if (writes) {
    table.set(server, counts);
    table.write(counts);
    return 0;
  }
  if (!table.has(server)) printf("%s has no column of %s\n", path.c_str(), server.c_str());
  if (!holds) {
    printf("If users or readers get something for it, say what in the commit, and add --write\n");
  }
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rlock::bench

int main(int argc, char** argv) {
  const bool writes = argc == 3 && std::string_view(argv[2]) == "--write";
  if (argc != 2 && !writes) {
    fprintf(stderr, "usage: instructions TABLE [--write]\n");
    return 64;
  }
  if (std::system("command -v valgrind >/dev/null") != 0) {
    printf("valgrind was not found: nothing was counted\n");
    return 77;
  }
  try {
    return rlock::bench::count_and_compare(argv[1], writes);
  } catch (const std::exception& error) {
    printf("%s\n", error.what());
    return 1;
  }
}
