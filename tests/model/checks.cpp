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

class Check : public ScriptCheck {
 public:
  using ScriptCheck::ScriptCheck;

  std::string broken() {
    for (auto rule : {&Check::grants, &Check::put_back, &Check::others_untouched, &Check::forced,
                      &Check::ended_owners, &Check::slots, &Check::leases, &Check::waits,
                      &Check::ends, &Check::lines}) {
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
    if (request_.work == nullptr || request_.work->supersede.empty()) return INT64_MAX;
    for (const Row& waiter : was_.queue) {
      const Row* ended = find(is_.released, waiter.member);
      if (ended != nullptr && ended->score % 16 == kSuperseded) return waiter.score;
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
    const Row* ended = find(was_.released, owner);
    bool requeued = ended != nullptr && ended->score % 16 == kRequeued;
    const bool punctual = before_.clients[static_cast<size_t>(request_.client)].punctual;
    if (punctual && request_.ticket > 0 && reply_.number > request_.ticket && !requeued) {
      return "Q: " + owner + " loses its place";
    }
    return "";
  }

  std::string ends() {
    for (const Row& end : is_.ends) {
      if (end.score == kNever) return "L: the key " + end.member + " has no end";
      bool wake = end.member.starts_with("wake:");  // these end by the real clock
      const bool remembers = end.member == "history" || end.member == "once";
      Moment life = remembers ? kMetaLife : kKeyLife;
      if (!wake && end.score > now_ + life) return "L: the key " + end.member + " ends too late";
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
};

}  // namespace

std::string check_script(const World& before, World& after, const Request& request,
                         const Reply& reply) {
  std::string broken = Check(before, after, request, reply).broken();
  return broken.empty() ? check_work(before, after, request, reply) : broken;
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
