#include "lock/quorum/merge.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace rlock::lock {
namespace {

template <class T, class Holds>
size_t count(const Replies<T>& replies, Holds holds) {
  const auto all = answers(replies);
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](const T* one) { return holds(*one); }));
}

// The first answer of which `holds` is true.
template <class T, class Holds>
const T* find(const Replies<T>& replies, Holds holds) {
  for (const T* one : answers(replies)) {
    if (holds(*one)) return one;
  }
  return nullptr;
}

// Lower ranks explain more.
size_t rank(LostHow how) {
  constexpr LostHow kRanks[] = {LostHow::forced,   LostHow::taken,   LostHow::full,
                                LostHow::released, LostHow::deleted, LostHow::expired,
                                LostHow::unissued, LostHow::gone};
  return static_cast<size_t>(std::find(std::begin(kRanks), std::end(kRanks), how) - kRanks);
}

// A server knows its own grants only, so it takes a majority to know that there was no later
// holder.
Lost merged_loss(const Replies<RenewReply>& replies, const Quorum& quorum) {
  const Lost* best = nullptr;
  size_t untouched = 0;
  for (const RenewReply* reply : answers(replies)) {
    const auto* lost = std::get_if<Lost>(reply);
    if (lost == nullptr) continue;
    if (best == nullptr || rank(lost->how) < rank(best->how)) best = lost;
    untouched += lost->later_holder == LaterHolder::nobody ? 1 : 0;
  }
  Lost lost = best == nullptr ? Lost{} : *best;
  lost.later_holder = untouched >= quorum.majority() ? LaterHolder::nobody : LaterHolder::unknown;
  return lost;
}

std::string refusal_text(const RenewReply& reply) {
  if (const auto* lost = std::get_if<Lost>(&reply)) return to_string(lost->how);
  return "refused";
}

// Some servers refused and others were silent, so neither side has a majority. May pass.
Error no_majority(const Replies<RenewReply>& replies, const Quorum& quorum) {
  auto renewed = [](const RenewReply& reply) { return std::holds_alternative<Renewal>(reply); };
  std::string text = "only " + std::to_string(count(replies, renewed)) + " of " +
                     std::to_string(quorum.size()) + " servers renewed the lease, " +
                     std::to_string(quorum.majority()) + " required";
  const char* before = ": ";
  for (size_t i = 0; i < replies.size(); ++i) {
    const std::string& server = quorum.servers[i];
    if (replies[i] && *replies[i] && renewed(**replies[i])) continue;
    text += std::exchange(before, "; ");
    if (!replies[i]) {
      text += server + ": no answer yet";
    } else if (!*replies[i]) {
      text += error_at(server, replies[i]->error());
    } else {
      text += server + ": " + refusal_text(**replies[i]);
    }
  }
  return {ErrorKind::unavailable, text, Retry::later};
}

// `: db1:6379, db2:6379: Connection refused; db3:6379: timed out`.
std::string reasons_text(const Quorum& quorum, const std::vector<std::optional<Error>>& errors) {
  struct Reason {
    std::string servers;
    std::string why;
  };
  std::vector<Reason> reasons;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    const std::string& server = quorum.servers[i];
    const std::string why = error_at(server, *errors[i]).substr(server.size());
    auto same = std::find_if(reasons.begin(), reasons.end(), [&](const Reason& reason) {
      return reason.why == why && why.starts_with(": ");
    });
    if (same == reasons.end()) {
      reasons.push_back({server, why});
    } else {
      same->servers += ", " + server;
    }
  }
  std::string text;
  for (const Reason& reason : reasons) {
    text += (text.empty() ? ": " : "; ") + reason.servers + reason.why;
  }
  return text;
}

}  // namespace

std::string error_at(const std::string& server, const Error& error) {
  size_t named = error.text.find(server);
  return named == std::string::npos ? server + ": " + error.text : error.text.substr(named);
}

Error too_few_servers(const Quorum& quorum, const std::vector<std::optional<Error>>& errors) {
  const auto failed = static_cast<size_t>(
      std::count_if(errors.begin(), errors.end(), [](const auto& e) { return e.has_value(); }));
  const size_t available = quorum.size() - failed;
  Error error{ErrorKind::unavailable,
              "only " + std::to_string(available) + " of " + std::to_string(quorum.size()) +
                  " servers available, " + std::to_string(quorum.majority()) + " required",
              Retry::later, available > 0 ? Answered::yes : Answered::no};
  error.text += reasons_text(quorum, errors);
  size_t may_pass = 0;
  const Error* permanent = nullptr;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    error.answered = std::max(error.answered, errors[i]->answered);
    if (errors[i]->retry == Retry::later) {
      ++may_pass;
    } else if (permanent == nullptr) {
      permanent = &*errors[i];
    }
  }
  if (permanent != nullptr && available + may_pass < quorum.majority()) {
    error.kind = permanent->kind;
    error.retry = Retry::never;
  }
  return error;
}

std::optional<Result<RenewReply>> merge_replies(const Replies<RenewReply>& replies,
                                                const Quorum& quorum, Collecting collecting) {
  auto count_of = [&](Renewal wanted) {
    return count(replies, [wanted](const RenewReply& reply) {
      const auto* renewal = std::get_if<Renewal>(&reply);
      return renewal != nullptr && *renewal == wanted;
    });
  };
  const size_t extended = count_of(Renewal::extended), put_back = count_of(Renewal::put_back);
  if (extended + put_back >= quorum.majority()) {
    return RenewReply(extended > 0 ? Renewal::extended : Renewal::put_back);
  }
  auto refuses = [](const RenewReply& reply) { return !std::holds_alternative<Renewal>(reply); };
  const size_t refused = count(replies, refuses);
  if (quorum.size() - refused < quorum.majority()) {
    auto upgrade = [](const RenewReply& r) { return std::holds_alternative<Upgrade>(r); };
    if (find(replies, upgrade) != nullptr) return RenewReply(Upgrade{});
    return RenewReply(merged_loss(replies, quorum));
  }
  if (collecting == Collecting::open) return std::nullopt;
  if (count_answers(replies) >= quorum.majority()) return no_majority(replies, quorum);
  return too_few_servers(quorum, errors_of(replies));
}

// A success counts as done where a majority has marked it; any of these has every later acquire.
Marked merged_mark(const Replies<ReleaseReply>& replies, const Quorum& quorum) {
  auto marks = [](const ReleaseReply& reply) { return reply.marked != Marked::no; };
  auto no_room = [](const ReleaseReply& reply) { return reply.marked == Marked::no_room; };
  if (count(replies, marks) < quorum.majority()) return Marked::no;
  return find(replies, no_room) == nullptr ? Marked::yes : Marked::no_room;
}

// Whether a server that has not replied yet could make the mark count.
bool mark_is_open(const Replies<ReleaseReply>& replies, const Quorum& quorum) {
  auto marks = [](const ReleaseReply& reply) { return reply.marked != Marked::no; };
  const size_t marked = count(replies, marks);
  const auto silent = static_cast<size_t>(
      std::count_if(replies.begin(), replies.end(), [](const auto& reply) { return !reply; }));
  return marked > 0 && marked < quorum.majority() && marked + silent >= quorum.majority();
}

std::optional<Result<ReleaseReply>> merge_replies(const Replies<ReleaseReply>& replies,
                                                  const Quorum& quorum, Collecting collecting) {
  auto ended = [&](OwnerEnd ending) {
    return [ending](const ReleaseReply& reply) { return reply.ending == ending; };
  };
  const bool open = collecting == Collecting::open;
  if (count(replies, ended(OwnerEnd::released)) >= quorum.majority() &&
      !(open && mark_is_open(replies, quorum))) {
    return ReleaseReply{OwnerEnd::released, {}, std::nullopt, merged_mark(replies, quorum)};
  }
  if (open) return std::nullopt;
  if (count_answers(replies) < quorum.majority())
    return too_few_servers(quorum, errors_of(replies));
  auto live_run = [](const ReleaseReply& reply) { return reply.run.has_value(); };
  if (const ReleaseReply* reply = find(replies, live_run)) return *reply;
  // It need not have been held everywhere: where it was released it had been held until then.
  for (OwnerEnd ending : {OwnerEnd::forced, OwnerEnd::released, OwnerEnd::removed,
                          OwnerEnd::cancelled, OwnerEnd::expired, OwnerEnd::unknown}) {
    if (const ReleaseReply* reply = find(replies, ended(ending))) {
      ReleaseReply merged = *reply;
      merged.marked = merged_mark(replies, quorum);
      return merged;
    }
  }
  return ReleaseReply{OwnerEnd::expired, {}};
}

Result<Forgotten> merge_answers(const Replies<Forgotten>& replies, const Quorum&) {
  Forgotten most;
  for (const Forgotten* one : answers(replies)) {
    most.marks = std::max(most.marks, one->marks);
    most.failures = std::max(most.failures, one->failures);
  }
  return most;
}

Result<CancelReply> merge_answers(const Replies<CancelReply>& replies, const Quorum& quorum) {
  auto count_of = [&](CancelReply wanted) {
    return count(replies, [wanted](CancelReply reply) { return reply == wanted; });
  };
  if (count_of(CancelReply::still_holds) >= quorum.majority()) return CancelReply::still_holds;
  for (CancelReply reply : {CancelReply::was_granted, CancelReply::was_queued}) {
    if (count_of(reply) > 0) return reply;
  }
  return CancelReply::not_found;
}

namespace {

// Each server may have broken other holders of those that were named.
template <class T, class Same>
void add_missing(std::vector<T>& all, const std::vector<T>& more, Same same) {
  for (const T& one : more) {
    if (std::none_of(all.begin(), all.end(), [&](const T& other) { return same(one, other); })) {
      all.push_back(one);
    }
  }
}

// A cool-down has the owner that left it.
bool same_holder(const Holder& a, const Holder& b) {
  return a.owner == b.owner &&
         (a.state == HolderState::cooldown) == (b.state == HolderState::cooldown);
}

}  // namespace

Result<ForceReply> merge_answers(const Replies<ForceReply>& replies, const Quorum& quorum) {
  auto more = [](const ForceReply& reply) { return std::holds_alternative<RetryNow>(reply); };
  if (find(replies, more) != nullptr) return ForceReply(RetryNow{});
  std::optional<Forced> all;
  for (const ForceReply* reply : answers(replies)) {
    const auto* forced = std::get_if<Forced>(reply);
    if (forced == nullptr) continue;
    if (!all) all = Forced{};
    add_missing(all->broken, forced->broken, same_holder);
    add_missing(all->unconfirmed, forced->unconfirmed, std::equal_to<>());
    add_missing(all->broken_before, forced->broken_before, std::equal_to<>());
    if (!all->next) all->next = forced->next;
  }
  if (all) return ForceReply(*std::move(all));
  auto free = [](const ForceReply& reply) { return std::holds_alternative<NotHeld>(reply); };
  auto other = [&](const ForceReply& reply) { return !free(reply); };
  if (count(replies, free) >= quorum.majority()) return ForceReply(NotHeld{});
  return *find(replies, other);
}

}  // namespace rlock::lock
