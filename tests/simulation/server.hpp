#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fake_redis/scripts.hpp"
#include "simulation/network.hpp"

namespace rlock::sim {

using fake::Database;
using fake::Reply;
using Command = std::vector<std::string>;

// One server: the scripts over keys in memory, a clock of its own, and what befalls it.
class Server {
 public:
  // Each script that was run: for the journal and the ledger.
  using OnScript = std::function<void(const Server&, const Command&, const Reply&)>;

  Server(World& world, Network& network, fake::ScriptEngine& engine,
         const std::vector<lua::Script>& scripts, size_t number, const Clock& clock)
      : world_(world),
        network_(network),
        engine_(engine),
        scripts_(scripts),
        number_(number),
        clock_(clock),
        started_(clock.at(world.now())) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  size_t number() const { return number_; }
  std::string label() const { return "server" + std::to_string(number_); }
  Clock& clock() { return clock_; }
  Nanos shown() const { return clock_.at(world_.now()); }
  // With the keys as they are at this moment.
  Database& database();
  void on_script(OnScript callback) { on_script_ = std::move(callback); }

  // ---- what arrives from the network ----
  void connect(const WirePtr& wire);
  void request(const WirePtr& wire, const Command& words);
  void closed(const WirePtr& wire);
  // One over which nothing but a repeated request comes.
  void adopt(const WirePtr& wire);

  // ---- what befalls it ----
  void hang_until(Moment until) { hangs_until_ = std::max(hangs_until_, until); }
  enum class Data { kept, lost };
  void restart(Data data, Nanos takes);
  void lose_data() { database_.clear(); }
  // A replica that is behind takes over: what was written since remember() is lost, and it has
  // confirmed none of that.
  void remember() { remembered_ = database_; }
  // One of its replicas becomes a master, which no client knows yet. The others confirm what this
  // one writes on, and what nobody will have.
  void promote() {
    remembered_ = database_;
    promoted_ = true;
  }
  bool fails_over() const { return promoted_; }
  void fail_over(Nanos takes);

 private:
  struct Blocked {
    WirePtr wire;
    uint64_t number;
  };

  std::string info() const;
  Reply execute(const Command& words);
  const lua::Script* script_of(const Command& words);
  void block(const WirePtr& wire, const Command& words);
  void wait_for_replica(const WirePtr& wire, const Command& words);
  void unblock(const std::string& key, uint64_t number);
  void serve_blocked();
  void note_pop(const std::string& key, const std::string& element);
  void answer(const WirePtr& wire, const Reply& reply);
  // Whether it is for later: the server hangs.
  bool defers(const std::function<void()>& what);

  World& world_;
  Network& network_;
  fake::ScriptEngine& engine_;
  const std::vector<lua::Script>& scripts_;
  const size_t number_;
  Clock clock_;
  Database database_;
  std::optional<Database> remembered_;
  bool promoted_ = false;
  std::set<std::string> known_;  // digests of scripts that it was sent
  std::map<std::string, std::deque<Blocked>> blocked_;
  std::vector<std::weak_ptr<Wire>> wires_;  // some of them closed
  size_t wires_left_ = 0;                   // when closed ones were taken out last
  uint64_t blocked_seen_ = 0;
  uint64_t starts_ = 1;
  Nanos started_;  // by its clock
  Moment down_until_{0};
  Moment hangs_until_{0};
  OnScript on_script_;
};

}  // namespace rlock::sim
