#include "model/canonical.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>

namespace rlock::model {
namespace {

// A world as text, its clients in a given order.
class Writer {
 public:
  Writer(const World& world, const std::vector<int>& order) : world_(world), order_(order) {
    number_the_owners();
    collect_issued();
    collect_asked();
  }

  std::string text() {
    put(world_.faults_left, world_.losses_left, world_.forces_left, world_.closures_left,
        left(world_.memory->closed_until));
    put(rank(world_.newest), rank(world_.newest_since_loss));
    for (int index : order_) client(world_.clients[static_cast<size_t>(index)]);
    messages();
    times("H", world_.memory->holders);
    rows("L", world_.memory->limits, [](int64_t limit) { return limit; });
    rows("Q", world_.memory->queue, [&](int64_t ticket) { return rank(ticket); });
    times("A", world_.memory->alive);
    beats();
    // One whose time is over counts no more.
    rows("R", world_.memory->released, [&](int64_t score) {
      return left(score >> 4) == 0 ? 0 : left(score >> 4) * 16 + (score & 15);
    });
    who();
    meta();
    if (has_work()) work();
    ends();
    observer();
    return std::move(text_);
  }

 private:
  template <class... Values>
  void put(const Values&... values) {
    ((text_ += std::to_string(values) += ' '), ...);
  }

  // Only owners that a message may still name have a name; the others are left out.
  void number_the_owners() {
    for (size_t place = 0; place < order_.size(); ++place) {
      const Client& who = world_.clients[static_cast<size_t>(order_[place])];
      if (who.phase == ClientPhase::done) continue;
      names_[owner_of(world_, order_[place])] = std::string(1, static_cast<char>('a' + place));
    }
    for (const Message& message : world_.messages) {
      const Request& request = message.request;
      auto place = std::find(order_.begin(), order_.end(), request.client) - order_.begin();
      int age =
          world_.clients[static_cast<size_t>(request.client)].round - (request.owner[1] - '0');
      names_[request.owner] = std::string(1, static_cast<char>('a' + place)) +
                              std::string(static_cast<size_t>(age), '-');
    }
    for (const Row& row : world_.memory->holders) {
      names_.try_emplace(row.member, "z" + row.member);
    }
  }

  std::string name(const std::string& owner) const {
    auto known = names_.find(owner);
    return known == names_.end() ? "" : known->second;
  }

  bool has_work() const {
    return std::any_of(order_.begin(), order_.end(), [&](int index) {
      return world_.clients[static_cast<size_t>(index)].work != nullptr;
    });
  }

  Moment left(Moment until) const {
    return until == kNever ? -1 : std::max<Moment>(0, until - world_.now);
  }

  int64_t meta_number(const char* field) const {
    auto value = world_.memory->meta.find(field);
    return value == world_.memory->meta.end() ? 0 : value->second;
  }

  void collect_issued() {
    issued_ = {0, world_.newest, world_.newest_since_loss, world_.newest_ticket};
    for (const char* field : {"last", "grant", "exclusive", "created", "forgotten"})
      issued_.insert(meta_number(field));
    for (const auto& [field, mark] : world_.memory->once) issued_.insert(mark.token);
    for (const auto& [field, known] : world_.known) issued_.insert({known.done, known.forgotten});
    for (const Row& row : world_.memory->queue) issued_.insert(row.score);
    for (const auto& [owner, name] : names_) issued_.insert(line_of(*world_.memory, owner).token);
    for (const Client& who : world_.clients) issued_.insert({who.ticket, who.token});
    for (const Message& m : world_.messages) {
      issued_.insert({m.request.ticket, m.request.token, m.reply.number});
    }
  }

  int64_t rank(int64_t number) const {
    return std::distance(issued_.begin(), issued_.find(number));
  }

  // Of a distance: when each one asked or was granted the lock, and what that is compared with.
  void collect_asked() {
    auto mark = world_.memory->once.find("within");
    if (mark != world_.memory->once.end())
      asked_.insert({mark->second.asked, mark->second.granted});
    auto known = world_.known.find("within");
    if (known != world_.known.end()) asked_.insert({known->second.asked, known->second.granted});
    for (int index : order_) {
      const Client& who = world_.clients[static_cast<size_t>(index)];
      if (who.work == nullptr || !who.work->is_distance()) continue;
      span_ = who.work->span;
      if (who.phase == ClientPhase::idle) continue;
      const Line line = line_of(*world_.memory, owner_of(world_, index));
      asked_.insert(
          {who.asked_at, who.asked_at - span_, line.asked, line.asked - span_, line.since});
    }
  }

  // Its order, and how long it counts for those who come now.
  void put_asked(Moment moment) {
    put(std::distance(asked_.begin(), asked_.find(moment)), left(moment + span_));
  }

  void client(const Client& who) {
    bool over = who.phase == ClientPhase::done || who.phase == ClientPhase::dead;
    put(static_cast<int>(who.phase), who.limit, over ? 0 : who.rounds_left);
    if (over) return;
    put(rank(who.ticket), rank(who.token), who.slot, left(who.due), who.stalled, who.punctual);
    if (who.phase != ClientPhase::holding) return;
    put(left(who.deadline()), who.lost_at < 0 ? -1 : left(who.lost_at + kRenewEvery + 1));
  }

  void messages() {
    std::vector<std::string> each;
    std::string before = std::move(text_);
    for (const Message& m : world_.messages) {
      text_.clear();
      text_ += name(m.request.owner) + " ";
      put(static_cast<int>(m.request.op), rank(m.request.ticket), rank(m.request.token),
          m.request.slot, m.reply.slot, m.answered, m.abandoned, m.before_loss,
          left(m.request.sent_at + kTtl - kDrift));
      text_ += m.reply.word + " " + m.reply.how + " ";
      put(rank(m.reply.number), m.reply.look_again, m.reply.slice, left(m.reply.at + kTombstone));
      put(static_cast<int>(m.request.outcome));
      each.push_back(std::move(text_));
    }
    std::sort(each.begin(), each.end());
    text_ = std::accumulate(each.begin(), each.end(), before + "M");
  }

  template <class Value>
  void rows(const char* title, const std::vector<Row>& list, Value value) {
    std::vector<std::string> each;
    for (const Row& row : list) {
      if (!name(row.member).empty()) {
        each.push_back(name(row.member) + "=" + std::to_string(value(row.score)) + " ");
      }
    }
    std::sort(each.begin(), each.end());
    text_ = std::accumulate(each.begin(), each.end(), text_ + title);
  }

  void times(const char* title, const std::vector<Row>& list) {
    rows(title, list, [&](int64_t end) { return left(end); });
  }

  // How long the heartbeats were.
  void beats() {
    std::vector<Row> lengths = world_.memory->alive;
    for (Row& row : lengths) row.score = row.quarters;
    rows("B", lengths, [](int64_t quarters) { return quarters; });
  }

  void who() {
    const auto& fields = world_.memory->who;
    std::vector<std::pair<std::string, std::string>> named;
    named.reserve(names_.size());
    for (const auto& [owner, as] : names_) named.push_back({as, owner});
    std::sort(named.begin(), named.end());
    for (const auto& [as, owner] : named) {
      Line line = line_of(*world_.memory, owner);
      text_ += as + " " + line.state + " ";
      put(line.limit, rank(line.token), line.slot, fields.count(owner), fields.count("!" + owner));
      auto entry = fields.find("@" + owner);
      put(entry == fields.end() ? -1 : left(std::stoll(entry->second)));
    }
  }

  void meta() {
    for (const char* field : {"last", "grant", "exclusive", "created"})
      put(rank(meta_number(field)));
  }

  // What is done once, and what supersedes others. Of a distance it matters when each one asked.
  void work() {
    put(world_.forgets_left, world_.failures_left, world_.newest_number, rank(world_.newest_ticket),
        rank(meta_number("forgotten")));
    text_ += name(world_.newest_owner) + " " + name(world_.late_owner) + " ";
    for (int index : order_) {
      const Client& who = world_.clients[static_cast<size_t>(index)];
      const bool over = who.phase == ClientPhase::done || who.phase == ClientPhase::dead;
      if (over || who.work == nullptr) continue;
      const Line line = line_of(*world_.memory, owner_of(world_, index));
      put(static_cast<int>(who.outcome), who.lost_reply, line.once, line.supersedes);
      if (who.work->max_failures > 0) counted(index, line);
      if (!who.work->is_distance() || who.phase == ClientPhase::idle) continue;
      for (Moment moment : {who.asked_at, line.asked, line.since}) put_asked(moment);
    }
    for (const auto& [field, mark] : world_.memory->once) this->mark(field, mark);
    for (const auto& [field, known] : world_.known) {
      text_ += "O" + field + " ";
      put(rank(known.done), rank(known.forgotten), known.failures);
      if (field != "within") continue;
      for (Moment moment : {known.asked, known.granted}) put_asked(moment);
    }
  }

  // Whether its run has been counted as failed.
  void counted(int index, const Line& line) {
    const Client& who = world_.clients[static_cast<size_t>(index)];
    const Row* until = find(world_.memory->released, owner_of(world_, index) + ":counted");
    auto known = world_.known.find(who.work->once);
    const bool is_known = known != world_.known.end() && known->second.failed.count(who.token) > 0;
    put(line.counted, is_known, until == nullptr ? 0 : left(until->score >> 4));
  }

  void mark(const std::string& field, const Mark& mark) {
    text_ += "D" + field + " ";
    if (field == "waits") {
      const bool counts = mark.token > 0 || find(world_.memory->queue, mark.record) != nullptr;
      if (counts) text_ += name(mark.record) + " ";
      if (mark.token > 0) text_ += name(mark.claimer) + " ";
      put(rank(mark.token));
    } else if (field == "newest") {
      put(mark.token);
    } else {
      put(mark.ended, rank(mark.token), mark.failures);
      if (field != "within") return;
      for (Moment moment : {mark.asked, mark.granted}) put_asked(moment);
    }
  }

  // A key that ends too soon makes another world; one that outlives all that is in it does not.
  void ends() {
    Moment needed = left(world_.memory->closed_until);
    for (const Row& row : world_.memory->holders) needed = std::max(needed, left(row.score));
    for (const Row& row : world_.memory->alive) needed = std::max(needed, left(row.score));
    for (const Row& row : world_.memory->released) {
      if (!name(row.member).empty()) needed = std::max(needed, left(row.score >> 4));
    }
    std::set<std::string> each;
    for (const Row& end : world_.memory->ends) {
      const bool outlives = end.member == "history" || end.member == "once";
      if (outlives || end.member.starts_with("wake:")) continue;
      Moment until = end.score == kNever ? -1 : std::min(left(end.score), needed);
      if (until != 0) each.insert(end.member + "=" + std::to_string(until) + " ");
    }
    text_ = std::accumulate(each.begin(), each.end(), text_ + "K");
  }

  void observer() {
    std::set<std::string> facts;
    for (const auto& [owner, when] : world_.ended) {
      if (!name(owner).empty())
        facts.insert("E" + name(owner) + std::to_string(left(when + kTombstone)));
    }
    for (const auto& [owner, until] : world_.forced) {
      if (!name(owner).empty()) facts.insert("F" + name(owner) + std::to_string(left(until)));
    }
    for (const std::string& one : facts) text_ += one + " ";
  }

  const World& world_;
  const std::vector<int>& order_;
  std::map<std::string, std::string> names_;
  std::set<int64_t> issued_;
  std::set<Moment> asked_;
  Moment span_ = 0;
  std::string text_;
};

bool only_alike_exchanged(const World& world, const std::vector<int>& order) {
  for (size_t place = 0; place < order.size(); ++place) {
    const auto& there = world.clients[static_cast<size_t>(order[place])];
    const auto& here = world.clients[place];
    if (there.limit != here.limit || there.work != here.work) return false;
  }
  return true;
}

}  // namespace

std::string canonical(const World& world) {
  std::vector<int> order(world.clients.size());
  std::iota(order.begin(), order.end(), 0);
  std::string least;
  do {
    if (!only_alike_exchanged(world, order)) continue;
    std::string text = Writer(world, order).text();
    if (least.empty() || text < least) least = std::move(text);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace rlock::model
