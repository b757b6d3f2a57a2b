#include "model/checks.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <set>
#include <utility>

#include "util/text.hpp"

namespace rlock::model {
namespace {

constexpr Moment kHour = 3'600'000;
constexpr Moment kMetaLife = 30LL * 24 * kHour;
constexpr Moment kHeartbeat = kHeartbeatSlices * kSlice;  // of a waiter near the head
constexpr Moment kLongestHeartbeat = kHeartbeatSlices * kLongestSlice;
// What holds and who waits is found as long after the longest lease, or the longest heartbeat, as
// what is remembered.
constexpr Moment kKeyLife = kMetaLife + std::max(kTtl, kLongestHeartbeat + kHeartbeat);

// Never returns; a format string with what goes into it.
template <class... Args>
[[noreturn]] void broken(fmt::format_string<Args...> what, Args&&... args) {
  throw Broken(util::format(what, std::forward<Args>(args)...));
}

const Mark& mark_of(const Memory& memory, const std::string& field) {
  static const Mark none;
  const auto mark = memory.once.find(field);
  return mark == memory.once.end() ? none : mark->second;
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

  void run() {
    for (const Client& who : before_.clients) {
      if (who.work != nullptr && !who.work->once.empty()) after_.known[who.work->once];
    }
    for (auto rule : {&Check::grants,   &Check::restored,        &Check::others_untouched,
                      &Check::forced,   &Check::ended_owners,    &Check::slots,
                      &Check::leases,   &Check::waits,           &Check::ends,
                      &Check::lines,    &Check::forgotten,       &Check::failures,
                      &Check::marks,    &Check::needless_grants, &Check::start,
                      &Check::refusal,  &Check::confirmation,    &Check::dropped,
                      &Check::queue,    &Check::closed,          &Check::comes_back,
                      &Check::note_late}) {
      (this->*rule)();
    }
  }

 private:
  bool is_restored(const std::string& owner) const {
    return request_.op == Op::renew && owner == request_.owner;
  }

  void grants() {
    int64_t newest = after_.newest;
    for (const Row& holder : is_.holders) {
      int64_t token = line_of(is_, holder.member).token;
      const Row* had = find(was_.holders, holder.member);
      bool same = had != nullptr && line_of(was_, holder.member).token == token;
      if (same || is_restored(holder.member)) continue;
      grant(holder, token);
      newest = std::max(newest, token);
    }
    if (newest > after_.newest) after_.newest = after_.newest_since_loss = newest;
  }

  void grant(const Row& holder, int64_t token) {
    const std::string& owner = holder.member;
    if (token <= before_.newest) broken("F: {}'s token is not greater than an earlier one", owner);
    bool claimed = owner == request_.owner;
    if (!claimed && holder.score > now_ + kClaim) {
      broken("L: {} has more than the claim lease without a claim", owner);
    }
    if (!claimed && !contains(is_.woken, owner)) broken("Q: {} is granted and not woken", owner);
    const Row* beat = find(was_.alive, owner);
    if (!claimed && beat != nullptr &&
        now_ - (beat->score - kHeartbeat * (beat->quarters + 1)) >= kHeartbeat) {
      broken("H: {} is granted the lock though it has been silent", owner);
    }
    in_order(owner);
  }

  // An owner that came without a ticket comes after all waiters.
  void in_order(const std::string& owner) const {
    const Row* place = find(was_.queue, owner);
    int64_t ticket = place != nullptr ? place->score : request_.ticket;
    if (ticket == 0) ticket = INT64_MAX;
    if (place == nullptr) ticket = std::min(ticket, ticket_replaced());
    for (const Row& waiter : is_.queue) {
      const Row* alive = find(is_.alive, waiter.member);
      bool waited =
          find(was_.queue, waiter.member) != nullptr && alive != nullptr && alive->score > now_;
      if (!waited || waiter.score >= ticket) continue;
      broken("Q: {} overtakes {}", owner, waiter.member);
    }
  }

  // Of the waiter whose place one that supersedes it took.
  int64_t ticket_replaced() const {
    if (!supersedes()) return INT64_MAX;
    for (const Row& waiter : was_.queue) {
      if (kind_of(is_, waiter.member, now_) == kSuperseded) return waiter.score;
    }
    return INT64_MAX;
  }

  void restored() {
    const bool later = before_.newest_since_loss > request_.token;
    if (reply_.word == "restored" && later && request_.limit == 1)
      broken("F: {} is put back though taken since", request_.owner);
  }

  void others_untouched() {
    if (request_.op == Op::force) return;
    for (const Row& holder : was_.holders) {
      if (holder.score <= now_ || holder.member == request_.owner) continue;
      const Row* still = find(is_.holders, holder.member);
      if (still == nullptr) broken("O: the end of {}'s lease is another's doing", holder.member);
      if (still->score != holder.score)
        broken("O: {}'s lease is changed by another", holder.member);
    }
  }

  void forced() {
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
        if (!contains(is_.woken, owner)) broken("O: {} is forced and not woken", owner);
      }
      auto barred = before_.forced.find(owner);
      if (!revoked && barred != before_.forced.end() && now_ < barred->second) {
        broken("O: {} holds the lock that it was forced out of", owner);
      }
    }
  }

  void ended_owners() {
    for (const auto& [owner, when] : before_.ended) {
      if (now_ >= when + kTombstone) continue;
      if (find(is_.holders, owner) != nullptr) broken("L: {} has ended, and holds the lock", owner);
      if (find(is_.queue, owner) != nullptr) broken("L: {} has ended, and waits", owner);
    }
  }

  // Of several holders each is another.
  void slots() {
    std::set<int64_t> taken;
    for (const Row& holder : is_.holders) {
      const int64_t slot = line_of(is_, holder.member).slot;
      if (holder.score <= now_ || slot == 0) continue;
      if (!taken.insert(slot).second) broken("S: two holders of one slot");
      if (slot > line_of(is_, holder.member).limit) broken("S: a slot beyond the holder's limit");
    }
  }

  void leases() {
    for (const Row& holder : is_.holders) {
      if (holder.score > now_ + kTtl) broken("L: {} has more than its lease", holder.member);
    }
  }

  // A waiter that asks is alive for three slices, and has its place unless it missed two claims. A
  // late copy of its first request, which has no ticket, may put one that was dropped at the end.
  void waits() {
    if (request_.op != Op::acquire || reply_.word != "queued") return;
    const std::string& owner = request_.owner;
    const Row* beat = find(is_.alive, owner);
    if (beat == nullptr || beat->score < now_ + kHeartbeatSlices * reply_.slice) {
      broken("H: {} may die before it is to ask again", owner);
    }
    const bool requeued = kind_of(was_, owner, now_) == kRequeued;
    if (asking(owner).punctual && request_.ticket > 0 && reply_.number > request_.ticket &&
        !requeued) {
      broken("Q: {} loses its place", owner);
    }
  }

  void ends() {
    for (const Row& end : is_.ends) {
      if (end.score == kNever) broken("L: the key {} has no end", end.member);
      const Moment life = end.member == "once" ? kMetaLife : kKeyLife + kHour;
      if (end.score > now_ + life) broken("L: the key {} ends too late", end.member);
    }
  }

  // Only those who hold or wait have one.
  void lines() {
    for (const auto& [field, line] : is_.who) {
      if (field.front() != '+') continue;
      const std::string owner = field.substr(1);
      if (find(is_.holders, owner) != nullptr || find(is_.queue, owner) != nullptr) continue;
      broken("L: the line of {} is left behind", owner);
    }
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
  void forgotten() {
    if (request_.op != Op::forget || (was_.meta.empty() && was_.once.empty())) return;
    for (auto& [field, known] : after_.known) {
      if (!request_.owner.empty() && request_.owner != field) continue;
      known.forgotten = std::max(known.forgotten, newest_ended());
      if (known.done <= known.forgotten) known.done = 0;
      known.failures = 0;
      if (known.done == 0 && mark_of(is_, field).ended)
        broken("D: {} is still marked after forget", field);
    }
    if (request_.owner.empty()) after_.newest_number = 0;
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
  void failures() {
    for (const Row& holder : was_.holders) {
      const Work* work = work_of(holder.member);
      if (work == nullptr || work->max_failures == 0 || !failed(holder)) continue;
      Known& known = after_.known[work->once];
      if (known.failed.insert(line_of(was_, holder.member).token).second) ++known.failures;
    }
  }

  void marks() {
    for (const auto& [field, had] : was_.once) {
      const Mark& mark = mark_of(is_, field);
      const bool forgets =
          request_.op == Op::forget && (request_.owner.empty() || request_.owner == field);
      if (had.ended && !mark.ended && !forgets) broken("D: the mark of {} is lost", field);
      if (had.ended && mark.ended && mark.token < had.token)
        broken("D: an older success replaces a newer one");
    }
    for (const auto& [field, mark] : is_.once) {
      const Mark& had = mark_of(was_, field);
      if (!mark.ended || (had.ended && had.token == mark.token)) continue;
      new_mark(field, mark);
    }
    for (const auto& [field, known] : after_.known) {
      if (mark_of(is_, field).failures != known.failures)
        broken("D: failures are not counted as they are known");
    }
  }

  void new_mark(const std::string& field, const Mark& mark) {
    const bool succeeded = request_.op == Op::release && request_.outcome == Outcome::succeeded &&
                           request_.work->once == field && request_.token == mark.token;
    if (!succeeded) broken("D: {} is marked without a success", field);
    Known& known = after_.known[field];
    if (mark.token <= known.forgotten) broken("D: what was forgotten is marked");
    auto barred = before_.forced.find(request_.owner);
    if (barred != before_.forced.end() && now_ < barred->second)
      broken("D: one that was forced out is marked");
    if (!holds(was_, request_.owner, now_) && before_.newest_since_loss > mark.token)
      broken("D: marked though another had the lock since");
    known.done = mark.token;
    known.asked = mark.asked;
    known.granted = mark.granted;
    known.failures = 0;
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

  void needless_grants() {
    for (const Row& holder : is_.holders) {
      if (!new_holder(holder)) continue;
      const std::string why = decided(after_, asking(holder.member));
      if (!why.empty()) broken("D: {} is granted the lock though its work {}", holder.member, why);
    }
  }

  // A command starts, unless the reply is a repeated one.
  void start() {
    if (reply_.word == "restored") note_newest(request_.token);
    if (request_.op != Op::acquire || reply_.word != "granted") return;
    const bool again =
        holds(was_, request_.owner, now_) && line_of(was_, request_.owner).state == "held";
    if (again) return;
    const std::string why = decided(before_, asking(request_.owner));
    if (!why.empty()) broken("D: {} starts though its work {}", request_.owner, why);
    const int64_t number = request_.work == nullptr ? 0 : request_.work->number();
    if (number > 0 && number < before_.newest_number)
      broken("P: an older one starts after a newer one");
    note_newest(request_.ticket > 0 ? request_.ticket : reply_.number);
  }

  void note_newest(int64_t ticket) {
    if (!supersedes()) return;
    after_.newest_number = std::max(after_.newest_number, request_.work->number());
    if (request_.work->number() > 0 || ticket < before_.newest_ticket) return;
    after_.newest_ticket = ticket;
    after_.newest_owner = request_.owner;
  }

  // Since it waited a newer one without a number was granted the lock.
  bool is_overtaken() const {
    return request_.ticket > 0 && request_.ticket <= before_.newest_ticket &&
           request_.owner != before_.newest_owner && request_.owner != before_.late_owner;
  }

  // A late first request has no ticket, so the server takes its owner for a newcomer.
  void note_late() {
    if (request_.op != Op::acquire || !supersedes() || reply_.word != "queued") return;
    if (find(was_.queue, request_.owner) != nullptr) return;
    const bool late = request_.ticket == 0 && client_of(request_.owner).ticket > 0;
    if (late && request_.work->number() == 0) {
      after_.late_owner = request_.owner;
    } else if (request_.owner != before_.late_owner) {
      after_.late_owner.clear();  // another one came after it
    }
  }

  // An older one that was replaced, or dropped, neither waits again nor starts.
  void comes_back() {
    if (request_.op != Op::acquire || !supersedes() || !is_overtaken()) return;
    if (reply_.word != "queued" && reply_.word != "granted") return;
    if (find(was_.queue, request_.owner) != nullptr || holds(was_, request_.owner, now_)) return;
    broken("P: an older one comes back after a newer one was granted the lock");
  }

  void refusal() {
    if (request_.op != Op::acquire) return;
    if (reply_.word == "superseded") return superseded();
    if (reply_.word != "done" && reply_.word != "failed") return;
    const Known& known = after_.known.at(request_.work->once);
    const Client client = asking(request_.owner);
    if (reply_.word == "done" &&
        (known.done == 0 || (client.punctual && decided(after_, client).empty())))
      broken("D: done without a success");
    // One that left the queue before an operator forgot it learns why.
    const bool left = kind_of(was_, request_.owner, now_) == kDone;
    if (reply_.word == "failed" && known.failures < request_.work->max_failures && !left)
      broken("D: given up too early");
  }

  void superseded() const {
    const bool older = request_.work->number() < before_.newest_number;
    const bool replaced = kind_of(was_, request_.owner, now_) == kSuperseded;
    auto is_other = [&](const Row& row) {
      return row.member != request_.owner && line_of(was_, row.member).supersedes;
    };
    // A grant that is not claimed yet counts like a waiter.
    auto is_unclaimed = [&](const Row& row) {
      return is_other(row) && line_of(was_, row.member).state == "granted" && row.score > now_;
    };
    const bool other = std::any_of(was_.queue.begin(), was_.queue.end(), is_other) ||
                       std::any_of(was_.holders.begin(), was_.holders.end(), is_unclaimed);
    if (!older && !replaced && !other && !is_overtaken()) broken("P: superseded by nobody");
  }

  void confirmation() {
    if (request_.op != Op::release || !does_once()) return;
    const Known& known = after_.known.at(request_.work->once);
    const Mark& mark = mark_of(is_, request_.work->once);
    if (reply_.mark == "marked" && (!mark.ended || mark.token < request_.token))
      broken("D: a success is confirmed and not marked");
    const bool held = holds(was_, request_.owner, now_) &&
                      line_of(was_, request_.owner).state != "revoked" &&
                      request_.token > known.forgotten;
    if (request_.outcome == Outcome::succeeded && held && reply_.mark != "marked")
      broken("D: a success is not marked");
  }

  // Live waiters that left the queue by another's request: granted the lock, done, or superseded.
  // No other one has a different place.
  void dropped() {
    int64_t taken = 0;
    for (const Row& waiter : was_.queue) {
      const std::string& owner = waiter.member;
      const Row* beat = find(was_.alive, owner);
      if (owner == request_.owner || beat == nullptr || beat->score <= now_) continue;
      const Row* place = find(is_.queue, owner);
      if (place != nullptr && place->score != waiter.score)
        broken("Q: the place of {} is changed", owner);
      // One at rest may be passed by.
      if (place != nullptr || find(is_.holders, owner) != nullptr || beat->quarters > 0) continue;
      if (!contains(is_.woken, owner)) broken("Q: {} is dropped and not woken", owner);
      if (kind_of(is_, owner, now_) == kDone) continue;
      replaced(waiter);
      taken = waiter.score;
    }
    joined(taken);
  }

  void replaced(const Row& waiter) {
    const Work* work = work_of(waiter.member);
    const bool may =
        request_.op == Op::acquire && supersedes() && work != nullptr && !work->supersede.empty();
    if (!may) broken("Q: {} is dropped", waiter.member);
    const bool numbers = request_.work->number() > 0 && work->number() > 0;
    const bool older = numbers ? request_.work->number() < work->number()
                               : request_.ticket > 0 && request_.ticket <= waiter.score;
    if (older) broken("P: {} is superseded by an older one", waiter.member);
    after_.ended[waiter.member] = now_;
    const Row* place = find(is_.queue, request_.owner);
    if (place != nullptr && place->score > waiter.score)
      broken("P: the place of the older one is lost");
  }

  // One that joins comes after all others, unless it had a place before, or took another's.
  void joined(int64_t taken) const {
    const Row* place = find(is_.queue, request_.owner);
    if (place == nullptr || find(was_.queue, request_.owner) != nullptr) return;
    const bool own = request_.ticket > 0 && place->score >= request_.ticket;
    if (own || (taken > 0 && place->score >= taken)) return;
    for (const Row& waiter : is_.queue) {
      if (waiter.score > place->score) broken("Q: {} overtakes {}", request_.owner, waiter.member);
    }
  }

  void queue() {
    const auto waiting = std::count_if(is_.queue.begin(), is_.queue.end(), [&](const Row& row) {
      return line_of(is_, row.member).supersedes;
    });
    if (waiting > 1) broken("P: two wait that supersede others");
  }

  // Nobody is granted it; who holds it goes on.
  void closed() {
    for (const Row& holder : is_.holders) {
      const bool was_closed = was_.closed_until > now_ && request_.op != Op::open;
      if (was_closed && new_holder(holder)) broken("C: {} is granted a closed lock", holder.member);
    }
    if (request_.op == Op::open && is_.closed_until > 0)
      broken("C: it is opened, and still closed");
    if (request_.op == Op::close && is_.closed_until != now_ + kClosed)
      broken("C: it is closed, and has another end");
    const bool lost = was_.closed_until > now_ && is_.closed_until != was_.closed_until;
    const bool other = request_.op != Op::open && request_.op != Op::close;
    if (lost && other) broken("C: another request changes the closure");
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

void check_script(const World& before, World& after, const Request& request, const Reply& reply) {
  Check(before, after, request, reply).run();
}

// After data loss a holder does not know yet that another may have been granted the lock: it learns
// of it at its next renewal, which a healthy one sends within an interval.
void check_exclusion(const World& world) {
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
      broken("S: two believe to have the same slot");
    least = std::min(least, who.limit);
  }
  if (presumed_holders > 0 && presumed_holders > least)
    broken("M: more believe to hold the lock than it admits");
  if (late && presumed_holders > 0)
    broken("M: an overlap after data loss outlasts the renewal interval");
}

}  // namespace rlock::model
