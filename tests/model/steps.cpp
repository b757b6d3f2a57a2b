#include "model/steps.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace rlock::model {
namespace {

const char* word(Op op) {
  constexpr std::array kWords{"acquires", "renews",  "releases", "cancels",
                              "forces",   "forgets", "closes",   "opens"};
  return kWords.at(static_cast<size_t>(op));
}

bool active(const Client& client) {
  return client.phase == ClientPhase::waiting || client.phase == ClientPhase::holding ||
         client.phase == ClientPhase::leaving;
}

// Time does not pass it by.
bool urgent(const World& world, int index) {
  const Client& client = world.clients[static_cast<size_t>(index)];
  return active(client) && !client.stalled && client.due <= world.now &&
         !awaits_reply(world, index);
}

class Steps {
 public:
  explicit Steps(const World& world) : world_(world) {}

  std::vector<Step> all() {
    for (int client = 0; client < static_cast<int>(world_.clients.size()); ++client) {
      if (!awaits_reply(world_, client)) requests(client);
      faults(client);
    }
    for (size_t message = 0; message < world_.messages.size(); ++message) arrive(message);
    operators();
    closures();
    forget();
    lose_data();
    pass_time();
    return std::move(steps_);
  }

 private:
  const Client& client(int index) const { return world_.clients[static_cast<size_t>(index)]; }

  std::string name(int index) const { return owner_of(world_, index); }

  Step& add(std::string what) {
    steps_.push_back({std::move(what), world_, std::nullopt, Delivery::dropped, 0, Rank::none});
    return steps_.back();
  }

  // It is due, or was woken, or is a stalled client, which may act at any time.
  bool may_ask(int index) const {
    if (client(index).due <= world_.now || client(index).stalled) return true;
    std::string state = line_of(*world_.memory, name(index)).state;
    return state == "granted" || state == "revoked" || was_dropped(name(index));
  }

  // From the queue, and woken: its work is done, or a newer one has its place.
  bool was_dropped(const std::string& owner) const {
    const int64_t kind = kind_of(*world_.memory, owner, world_.now);
    return kind == kDone || kind == kSuperseded;
  }

  void requests(int index) {
    switch (client(index).phase) {
      case ClientPhase::idle:
        return ask(index, Op::acquire, Rank::none);
      case ClientPhase::waiting:
        if (may_ask(index)) ask(index, Op::acquire, Rank::ask);
        return ask(index, Op::cancel, Rank::none);
      case ClientPhase::holding:
        if (may_ask(index)) ask(index, Op::renew, Rank::none);
        return end(index, Rank::release);
      case ClientPhase::leaving:
        if (client(index).token == 0) return ask(index, Op::cancel, Rank::leave);
        return end(index, Rank::leave);
      case ClientPhase::done:
      case ClientPhase::dead:
        return;
    }
  }

  // Of what is to be done once the command succeeds or fails; where the lease is over it may have
  // ended either way before.
  void end(int index, Rank rank) {
    const Client& who = client(index);
    if (who.work == nullptr || who.work->once.empty()) return ask(index, Op::release, rank);
    const bool lost = who.phase == ClientPhase::leaving;
    if (who.outcome != Outcome::failed) ask(index, Op::release, rank, Outcome::succeeded);
    if (who.outcome == Outcome::succeeded || (!lost && world_.failures_left == 0)) return;
    const size_t first = steps_.size();
    ask(index, Op::release, rank, Outcome::failed);
    for (size_t at = first; !lost && at < steps_.size(); ++at) --steps_[at].next.failures_left;
  }

  // In one go; or slowly, and then anything may come between.
  void ask(int index, Op op, Rank rank, Outcome outcome = Outcome::open) {
    const Client& who = client(index);
    const Moment asked_at = who.phase == ClientPhase::idle ? world_.now : who.asked_at;
    Request request{op,        index,      name(index), who.limit, who.ticket,
                    who.token, world_.now, who.slot,    who.work,  world_.now - asked_at,
                    outcome};
    const std::string how = outcome == Outcome::open        ? ""
                            : outcome == Outcome::succeeded ? " as done"
                                                            : " as failed";
    Step& quick = add(name(index) + " " + word(op) + how);
    prepare(quick.next.clients[static_cast<size_t>(index)], op, outcome);
    quick.request = request;
    quick.answer = Delivery::delivered;
    quick.rank = who.stalled ? Rank::none : rank;
    if (world_.faults_left == 0) return;
    Step& slow = add(name(index) + " " + word(op) + how + ", slowly");
    --slow.next.faults_left;
    prepare(slow.next.clients[static_cast<size_t>(index)], op, outcome);
    slow.next.clients[static_cast<size_t>(index)].punctual = false;
    slow.next.messages.push_back({request, false, false, false, {}});
  }

  // An owner that releases has ended its command before.
  void prepare(Client& who, Op op, Outcome outcome) const {
    who.stalled = false;
    if (who.phase == ClientPhase::idle) who.asked_at = world_.now;
    who.outcome = outcome;
    if (op == Op::acquire) who.phase = ClientPhase::waiting;
    if (op == Op::release || op == Op::cancel) who.phase = ClientPhase::leaving;
  }

  void faults(int index) {
    if (world_.faults_left == 0 || !active(client(index))) return;
    Step& death = add(name(index) + " dies");
    --death.next.faults_left;
    Client& dead = death.next.clients[static_cast<size_t>(index)];
    dead.phase = ClientPhase::dead;
    for (Message& message : death.next.messages) {
      if (message.request.client == index) message.abandoned = true;
    }
    std::erase_if(death.next.messages, [](const Message& m) { return m.abandoned && m.answered; });
    if (client(index).stalled || awaits_reply(world_, index)) return;
    Step& stop = add(name(index) + " is stopped");
    --stop.next.faults_left;
    stop.next.clients[static_cast<size_t>(index)].stalled = true;
    stop.next.clients[static_cast<size_t>(index)].punctual = false;
  }

  void arrive(size_t at) {
    const Message& message = world_.messages[at];
    std::string about =
        message.request.owner + "'s slow request (" + word(message.request.op) + ")";
    if (!message.answered) {
      Step& step = add(about + " arrives");
      step.request = message.request;
      step.rank = Rank::message;
      step.answer = message.abandoned ? Delivery::dropped : Delivery::kept;
      step.message = at;
      if (message.abandoned) erase(step.next, at);
    } else {
      Step& step = add(about + " is answered");
      erase(step.next, at);
      handle_reply(step.next, message.request, message.reply, message.before_loss);
      step.rank = Rank::message;
    }
    if (!message.abandoned) abandon(at, about);
  }

  // The client goes on over a fresh connection.
  void abandon(size_t at, const std::string& about) {
    Step& step = add(about + " is given up");
    Client& who = step.next.clients[static_cast<size_t>(world_.messages[at].request.client)];
    who.due = world_.now;
    who.lost_reply = who.work != nullptr && who.phase == ClientPhase::waiting;
    if (world_.messages[at].answered) return erase(step.next, at);
    step.next.messages[at].abandoned = true;
  }

  static void erase(World& world, size_t at) {
    world.messages.erase(world.messages.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void operators() {
    const auto& holders = world_.memory->holders;
    auto held = std::find_if(holders.begin(), holders.end(),
                             [&](const Row& row) { return row.score > world_.now; });
    if (world_.forces_left == 0 || held == holders.end()) return;
    Step& step = add("an operator forces the lock");
    --step.next.forces_left;
    step.request = Request{Op::force, -1, held->member, 1, 0, 0, world_.now, 0};
  }

  void closures() {
    if (world_.memory->closed_until > world_.now) {
      add("an operator opens the lock").request = Request{Op::open, -1, "", 1, 0, 0, world_.now, 0};
    }
    if (world_.closures_left == 0) return;
    Step& step = add("an operator closes the lock");
    const std::string id = std::to_string(world_.closures_left);
    step.request = Request{Op::close, -1, id, 1, 0, 0, world_.now, 0};
    --step.next.closures_left;
  }

  // Everything, or one KEY.
  void forget() {
    if (world_.forgets_left == 0 || world_.memory->ends.empty()) return;
    std::set<std::string> fields{""};
    for (const auto& [field, mark] : world_.memory->once) {
      if (field.starts_with("key:")) fields.insert(field);
    }
    for (const std::string& field : fields) {
      Step& step = add("an operator forgets " + (field.empty() ? "everything" : field));
      --step.next.forgets_left;
      step.request = Request{Op::forget, -1, field, 1, 0, 0, world_.now, 0};
    }
  }

  void lose_data() {
    if (world_.losses_left == 0 || world_.memory->ends.empty()) return;
    Step& step = add("the server loses its data");
    World& next = step.next;
    --next.losses_left;
    next.memory = std::make_shared<const Memory>();
    next.newest_since_loss = 0;
    next.known.clear();
    next.newest_number = next.newest_ticket = 0;
    next.newest_owner.clear();
    next.late_owner.clear();
    next.forced.clear();
    next.ended.clear();
    for (Client& who : next.clients) {
      if (who.phase == ClientPhase::holding) who.lost_at = world_.now;
    }
    for (Message& message : next.messages) message.before_loss = message.answered;
  }

  void pass_time() {
    for (int index = 0; index < static_cast<int>(world_.clients.size()); ++index) {
      if (urgent(world_, index)) return;
    }
    Moment next = next_moment();
    if (next == kNever) return;
    Step& step = add("time passes: " + std::to_string(next - world_.now) + " ms");
    step.rank = Rank::time;
    step.next.now = next;
    step.next.scripts_now = 0;
    for (Client& who : step.next.clients) {
      if (who.phase != ClientPhase::holding || next < who.deadline()) continue;
      who.phase = ClientPhase::leaving;
      who.due = next;
    }
  }

  bool somebody_left() const {
    bool client = std::any_of(world_.clients.begin(), world_.clients.end(), active);
    bool idle = std::any_of(world_.clients.begin(), world_.clients.end(),
                            [](const Client& c) { return c.phase == ClientPhase::idle; });
    return client || idle || !world_.messages.empty();
  }

  Moment next_moment() const {
    if (!somebody_left()) return kNever;
    Moment next = kNever;
    auto consider = [&](Moment moment) {
      if (moment > world_.now) next = std::min(next, moment);
    };
    for (const Row& row : world_.memory->holders) consider(row.score);
    for (const Row& row : world_.memory->alive) consider(row.score);
    consider(world_.memory->closed_until);
    for (const Client& who : world_.clients) {
      if (who.phase != ClientPhase::idle || who.work == nullptr || !who.work->is_distance())
        continue;
      auto mark = world_.memory->once.find(who.work->once);
      if (mark != world_.memory->once.end()) consider(mark->second.asked + who.work->span);
    }
    // Where a late request may still find it: the end of a tombstone.
    for (const Message& message : world_.messages) {
      const Row* grave = find(world_.memory->released, message.request.owner);
      if (grave != nullptr) consider(grave->score / 16 + 1);
    }
    for (const Client& who : world_.clients) {
      if (!active(who)) continue;
      if (who.due != kNever && !who.stalled) consider(who.due);
      if (who.phase == ClientPhase::holding) consider(who.deadline());
    }
    return next;
  }

  const World& world_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> steps(const World& world) {
  return Steps(world).all();
}

}  // namespace rlock::model
