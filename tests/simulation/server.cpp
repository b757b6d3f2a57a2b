#include "simulation/server.hpp"

#include <algorithm>
#include <stdexcept>

#include "simulation/link.hpp"

namespace rlock::sim {

Database& Server::database() {
  database_.set_time(std::chrono::duration_cast<std::chrono::microseconds>(shown()).count());
  return database_;
}

bool Server::defers(const std::function<void()>& what) {
  if (hangs_until_ <= world_.now()) return false;
  world_.at(hangs_until_, what);
  return true;
}

std::string Server::info() const {
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(shown() - started_).count();
  const std::string text = "uptime_in_seconds:" + std::to_string(uptime) + "\r\nrun_id:" + label() +
                           "-" + std::to_string(starts_) + "\r\n";
  std::string wire;
  fake::append_wire(wire, Reply::of(text));
  return wire;
}

void Server::connect(const WirePtr& wire) {
  if (defers([this, wire] { connect(wire); })) return;
  const bool up = world_.now() >= down_until_;
  if (up) adopt(wire);
  auto back = network_.arrival(*wire, Network::Way::down);
  if (!back) return;
  world_.at(*back, [wire, up, text = info(), known = known_] {
    if (wire->client == nullptr) return;
    up ? wire->client->on_accepted(text, known) : wire->client->on_closed();
  });
}

void Server::adopt(const WirePtr& wire) {
  wire->open_there = true;
  wires_.push_back(wire);
  if (wires_.size() < 2 * wires_left_ + 64) return;
  std::erase_if(wires_, [](const auto& one) {
    const auto kept = one.lock();
    return !kept || !kept->open_there;
  });
  wires_left_ = wires_.size();
}

void Server::closed(const WirePtr& wire) {
  wire->open_there = false;
  auto found = blocked_.find(std::exchange(wire->blocked_on, {}));
  if (found == blocked_.end()) return;
  std::erase_if(found->second, [&](const Blocked& one) { return one.wire == wire; });
  if (found->second.empty()) blocked_.erase(found);
}

void Server::request(const WirePtr& wire, const Command& words) {
  if (defers([this, wire, words] { request(wire, words); })) return;
  if (world_.now() < down_until_ || !wire->open_there) {
    if (auto back = network_.arrival(*wire, Network::Way::down)) {
      world_.at(*back, [wire] {
        if (wire->client != nullptr) wire->client->on_closed();
      });
    }
    return;
  }
  if (words.front() == "BLPOP") return block(wire, words);
  if (words.front() == "WAIT") return wait_for_replica(wire, words);
  const Reply reply = execute(words);
  answer(wire, reply);
  serve_blocked();
}

void Server::answer(const WirePtr& wire, const Reply& reply) {
  auto back = network_.arrival(*wire, Network::Way::down);
  if (!back) return;
  std::string bytes;
  fake::append_wire(bytes, reply);
  world_.at(*back, [wire, bytes = std::move(bytes)] {
    if (wire->client != nullptr) wire->client->on_reply(bytes);
  });
}

// Null where it was not sent the script before.
const lua::Script* Server::script_of(const Command& words) {
  const bool by_text = words[0] == "EVAL";
  for (const lua::Script& script : scripts_) {
    if (words[1] != (by_text ? script.text : script.sha1)) continue;
    if (by_text) known_.insert(std::string(script.sha1));
    return known_.contains(std::string(script.sha1)) ? &script : nullptr;
  }
  if (by_text) throw std::logic_error("a script of which the simulation knows nothing");
  return nullptr;
}

Reply Server::execute(const Command& words) {
  if (words[0] != "EVALSHA" && words[0] != "EVAL") {
    throw std::logic_error("the simulated server has no command " + words[0]);
  }
  const lua::Script* script = script_of(words);
  if (script == nullptr) return Reply::error("NOSCRIPT No matching script.");
  const auto first = words.begin() + 3;
  const auto middle = first + std::stol(words[2]);
  Reply reply = engine_.run(database(), *script, {first, middle}, {middle, words.end()});
  if (on_script_) on_script_(*this, words, reply);
  return reply;
}

void Server::block(const WirePtr& wire, const Command& words) {
  const std::string& key = words.at(1);
  if (std::string first = database().pop(key); !first.empty()) {
    note_pop(key, first);
    return answer(wire, Reply::array({Reply::of(key), Reply::of(first)}));
  }
  const uint64_t number = ++blocked_seen_;
  wire->blocked_on = key;
  blocked_[key].push_back({wire, number});
  const auto slice = std::chrono::duration<double>(std::stod(words.at(2)));
  const Nanos ends = shown() + std::chrono::duration_cast<Nanos>(slice);
  world_.at(clock_.when(ends), [this, key, number] { unblock(key, number); });
}

// Of its three replicas. They have everything at once, or nothing new until one of them takes over;
// once one was promoted the two others have it.
void Server::wait_for_replica(const WirePtr& wire, const Command& words) {
  if (promoted_) return answer(wire, Reply::of(int64_t{2}));
  if (!remembered_) return answer(wire, Reply::of(int64_t{3}));
  world_.after(Millis(std::stol(words.at(2))), [this, wire, starts = starts_] {
    if (starts == starts_) answer(wire, Reply::of(int64_t{0}));
  });
}

// As if one had been there who did not have to wait.
void Server::note_pop(const std::string& key, const std::string& element) {
  if (on_script_) on_script_(*this, {"LPOP", key}, Reply::of(element));
}

void Server::unblock(const std::string& key, uint64_t number) {
  auto found = blocked_.find(key);
  if (found == blocked_.end()) return;
  if (defers([this, key, number] { unblock(key, number); })) return;
  auto& waiting = found->second;
  auto one = std::find_if(waiting.begin(), waiting.end(),
                          [&](const Blocked& blocked) { return blocked.number == number; });
  if (one == waiting.end()) return;
  const WirePtr wire = one->wire;
  wire->blocked_on.clear();
  waiting.erase(one);
  if (waiting.empty()) blocked_.erase(found);
  answer(wire, Reply{});
}

void Server::serve_blocked() {
  for (const std::string& key : database_.take_pushed()) {
    auto found = blocked_.find(key);
    if (found == blocked_.end()) continue;
    std::string first = database_.pop(key);
    if (first.empty()) continue;
    note_pop(key, first);
    const WirePtr wire = found->second.front().wire;
    wire->blocked_on.clear();
    found->second.pop_front();
    if (found->second.empty()) blocked_.erase(found);
    answer(wire, Reply::array({Reply::of(key), Reply::of(first)}));
  }
}

void Server::restart(Data data, Nanos takes) {
  ++starts_;
  down_until_ = world_.now() + takes;
  started_ = clock_.at(down_until_);
  hangs_until_ = std::min(hangs_until_, down_until_);
  known_.clear();
  blocked_.clear();
  if (data == Data::lost) database_.clear();
  for (const auto& weak : std::exchange(wires_, {})) {
    const WirePtr wire = weak.lock();
    if (!wire || !wire->open_there) continue;
    wire->open_there = false;
    auto back = network_.arrival(*wire, Network::Way::down);
    if (!back) continue;
    world_.at(*back, [wire] {
      if (wire->client != nullptr) wire->client->on_closed();
    });
  }
}

void Server::fail_over(Nanos takes) {
  if (remembered_) database_ = std::move(*remembered_);
  remembered_.reset();
  promoted_ = false;
  restart(Data::kept, takes);
}

}  // namespace rlock::sim
