#include "model/checks.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <set>

namespace rlock::model {
namespace {

constexpr Moment kMetaLife = 30LL * 24 * 3600 * 1000;
constexpr Moment kHeartbeat = kHeartbeatSlices * kSlice;  // of a waiter near the head
constexpr Moment kLongestHeartbeat = kHeartbeatSlices * kLongestSlice;
// What holds and who waits is found as long after the longest lease, or the longest heartbeat, as
// what is remembered.
constexpr Moment kKeyLife = kMetaLife + std::max(kTtl, kLongestHeartbeat + kHeartbeat);

int64_t kind_of(const Memory& memory, const std::string& owner) {
  const Row* ended = find(memory.released, owner);
  return ended == nullptr ? -1 : ended->score % 16;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// One script: the world before and after it, what was asked, and what it answered.
class Check {
 public:
  Check(const World& before, World& after, const Request& request, const Reply& reply)
      : before_(before),
        after_(after),
        was_(*before.memory),
        is_(*after.memory),
        request_(request),
        reply_(reply),
        now_(before.now) {}

  std::string broken() {
    for (const Client& who : before_.clients) {
      if (who.work != nullptr && !who.work->once.empty()) after_.known[who.work->once];
    }
    for (auto rule : {&Check::grants,  &Check::put_back,        &Check::others_untouched,
                      &Check::forced,  &Check::ended_owners,    &Check::slots,
                      &Check::leases,  &Check::waits,           &Check::ends,
                      &Check::lines,   &Check::forgotten,       &Check::failures,
                      &Check::marks,   &Check::needless_grants, &Check::start,
                      &Check::refusal, &Check::confirmation,    &Check::dropped,
                      &Check::queue,   &Check::closed}) {
      std::string broken = (this->*rule)();
      if (!broken.empty()) return broken;
    }
    return "";
  }

 private:
  bool is_put_back(const std::string& owner) const {
    return request_.op == Op::renew && owner == request_.owner;
  }

  std::string grants() {
    int64_t newest = after_.newest;
    for (const Row& holder : is_.holders) {
      int64_t token = line_of(is_, holder.member).token;
      const Row* had = find(was_.holders, holder.member);
      bool same = had != nullptr && line_of(was_, holder.member).token == token;
      if (same || is_put_back(holder.member)) continue;
      std::string broken = grant(holder, token);
      if (!broken.empty()) return broken;
      newest = std::max(newest, token);
    }
    if (newest > after_.newest) after_.newest = after_.newest_since_loss = newest;
    return "";
  }

  std::string grant(const Row& holder, int64_t token) {
    const std::string& owner = holder.member;
    if (token <= before_.newest)
      return "F: " + owner + "'s token is not greater than an earlier one";
    bool claimed = owner == request_.owner;
    if (!claimed && holder.score > now_ + kClaim) {
      return "L: " + owner + " has more than the claim lease without a claim";
    }
    if (!claimed && !contains(is_.woken, owner)) return "Q: " + owner + " is granted and not woken";
    const Row* beat = find(was_.alive, owner);
    if (!claimed && beat != nullptr &&
        now_ - (beat->score - kHeartbeat * (beat->quarters + 1)) >= kHeartbeat) {
      return "H: " + owner + " is granted the lock though it has been silent";
    }
    return in_order(owner);
  }

  // An owner that came without a ticket comes after all waiters.
  std::string in_order(const std::string& owner) const {
    const Row* place = find(was_.queue, owner);
    int64_t ticket = place != nullptr ? place->score : request_.ticket;
    if (ticket == 0) ticket = INT64_MAX;
    if (place == nullptr) ticket = std::min(ticket, ticket_replaced());
    for (const Row& waiter : is_.queue) {
      const Row* alive = find(is_.alive, waiter.member);
      bool waited =
          find(was_.queue, waiter.member) != nullptr && alive != nullptr && alive->score > now_;
      if (!waited || waiter.score >= ticket) continue;
      return "Q: " + owner + " overtakes " + waiter.member;
    }
    return "";
  }

  // Of the waiter whose place one that supersedes it took.
  int64_t ticket_replaced() const {
    if (!supersedes()) return INT64_MAX;
    for (const Row& waiter : was_.queue) {
      if (kind_of(is_, waiter.member) == kSuperseded) return waiter.score;
    }
    return INT64_MAX;
  }

  std::string put_back() {
    if (reply_.word != "put_back") return "";
    bool later = before_.newest_since_loss > request_.token;
    return later && request_.limit == 1 ? "F: " + request_.owner + " is put back though taken since"
                                        : "";
  }

  std::string others_untouched() {
    if (request_.op == Op::force) return "";
    for (const Row& holder : was_.holders) {
      if (holder.score <= now_ || holder.member == request_.owner) continue;
      const Row* still = find(is_.holders, holder.member);
      if (still == nullptr) return "O: the end of " + holder.member + "'s lease is another's doing";
      if (still->score != holder.score)
        return "O: " + holder.member + "'s lease is changed by another";
    }
    return "";
  }

  std::string forced() {
    for (auto& [owner, until] : after_.forced) {
      if (until != kNever || find(is_.holders, owner) != nullptr) continue;
      // Of a lease that lapsed unseen the end is remembered from then on.
      const Row* had = find(was_.holders, owner);
      until = std::min(now_, had != nullptr ? had->score : now_) + kTombstone;
    }
    for (const Row& holder : is_.holders) {
      const std::string& owner = holder.member;
      bool revoked = line_of(is_, owner).state == "revoked";
      if (revoked && request_.op == Op::force) {
        after_.forced[owner] = kNever;
        if (!contains(is_.woken, owner)) return "O: " + owner + " is forced and not woken";
      }
      auto barred = before_.forced.find(owner);
      if (!revoked && barred != before_.forced.end() && now_ < barred->second) {
        return "O: " + owner + " holds the lock that it was forced out of";
      }
    }
    return "";
  }

  std::string ended_owners() {
    for (const auto& [owner, when] : before_.ended) {
      if (now_ >= when + kTombstone) continue;
      if (find(is_.holders, owner) != nullptr)
        return "L: " + owner + " has ended, and holds the lock";
      if (find(is_.queue, owner) != nullptr) return "L: " + owner + " has ended, and waits";
    }
    return "";
  }

  // Of several holders each is another.
  std::string slots() {
    std::set<int64_t> taken;
    for (const Row& holder : is_.holders) {
      const int64_t slot = line_of(is_, holder.member).slot;
      if (holder.score <= now_ || slot == 0) continue;
      if (!taken.insert(slot).second) return "S: two holders of one slot";
      if (slot > line_of(is_, holder.member).limit) return "S: a slot beyond the holder's limit";
    }
    return "";
  }

  std::string leases() {
    for (const Row& holder : is_.holders) {
      if (holder.score > now_ + kTtl) return "L: " + holder.member + " has more than its lease";
    }
    return "";
  }

  // A waiter that asks is alive for three slices, and has its place unless it missed two claims. A
  // late copy of its first request, which has no ticket, may put one that was dropped at the end.
  std::string waits() {
    if (request_.op != Op::acquire || reply_.word != "queued") return "";
    const std::string& owner = request_.owner;
    const Row* beat = find(is_.alive, owner);
    if (beat == nullptr || beat->score < now_ + kHeartbeatSlices * reply_.slice) {
      return "H: " + owner + " may die before it is to ask again";
    }
    const bool requeued = kind_of(was_, owner) == kRequeued;
    const bool punctual = before_.clients[static_cast<size_t>(request_.client)].punctual;
    if (punctual && request_.ticket > 0 && reply_.number > request_.ticket && !requeued) {
      return "Q: " + owner + " loses its place";
    }
    return "";
  }

  std::string ends() {
    for (const Row& end : is_.ends) {
      if (end.score == kNever) return "L: the key " + end.member + " has no end";
      const bool remembers = end.member == "history" || end.member == "once";
      Moment life = remembers ? kMetaLife : kKeyLife;
      if (end.score > now_ + life) return "L: the key " + end.member + " ends too late";
    }
    return "";
  }

  // Only those who hold or wait have one.
  std::string lines() {
    for (const auto& [field, line] : is_.who) {
      if (field.front() != '+') continue;
      const std::string owner = field.substr(1);
      if (find(is_.holders, owner) != nullptr || find(is_.queue, owner) != nullptr) continue;
      return "L: the line of " + owner + " is left behind";
    }
    return "";
  }

  // ---- what is done once, and what supersedes others ----

  const Client& client_of(const std::string& owner) const {
    return before_.clients[static_cast<size_t>(owner.front() - 'A')];
  }
  const Work* work_of(const std::string& owner) const { return client_of(owner).work; }
  bool does_once() const { return request_.work != nullptr && !request_.work->once.empty(); }
  bool supersedes() const { return request_.work != nullptr && !request_.work->supersede.empty(); }

  // What is running now counts when it succeeds.
  int64_t newest_ended() const {
    const bool runs = was_.holders.size() == 1 && was_.holders.front().score > now_;
    return runs ? line_of(was_, was_.holders.front().member).token - 1 : before_.newest;
  }

  // A server that has lost its data knows nothing to forget.
  std::string forgotten() {
    if (request_.op != Op::forget || (was_.meta.empty() && was_.once.empty())) return "";
    for (auto& [field, known] : after_.known) {
      if (!request_.owner.empty() && request_.owner != field) continue;
      known.forgotten = std::max(known.forgotten, newest_ended());
      if (known.done <= known.forgotten) known.done = 0;
      known.failures = 0;
      auto mark = is_.once.find(field);
      if (known.done == 0 && mark != is_.once.end() && mark->second.ended)
        return "D: " + field + " is still marked after forget";
    }
    if (request_.owner.empty()) after_.newest_number = 0;
    return "";
  }

  // A run whose lease ended has failed, too, even if it is put back; the sweep counts it.
  bool failed(const Row& holder) const {
    if (line_of(was_, holder.member).state != "held") return false;
    const Row* still = find(is_.holders, holder.member);
    if (holder.score <= now_) return still == nullptr || still->score != holder.score;
    return request_.op == Op::release && request_.owner == holder.member &&
           request_.outcome == Outcome::failed;
  }

  // Each run once.
  std::string failures() {
    for (const Row& holder : was_.holders) {
      const Work* work = work_of(holder.member);
      if (work == nullptr || work->max_failures == 0 || !failed(holder)) continue;
      Known& known = after_.known[work->once];
      if (known.failed.insert(line_of(was_, holder.member).token).second) ++known.failures;
    }
    return "";
  }

  std::string marks() {
    for (const auto& [field, had] : was_.once) {
      auto mark = is_.once.find(field);
      const bool stays = mark != is_.once.end() && mark->second.ended;
      const bool forgets =
          request_.op == Op::forget && (request_.owner.empty() || request_.owner == field);
      if (had.ended && !stays && !forgets) return "D: the mark of " + field + " is lost";
      if (had.ended && stays && mark->second.token < had.token)
        return "D: an older success replaces a newer one";
    }
    for (const auto& [field, mark] : is_.once) {
      auto had = was_.once.find(field);
      const bool same = had != was_.once.end() && had->second.token == mark.token;
      if (!mark.ended || (same && had->second.ended)) continue;
      std::string broken = new_mark(field, mark);
      if (!broken.empty()) return broken;
    }
    return miscounted();
  }

  std::string miscounted() const {
    for (const auto& [field, known] : after_.known) {
      auto mark = is_.once.find(field);
      if ((mark == is_.once.end() ? 0 : mark->second.failures) != known.failures)
        return "D: failures are not counted as they are known";
    }
    return "";
  }

  std::string new_mark(const std::string& field, const Mark& mark) {
    const bool succeeded = request_.op == Op::release && request_.outcome == Outcome::succeeded &&
                           request_.work->once == field && request_.token == mark.token;
    if (!succeeded) return "D: " + field + " is marked without a success";
    Known& known = after_.known[field];
    if (mark.token <= known.forgotten) return "D: what was forgotten is marked";
    auto barred = before_.forced.find(request_.owner);
    if (barred != before_.forced.end() && now_ < barred->second)
      return "D: one that was forced out is marked";
    if (!holds(was_, request_.owner, now_) && before_.newest_since_loss > mark.token)
      return "D: marked though another had the lock since";
    known.done = mark.token;
    known.asked = mark.asked;
    known.granted = mark.granted;
    known.failures = 0;
    return "";
  }

  // Why `owner` need not run, or is not to. Of one that was slow the server cannot know exactly
  // when it asked.
  static std::string decided(const World& world, const Client& client) {
    const Work* work = client.work;
    if (work == nullptr || work->once.empty()) return "";
    auto found = world.known.find(work->once);
    if (found == world.known.end()) return "";
    const Known& known = found->second;
    if (work->max_failures > 0 && known.failures >= work->max_failures) return "failed too often";
    if (known.done == 0) return "";
    if (!work->is_distance()) return "is done";
    const bool covers =
        known.granted > client.asked_at || known.asked > client.asked_at - work->span;
    return client.punctual && covers ? "is done" : "";
  }

  bool new_holder(const Row& holder) const {
    return find(was_.holders, holder.member) == nullptr && request_.op != Op::renew;
  }

  // As it asked: the first request has its time, and one of an earlier round is late.
  Client asking(const std::string& owner) const {
    Client client = client_of(owner);
    if (owner == request_.owner) client.asked_at = request_.sent_at - request_.asked_ago;
    if (owner_of(before_, owner.front() - 'A') != owner) client.punctual = false;
    return client;
  }

  std::string needless_grants() {
    for (const Row& holder : is_.holders) {
      if (!new_holder(holder)) continue;
      const std::string why = decided(after_, asking(holder.member));
      if (!why.empty())
        return "D: " + holder.member + " is granted the lock though its work " + why;
    }
    return "";
  }

  // A command starts, unless the reply is a repeated one.
  std::string start() {
    if (reply_.word == "put_back") note_number();
    if (request_.op != Op::acquire || reply_.word != "granted") return "";
    const bool again =
        holds(was_, request_.owner, now_) && line_of(was_, request_.owner).state == "held";
    if (again) return "";
    const std::string why = decided(before_, asking(request_.owner));
    if (!why.empty()) return "D: " + request_.owner + " starts though its work " + why;
    const int64_t number = request_.work == nullptr ? 0 : request_.work->number();
    if (number > 0 && number < before_.newest_number)
      return "P: an older one starts after a newer one";
    note_number();
    return "";
  }

  void note_number() {
    if (request_.work != nullptr)
      after_.newest_number = std::max(after_.newest_number, request_.work->number());
  }

  std::string refusal() {
    if (request_.op != Op::acquire) return "";
    if (reply_.word == "superseded") return superseded();
    if (reply_.word != "done" && reply_.word != "failed") return "";
    const Known& known = after_.known.at(request_.work->once);
    const Client client = asking(request_.owner);
    if (reply_.word == "done" &&
        (known.done == 0 || (client.punctual && decided(after_, client).empty())))
      return "D: done without a success";
    // One that left the queue before an operator forgot it learns why.
    const bool left = kind_of(was_, request_.owner) == kDone;
    if (reply_.word == "failed" && known.failures < request_.work->max_failures && !left)
      return "D: given up too early";
    return "";
  }

  std::string superseded() const {
    const bool older = request_.work->number() < before_.newest_number;
    const bool replaced = kind_of(was_, request_.owner) == kSuperseded;
    const bool other = std::any_of(was_.queue.begin(), was_.queue.end(), [&](const Row& row) {
      return row.member != request_.owner && line_of(was_, row.member).supersedes;
    });
    return older || replaced || other ? "" : "P: superseded by nobody";
  }

  std::string confirmation() {
    if (request_.op != Op::release || !does_once()) return "";
    const Known& known = after_.known.at(request_.work->once);
    auto mark = is_.once.find(request_.work->once);
    const bool stored = mark != is_.once.end() && mark->second.ended;
    if (reply_.mark == "marked" && (!stored || mark->second.token < request_.token))
      return "D: a success is confirmed and not marked";
    const bool held = holds(was_, request_.owner, now_) &&
                      line_of(was_, request_.owner).state != "revoked" &&
                      request_.token > known.forgotten;
    if (request_.outcome == Outcome::succeeded && held && reply_.mark != "marked")
      return "D: a success is not marked";
    return "";
  }

  // Live waiters that left the queue by another's request: granted the lock, done, or superseded.
  // No other one has a different place.
  std::string dropped() {
    int64_t taken = 0;
    for (const Row& waiter : was_.queue) {
      const std::string& owner = waiter.member;
      const Row* beat = find(was_.alive, owner);
      if (owner == request_.owner || beat == nullptr || beat->score <= now_) continue;
      const Row* place = find(is_.queue, owner);
      if (place != nullptr && place->score != waiter.score)
        return "Q: the place of " + owner + " is changed";
      // One at rest may be passed by.
      if (place != nullptr || find(is_.holders, owner) != nullptr || beat->quarters > 0) continue;
      if (!contains(is_.woken, owner)) return "Q: " + owner + " is dropped and not woken";
      if (kind_of(is_, owner) == kDone) continue;
      std::string broken = replaced(waiter);
      if (!broken.empty()) return broken;
      taken = waiter.score;
    }
    return joined(taken);
  }

  std::string replaced(const Row& waiter) {
    const Work* work = work_of(waiter.member);
    const bool may =
        request_.op == Op::acquire && supersedes() && work != nullptr && !work->supersede.empty();
    if (!may) return "Q: " + waiter.member + " is dropped";
    const bool numbers = request_.work->number() > 0 && work->number() > 0;
    const bool older = numbers ? request_.work->number() < work->number()
                               : request_.ticket > 0 && request_.ticket < waiter.score;
    if (older) return "P: " + waiter.member + " is superseded by an older one";
    after_.ended[waiter.member] = now_;
    const Row* place = find(is_.queue, request_.owner);
    if (place != nullptr && place->score > waiter.score)
      return "P: the place of the older one is lost";
    return "";
  }

  // One that joins comes after all others, unless it had a place before, or took another's.
  std::string joined(int64_t taken) const {
    const Row* place = find(is_.queue, request_.owner);
    if (place == nullptr || find(was_.queue, request_.owner) != nullptr) return "";
    const bool own = request_.ticket > 0 && place->score >= request_.ticket;
    if (own || (taken > 0 && place->score >= taken)) return "";
    for (const Row& waiter : is_.queue) {
      if (waiter.score > place->score)
        return "Q: " + request_.owner + " overtakes " + waiter.member;
    }
    return "";
  }

  std::string queue() {
    const auto waiting = std::count_if(is_.queue.begin(), is_.queue.end(), [&](const Row& row) {
      return line_of(is_, row.member).supersedes;
    });
    return waiting > 1 ? "P: two wait that supersede others" : "";
  }

  // Nobody is granted it; who holds it goes on.
  std::string closed() {
    for (const Row& holder : is_.holders) {
      const bool was_closed = was_.closed_until > now_ && request_.op != Op::open;
      if (was_closed && new_holder(holder))
        return "C: " + holder.member + " is granted a closed lock";
    }
    if (request_.op == Op::open && is_.closed_until > 0) return "C: it is opened, and still closed";
    if (request_.op == Op::close && is_.closed_until != now_ + kClosed)
      return "C: it is closed, and has another end";
    const bool lost = was_.closed_until > now_ && is_.closed_until != was_.closed_until;
    const bool other = request_.op != Op::open && request_.op != Op::close;
    return lost && other ? "C: another request changes the closure" : "";
  }

  const World& before_;
  World& after_;
  const Memory& was_;
  const Memory& is_;
  const Request& request_;
  const Reply& reply_;
  Moment now_;
};

}  // namespace

std::string check_script(const World& before, World& after, const Request& request,
                         const Reply& reply) {
  return Check(before, after, request, reply).broken();
}

// After data loss a holder does not know yet that another may have been granted the lock: it learns
// of it at its next renewal, which a healthy one sends within an interval.
std::string check_exclusion(const World& world) {
  int64_t presumed_holders = 0, least = INT64_MAX, unaware = 0;
  bool late = false;
  std::set<int64_t> slots;
  for (const Client& who : world.clients) {
    if (who.phase != ClientPhase::holding || world.now >= who.deadline()) continue;
    if (who.lost_at >= 0) {
      ++unaware;
      late = late || (who.punctual && world.now > who.lost_at + kRenewEvery);
      continue;
    }
    ++presumed_holders;
    if (who.slot > 0 && !slots.insert(who.slot).second)
      return "S: two believe to have the same slot";
    least = std::min(least, who.limit);
  }
  if (presumed_holders > 0 && presumed_holders > least)
    return "M: more believe to hold the lock than it admits";
  if (late && presumed_holders > 0)
    return "M: an overlap after data loss outlasts the renewal interval";
  return "";
}

}  // namespace rlock::model
