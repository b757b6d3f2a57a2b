#include "model/explore.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <unordered_map>

#include "model/canonical.hpp"
#include "model/checks.hpp"
#include "model/steps.hpp"
#include "util/text.hpp"

namespace rlock::model {
namespace {

constexpr size_t kNowhere = SIZE_MAX;

// Clients with equal work share it, so that they can be exchanged.
const Work* same_work(const Bounds& bounds, size_t place) {
  const Work& work = bounds.works[place];
  if (work == Work{}) return nullptr;
  return &*std::find(bounds.works.begin(), bounds.works.end(), work);
}

World beginning(const Bounds& bounds) {
  World world;
  for (size_t place = 0; place < bounds.clients(); ++place) {
    Client client;
    if (place < bounds.limits.size()) client.limit = bounds.limits[place];
    if (place < bounds.works.size()) client.work = same_work(bounds, place);
    client.rounds_left = bounds.rounds;
    world.clients.push_back(client);
  }
  world.faults_left = bounds.faults;
  world.losses_left = bounds.losses;
  world.forces_left = bounds.forces;
  world.closures_left = bounds.closures;
  world.forgets_left = bounds.forgets;
  world.failures_left = bounds.failures;
  return world;
}

// A live client waits: it must get the lock.
bool waits(const World& world) {
  return std::any_of(world.clients.begin(), world.clients.end(), [](const Client& client) {
    return client.phase == ClientPhase::waiting && !client.stalled;
  });
}

std::string members(const std::vector<Row>& rows, const Memory* lines) {
  std::string text;
  for (const Row& row : rows) {
    text += " " + row.member;
    if (lines != nullptr) text += "(" + line_of(*lines, row.member).state + ")";
  }
  return text.empty() ? " nobody" : text;
}

std::string delivered(const World& world, const std::string& what, const Reply& reply) {
  std::string text = what;
  if (!reply.word.empty()) text += " -> " + reply.word + (reply.how.empty() ? "" : " " + reply.how);
  return util::format("{}   [at {} ms; hold:{}; wait:{}]", text, world.now,
                      members(world.memory->holders, world.memory.get()),
                      members(world.memory->queue, nullptr));
}

class Explorer {
 public:
  Explorer(Server& server, const Bounds& bounds) : server_(server), bounds_(bounds) {}

  Findings run(size_t most_states) {
    World first = beginning(bounds_);
    size_t start = 0;
    reach(first, kNowhere, start);
    nodes_[start].what = "nobody is there";
    frontier_.emplace_back(start, std::move(first));
    while (!frontier_.empty() && findings_.broken.empty() && nodes_.size() < most_states) {
      auto [id, world] = std::move(frontier_.front());
      frontier_.pop_front();
      for (Step& step : steps(world)) take(id, world.now, step);
    }
    if (findings_.broken.empty()) check_waits();
    if (findings_.broken.empty() && !frontier_.empty())
      findings_.whole_depth = nodes_[frontier_.front().first].depth;
    findings_.states = nodes_.size();
    return std::move(findings_);
  }

 private:
  struct Node {
    size_t parent;
    std::string what;
    size_t depth;
    bool waits;
    Rank rank = Rank::none;  // of the step that a fair schedule takes
    size_t next = kNowhere;  // where it leads
    Moment takes = 0;
  };

  void take(size_t from, Moment began, Step& step) {
    if (!findings_.broken.empty()) return;
    ++findings_.transitions;
    Reply reply;
    try {
      if (step.request) carry_out(step, reply);
      check_exclusion(step.next);
    } catch (const Broken& broken) {
      return report(broken.what(), from, delivered(step.next, step.what, reply));
    }
    settle(from, began, step, reply);
  }

  void carry_out(Step& step, Reply& reply) {
    const World before = step.next;
    World& next = step.next;
    const Request& request = *step.request;
    Done done = server_.run(before, request);
    reply = std::move(done.reply);
    reply.at = next.now;
    next.memory = std::make_shared<const Memory>(std::move(done.memory));
    ++next.scripts_now;
    check_script(before, next, request, reply);
    if (step.answer == Delivery::delivered) handle_reply(next, request, reply, false);
    if (step.answer == Delivery::kept) {
      next.messages[step.message].answered = true;
      next.messages[step.message].reply = reply;
    }
  }

  void settle(size_t parent, Moment began, Step& step, const Reply& reply) {
    size_t to = 0;
    Moment now = step.next.now;
    if (reach(step.next, parent, to)) {
      nodes_[to].what = delivered(step.next, step.what, reply);
      frontier_.emplace_back(to, std::move(step.next));
    }
    Node& from = nodes_[parent];
    if (step.rank < from.rank) {
      from.rank = step.rank;
      from.next = to;
      from.takes = now - began;
    }
  }

  // Whether the world is new; `id` is its number in any case. Known by 64 bits alone: two
  // worlds taken for one are a matter of one run in millions at these sizes.
  bool reach(const World& world, size_t parent, size_t& id) {
    auto [place, is_new] =
        known_.try_emplace(std::hash<std::string>()(canonical(world)), nodes_.size());
    id = place->second;
    if (!is_new) return false;
    size_t depth = parent == kNowhere ? 0 : nodes_[parent].depth + 1;
    findings_.depth = std::max(findings_.depth, depth);
    nodes_.push_back({parent, "", depth, waits(world)});
    return true;
  }

  // Under a fair schedule without further faults, every live waiter is served: each lease of
  // the dead, each unclaimed grant and each look of a waiter that no wake reached may pass once.
  // Beyond the cut of a search nothing is known.
  void check_waits() {
    auto clients = static_cast<Moment>(bounds_.clients());
    const Moment slice = bounds_.rest ? kLongestSlice : kSlice;
    const Moment bound = 2 * kTtl + clients * (kClaim + slice);
    const size_t explored = frontier_.empty() ? nodes_.size() : frontier_.front().first;
    for (size_t start = 0; start < explored; ++start) {
      Moment took = 0;
      size_t at = start, steps = 0;
      while (nodes_[at].waits && nodes_[at].next != kNowhere && took <= bound && ++steps < 1000) {
        took += nodes_[at].takes;
        at = nodes_[at].next;
      }
      if (nodes_[at].waits && at < explored) return stuck(start, at);
      findings_.longest_wait = std::max<long long>(findings_.longest_wait, took);
    }
  }

  void stuck(size_t start, size_t end) {
    report("no stuck queue: a live waiter is not served", start, "from here, without a fault:");
    size_t at = start;
    for (int shown = 0; shown < 30 && at != kNowhere; ++shown) {
      at = nodes_[at].next;
      if (at != kNowhere) findings_.trace.push_back("  " + nodes_[at].what);
      if (at == end) return;
    }
  }

  void report(const std::string& broken, size_t from, const std::string& last) {
    findings_.broken = broken;
    findings_.trace = {last};
    for (size_t at = from; at != kNowhere; at = nodes_[at].parent) {
      findings_.trace.push_back(nodes_[at].what);
    }
    std::reverse(findings_.trace.begin(), findings_.trace.end());
  }

  Server& server_;
  const Bounds& bounds_;
  Findings findings_;
  std::vector<Node> nodes_;
  std::unordered_map<size_t, size_t> known_;
  std::deque<std::pair<size_t, World>> frontier_;
};

}  // namespace

std::string Findings::text() const {
  std::string text = util::format("{} states, {} transitions, depth {}, longest wait {} ms", states,
                                  transitions, depth, longest_wait);
  if (whole_depth > 0) text += util::format(", cut: every order of {} steps", whole_depth);
  if (broken.empty()) return text;
  text += "\n  broken: " + broken;
  for (const std::string& line : trace) text += "\n    " + line;
  return text;
}

Findings explore(const Bounds& bounds, std::vector<test::TextChange> changes, size_t most_states) {
  if (bounds.rest) {
    changes.push_back({"1 + math.floor(place / 64)", "2 + place"});
    changes.push_back({"at_start.waiters < 64", "at_start.waiters < 0"});
  }
  Server server(changes);
  if (!server.changes_applied()) throw std::invalid_argument("no place for a change in a script");
  return Explorer(server, bounds).run(most_states);
}

}  // namespace rlock::model
