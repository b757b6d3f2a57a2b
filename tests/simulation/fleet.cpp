#include "simulation/fleet.hpp"

#include <algorithm>
#include <deque>

#include "lock/poller.hpp"
#include "lock/quorum/quorum.hpp"
#include "redis/link/connection.hpp"
#include "simulation/other_scripts.hpp"

namespace rlock::sim {
namespace {

// The longest that anybody may still wait when nothing fails and nobody comes any more, for each
// run that is still there.
constexpr Nanos kPatience = 15min;
// After the last lease, the keys that outlive it are gone; after a month all others, too.
constexpr Nanos kKeysLive = 4min;
constexpr Nanos kMemoryLives = 31 * 24h;
// How long an operator waits for an answer.
constexpr Millis kAnswer{10'000};
// A journal has the keys after each one of so many scripts.
constexpr size_t kKeysEach = 10;

fake::ScriptEngine& engine() {
  static fake::ScriptEngine one;
  return one;
}

redis::Scripts scripts_of_another_version() {
  const auto all = other_scripts();
  const auto script = [&all](size_t i) { return lua::Script{all.at(i).sha1, all.at(i).text}; };
  return {script(0), script(1), script(2), script(3), script(4),
          script(5), script(6), script(7), script(8)};
}

class Fleet {
 public:
  Fleet(const Scenario& scenario, const Broken& broken, const Wanted& wanted);
  Outcome live();

 private:
  void make_hosts();
  void make_servers();
  void schedule_runs();
  void begin_run(size_t run);
  void schedule(const Fault& fault);
  void strike(const Fault& fault);
  void strike_process(const Fault& fault);
  void strike_locks(const Fault& fault);
  void break_locks(Process& process, const Fault& fault);
  void set_closure(Process& process, const Fault& fault);
  void forget_work(Process& process, const Fault& fault);
  void freeze(const Fault& fault);
  void strike_server(const Fault& fault, Server& server);
  void cut(size_t host, size_t server, Moment until);
  std::unique_ptr<lock::LockServer> open(Process& process);
  std::unique_ptr<lock::LockServer> open_member(Process& process, Server& server);
  void on_script(const Server& server, const Command& words, const Reply& reply);
  void note_broken(const Command& words, const Reply& reply);
  const redis::Scripts& scripts_of(const Process& process) const;
  std::shared_ptr<redis::MemberRegistry>& registry_of(const Process& process);
  void end_everything();
  void run_to_the_end();
  void check_what_is_left(bool everything);

  const Scenario& scenario_;
  const Setting& setting_;
  Broken broken_;
  Wanted wanted_;
  World world_;
  test::ScriptSet scripts_;
  redis::Scripts other_scripts_ = scripts_of_another_version();
  std::vector<lua::Script> known_scripts_;  // by servers: of both versions
  Network network_;
  Ledger ledger_;
  Outcome outcome_;
  std::deque<Host> hosts_;
  std::deque<Server> servers_;
  std::vector<std::shared_ptr<Client>> clients_;                    // by run; null before and after
  std::vector<std::shared_ptr<redis::MemberRegistry>> registries_;  // likewise
  std::vector<std::shared_ptr<Process>> operators_;
  Moment last_strike_{0};
};

Fleet::Fleet(const Scenario& scenario, const Broken& broken, const Wanted& wanted)
    : scenario_(scenario),
      setting_(scenario.setting),
      broken_(broken),
      wanted_(wanted),
      world_(scenario.seed),
      scripts_(broken.scripts),
      known_scripts_(scripts_.for_servers()),
      network_(world_, setting_.rates),
      ledger_(world_, scenario),
      clients_(scenario.runs.size()),
      registries_(scenario.runs.size()) {
  if (wanted.trace) ledger_.trace_to(&outcome_.trace);
  network_.on_mishap([this](uint64_t process) {
    if (process < clients_.size()) ledger_.note_mishap(process);
  });
  for (const auto& script : other_scripts()) known_scripts_.push_back({script.sha1, script.text});
  make_hosts();
  make_servers();
  schedule_runs();
  for (size_t fault : scenario.kept_faults) schedule(scenario.faults[fault]);
}

void Fleet::make_hosts() {
  for (size_t i = 0; i < setting_.hosts; ++i) {
    const HostClocks clocks = clocks_of_host(setting_, scenario_.seed, i);
    hosts_.push_back(
        {i, Clock(clocks.since_boot, clocks.drift), Clock(kEpoch + clocks.skew, clocks.drift)});
  }
}

void Fleet::make_servers() {
  for (size_t i = 0; i < setting_.servers; ++i) {
    Chance chance(scenario_.seed, 6, i);
    const int64_t ppm = random_drift(chance, setting_);
    const Nanos skew = chance.between(-setting_.skew, setting_.skew);
    Server& server = servers_.emplace_back(world_, network_, engine(), known_scripts_, i,
                                           Clock(kEpoch + skew, ppm));
    server.on_script([this](const Server& one, const Command& words, const Reply& reply) {
      on_script(one, words, reply);
    });
    // It has been up for long.
    server.restart(Server::Data::lost, 0s);
    server.clock().step(world_.now(), 2min);
  }
}

void Fleet::schedule_runs() {
  for (size_t run : scenario_.kept_runs) {
    world_.at(scenario_.runs[run].at, [this, run] { begin_run(run); });
  }
}

void Fleet::begin_run(size_t run) {
  const Run& plan = scenario_.runs[run];
  registries_[run] = std::make_shared<redis::MemberRegistry>();
  clients_[run] =
      std::make_shared<Client>(world_, hosts_[plan.host], ledger_, plan, run, broken_.client,
                               [this](Process& process) { return open(process); });
  clients_[run]->process().on_death(
      [this](const WirePtr& wire) { close_wire(world_, network_, servers_[wire->server], wire); });
  clients_[run]->live([this, run] {
    clients_[run].reset();
    registries_[run].reset();
  });
}

// An operator's process has a number beyond those of the runs, and needs no memory of members.
std::shared_ptr<redis::MemberRegistry>& Fleet::registry_of(const Process& process) {
  static std::shared_ptr<redis::MemberRegistry> none;
  return process.number() < registries_.size() ? registries_[process.number()] : none;
}

const redis::Scripts& Fleet::scripts_of(const Process& process) const {
  const bool other = setting_.versions > 1 && Chance(scenario_.seed, 7, process.number()).with(0.5);
  return other ? other_scripts_ : scripts_.for_stores();
}

std::unique_ptr<lock::LockServer> Fleet::open_member(Process& process, Server& server) {
  LinkOptions options;
  options.member = setting_.servers > 1;
  options.counts_everybody = broken_.client == ClientRule::passes_over_members_that_restarted;
  options.sentinels = setting_.sentinels;
  const redis::Scripts& scripts = scripts_of(process);
  options.final_script = scripts.release.sha1;
  auto link = std::make_unique<Link>(process, server, network_, options, registry_of(process));
  return std::make_unique<Store>(broken_.client, std::move(link), scripts);
}

std::unique_ptr<lock::LockServer> Fleet::open(Process& process) {
  // Without a majority: whichever server this host prefers decides.
  const bool alone = broken_.client == ClientRule::needs_a_majority;
  if (setting_.servers == 1 || alone) {
    Server& server = servers_[process.host().number % setting_.servers];
    return open_member(process, server);
  }
  std::vector<lock::MakeServer> makers;
  for (Server& server : servers_) {
    makers.push_back([this, &process, &server] { return open_member(process, server); });
  }
  return std::make_unique<lock::QuorumStore>(
      std::move(makers), lock::QuorumSources{process.chance(), [] { return wall_micros(); }});
}

void Fleet::schedule(const Fault& fault) {
  world_.at(fault.at, [this, &fault] { strike(fault); });
  last_strike_ = std::max(last_strike_, fault.at + fault.lasts);
  if (fault.kind != FaultKind::fail_over && fault.kind != FaultKind::planned) return;
  world_.at(fault.at - fault.amount, [this, &fault] {
    Server& server = servers_[fault.which];
    fault.kind == FaultKind::planned ? server.promote() : server.remember();
  });
}

void Fleet::cut(size_t host, size_t server, Moment until) {
  network_.cut(host, server, until);
  for (size_t run = 0; run < clients_.size(); ++run) {
    if (clients_[run] && scenario_.runs[run].host == host) ledger_.note_mishap(run);
  }
}

void Fleet::strike(const Fault& fault) {
  ++ledger_.counts().faults;
  ledger_.trace("FAULT: " + describe(fault));
  switch (fault.kind) {
    case FaultKind::kill:
    case FaultKind::stop:
    case FaultKind::interrupt:
      return strike_process(fault);
    case FaultKind::cut:
      return cut(fault.which, fault.server, world_.now() + fault.lasts);
    case FaultKind::host_step:
      return hosts_[fault.which].wall.step(world_.now(), fault.amount);
    case FaultKind::freeze:
      return freeze(fault);
    case FaultKind::force:
    case FaultKind::force_now:
    case FaultKind::close:
    case FaultKind::open:
    case FaultKind::forget_work:
      return strike_locks(fault);
    default:
      ledger_.note_server_mishap();
      return strike_server(fault, servers_[fault.which]);
  }
}

// An operator at any host.
void Fleet::strike_locks(const Fault& fault) {
  const uint64_t number = clients_.size() + operators_.size();
  const auto& process = operators_.emplace_back(
      std::make_shared<Process>(world_, hosts_[number % hosts_.size()], number));
  process->on_death(
      [this](const WirePtr& wire) { close_wire(world_, network_, servers_[wire->server], wire); });
  process->start([this, &fault, &one = *process] {
    switch (fault.kind) {
      case FaultKind::close:
      case FaultKind::open:
        return set_closure(one, fault);
      case FaultKind::forget_work:
        return forget_work(one, fault);
      default:
        return break_locks(one, fault);
    }
  });
}

// `rlock force-unlock --all`: looks who holds the lock, and breaks their holds.
void Fleet::break_locks(Process& process, const Fault& fault) {
  const auto store = open(process);
  const auto name = *lock::LockName::parse("job" + std::to_string(fault.which));
  lock::SystemPoller poller(kSignalFd);
  const auto seen =
      lock::finish(poller, store->inspect({name}), poller.now() + kAnswer, store->server());
  if (!seen || seen->holders.empty()) return;
  const bool waits = fault.kind == FaultKind::force;
  lock::ForceCall call{name,
                       {},
                       waits ? lock::ForceWhen::confirmed : lock::ForceWhen::now,
                       "operator " + std::to_string(process.number())};
  for (const lock::Holder& holder : seen->holders) {
    auto owner = lock::Owner::parse(holder.owner);
    if (owner) call.targets.push_back({*owner, holder.token});
  }
  (void)lock::finish(poller, store->force_unlock(call), poller.now() + kAnswer, store->server());
}

// `rlock close` and `rlock open`: look whether the lock is closed, and change that.
void Fleet::set_closure(Process& process, const Fault& fault) {
  const auto store = open(process);
  const auto name = *lock::LockName::parse("job" + std::to_string(fault.which));
  lock::SystemPoller poller(kSignalFd);
  Ledger::Closing closing{fault.which};
  closing.looked = world_.now();
  const auto seen =
      lock::finish(poller, store->inspect({name}), poller.now() + kAnswer, store->server());
  const bool opens = fault.kind == FaultKind::open;
  if (!seen || (opens && !seen->closure)) return;
  lock::ClosureCall call{name};
  call.looked = seen->now;
  if (seen->closure) call.seen = closing.seen = seen->closure->id;
  if (!opens) {
    call.id = closing.id = util::random_hex(process.chance());
    closing.length = fault.lasts;
    call.length = std::chrono::duration_cast<Millis>(fault.lasts);
  }
  ledger_.asks_to_close(closing);
  const auto reply =
      lock::finish(poller, store->set_closure(call), poller.now() + kAnswer, store->server());
  if (reply && *reply == lock::ClosureReply::done) ledger_.closed(closing);
}

// `rlock forget`.
void Fleet::forget_work(Process& process, const Fault& fault) {
  const auto store = open(process);
  const auto name = *lock::LockName::parse("job" + std::to_string(fault.which));
  lock::SystemPoller poller(kSignalFd);
  // Over a quorum a lease that its owner could not release, and a silent server, may pass for a
  // run that goes on.
  const auto seen =
      lock::finish(poller, store->inspect({name}), poller.now() + kAnswer, store->server());
  const bool is_clear =
      seen && seen->silent.empty() && seen->holders.empty() && seen->partial.empty();
  const Moment asked = world_.now();
  // Without an answer it may still come to pass.
  ledger_.asks_to_forget(fault.which, asked + kLatest);
  const auto reply =
      lock::finish(poller, store->forget({name}), poller.now() + kAnswer, store->server());
  if (reply && (setting_.servers == 1 || is_clear)) ledger_.forgotten(fault.which, asked);
}

void Fleet::freeze(const Fault& fault) {
  for (size_t run = 0; run < clients_.size(); ++run) {
    if (!clients_[run] || scenario_.runs[run].host != fault.which) continue;
    ledger_.note_mishap(run);
    clients_[run]->freeze(world_.now() + fault.lasts);
  }
}

void Fleet::strike_process(const Fault& fault) {
  const auto client = clients_[fault.which];
  if (!client || client->frozen()) return;
  ledger_.note_mishap(fault.which);
  if (fault.kind == FaultKind::kill) {
    ++ledger_.counts().kills;
    return client->kill();
  }
  if (fault.kind == FaultKind::interrupt) return client->process().interrupt();
  client->process().stop();
  world_.after(fault.lasts, [client] { client->process().resume(); });
}

void Fleet::strike_server(const Fault& fault, Server& server) {
  using enum FaultKind;
  if (fault.kind == forget || fault.kind == flush || fault.kind == fail_over ||
      fault.kind == planned)
    ledger_.note_data_lost();
  // What it was asked meanwhile is answered late.
  world_.after(fault.lasts, [this] { ledger_.note_server_mishap(); });
  switch (fault.kind) {
    case FaultKind::cut_server:
      for (const Host& host : hosts_) {
        network_.cut(host.number, server.number(), world_.now() + fault.lasts);
      }
      return;
    case FaultKind::hang:
      return server.hang_until(world_.now() + fault.lasts);
    case FaultKind::restart:
      return server.restart(Server::Data::kept, fault.lasts);
    case FaultKind::forget:
      return server.restart(Server::Data::lost, fault.lasts);
    case FaultKind::flush:
      return server.lose_data();
    case FaultKind::fail_over:
    case FaultKind::planned:
      server.fail_over(fault.lasts);
      return server.clock().step(world_.now(), fault.gap);
    default:
      return server.clock().step(world_.now(), fault.amount);
  }
}

void Fleet::on_script(const Server& server, const Command& words, const Reply& reply) {
  ++ledger_.counts().scripts;
  note_broken(words, reply);
  const int64_t micros =
      std::chrono::duration_cast<std::chrono::microseconds>(server.shown()).count();
  std::string bytes;
  fake::append_wire(bytes, reply);
  auto add = [this](std::string_view text) {
    for (unsigned char c : text) outcome_.digest = (outcome_.digest ^ c) * 0x100000001b3;
  };
  add(std::to_string(server.number()) + " " + std::to_string(micros));
  for (const std::string& word : words) add(word);
  add(bytes);
  if (!wanted_.journal) return;
  outcome_.journal.push_back({server.number(), micros, words, bytes, {}});
  if (server.number() == 0 && outcome_.journal.size() % kKeysEach == 0) {
    outcome_.journal.back().keys = keys_as_text(servers_.front().database());
  }
}

// A holder that responds counts until it confirms, unless the operator does not wait.
void Fleet::note_broken(const Command& words, const Reply& reply) {
  const auto breaks = [&](const lua::Script& script) {
    return words[1] == script.sha1 || words[1] == script.text;
  };
  const bool forced =
      (breaks(scripts_.for_stores().force_unlock) || breaks(other_scripts_.force_unlock)) &&
      reply.type == Reply::Type::array && reply.items.front().text == "forced";
  if (!forced) return;
  auto fact = [](const Reply& facts, const std::string& name) -> const Reply& {
    for (size_t i = facts.items.size() % 2; i < facts.items.size(); i += 2) {
      if (facts.items[i].text == name) return facts.items[i + 1];
    }
    throw std::logic_error("no " + name);
  };
  const bool waits = std::find(words.begin(), words.end(), "now") == words.end();
  for (const Reply& holder : fact(reply, "broken").items) {
    const std::string& key = words[3];
    const size_t from = key.find("{job") + 4;
    ledger_.broken(std::stoul(key.substr(from)),
                   static_cast<uint64_t>(fact(holder, "token").number),
                   waits && fact(holder, "responsive").text != "0");
  }
}

void Fleet::run_to_the_end() {
  Moment end = std::max(setting_.lasts, last_strike_);
  for (size_t run : scenario_.kept_runs) end = std::max(end, scenario_.runs[run].at);
  Nanos patience = kPatience;
  for (size_t run : scenario_.kept_runs) patience += scenario_.runs[run].hold + 100ms;
  while (!world_.is_over() && world_.next_event() <= end + patience) {
    world_.step();
    if (ledger_.still_there() == 0 && world_.now() >= end) break;
  }
  outcome_.lasted = world_.now();
  if (ledger_.still_there() == 0) return;
  ledger_.report(Check::prompt, std::to_string(ledger_.still_there()) + " runs wait for ever");
}

void Fleet::check_what_is_left(bool everything) {
  for (Server& server : servers_) {
    Database& database = server.database();
    for (const std::string& key : database.keys()) {
      const bool endless = database.look(key)->expires < 0;
      if (everything || endless) {
        ledger_.report(Check::left, server.label() + " still has " + key);
      }
    }
  }
}

// So that what is on the stacks of fibers is destroyed.
void Fleet::end_everything() {
  for (const auto& client : clients_) {
    if (client) client->process().kill();
  }
  for (const auto& one : operators_) one->kill();
  auto is_left = [](const auto& one) { return !one->over(); };
  while (!world_.is_over() && (ledger_.still_there() > 0 ||
                               std::any_of(operators_.begin(), operators_.end(), is_left))) {
    world_.step();
  }
}

Outcome Fleet::live() {
  run_to_the_end();
  if (ledger_.still_there() == 0) {
    for (Server& server : servers_) server.clock().step(world_.now(), kKeysLive);
    check_what_is_left(false);
    for (Server& server : servers_) server.clock().step(world_.now(), kMemoryLives);
    check_what_is_left(true);
  }
  end_everything();
  outcome_.violations = ledger_.violations();
  outcome_.counts = ledger_.counts();
  return std::move(outcome_);
}

}  // namespace

void Sums::add(const Outcome& outcome) {
  for (auto part : {&Counts::runs, &Counts::commands, &Counts::queued, &Counts::scripts,
                    &Counts::kills, &Counts::faults, &Counts::overlaps, &Counts::successes,
                    &Counts::done, &Counts::failed_too_often, &Counts::superseded, &Counts::broken,
                    &Counts::closed, &Counts::forgotten, &Counts::returned}) {
    counts.*part += outcome.counts.*part;
  }
  counts.longest_gap = std::max(counts.longest_gap, outcome.counts.longest_gap);
  simulated += std::chrono::duration<double>(outcome.lasted).count();
  ++histories;
  violations += outcome.violations.size();
  worlds_violated += outcome.violations.empty() ? 0 : 1;
}

Outcome play(const Scenario& scenario, const Broken& broken, const Wanted& wanted) {
  return Fleet(scenario, broken, wanted).live();
}

std::vector<std::string> keys_as_text(Database& database) {
  std::vector<std::string> lines;
  for (const std::string& key : database.keys()) {
    const fake::Value& value = *database.look(key);
    std::string text = key + " until " + std::to_string(value.expires) + ":";
    if (const auto* string = std::get_if<std::string>(&value.data)) text += " " + *string;
    if (const auto* list = std::get_if<fake::List>(&value.data)) {
      for (const auto& element : *list) text += " " + element;
    }
    if (const auto* hash = std::get_if<fake::Hash>(&value.data)) {
      std::vector<std::string> fields;
      for (const auto& [field, content] : *hash) fields.push_back(" " + field + "=" + content);
      std::sort(fields.begin(), fields.end());
      for (const auto& field : fields) text += field;
    }
    if (const auto* set = std::get_if<fake::SortedSet>(&value.data)) {
      for (const auto& [score, member] : set->rows())
        text += " " + member + "=" + fake::text_of(score);
    }
    lines.push_back(std::move(text));
  }
  return lines;
}

}  // namespace rlock::sim
