#include "lock/quorum_judge.hpp"

#include <algorithm>
#include <utility>

namespace rlock::lock {
namespace {

using util::Answered;
using util::Error;
using util::ErrorKind;
using util::Result;
using util::Retry;

template <class T, class Holds>
size_t count(const Ballots<T>& ballots, Holds holds) {
  return static_cast<size_t>(std::count_if(ballots.begin(), ballots.end(), [&](const auto& ballot) {
    return ballot && *ballot && holds(**ballot);
  }));
}

// The first answer of which `holds` is true.
template <class T, class Holds>
const T* find(const Ballots<T>& ballots, Holds holds) {
  for (const auto& ballot : ballots) {
    if (ballot && *ballot && holds(**ballot)) return &**ballot;
  }
  return nullptr;
}

// The lower, the more it tells.
int rank(LostHow how) {
  switch (how) {
    case LostHow::forced:
      return 0;
    case LostHow::taken:
      return 1;
    case LostHow::full:
      return 2;
    case LostHow::released:
      return 3;
    case LostHow::deleted:
      return 4;
    case LostHow::expired:
      return 5;
    case LostHow::unissued:
      return 6;
    case LostHow::gone:
      break;
  }
  return 7;
}

// Nobody had it since only where a majority says so: each is about itself alone.
Lost telling(const Ballots<RenewReply>& ballots, const Electorate& electorate) {
  const Lost* best = nullptr;
  size_t untouched = 0;
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    const auto* lost = std::get_if<Lost>(&**ballot);
    if (lost == nullptr) continue;
    if (best == nullptr || rank(lost->how) < rank(best->how)) best = lost;
    untouched += lost->since == Since::nobody ? 1 : 0;
  }
  Lost lost = best == nullptr ? Lost{} : *best;
  lost.since = untouched >= electorate.majority() ? Since::nobody : Since::unknown;
  return lost;
}

std::string why_not(const RenewReply& reply) {
  if (const auto* lost = std::get_if<Lost>(&reply)) return word(lost->how);
  return "refused";
}

// That some servers refused and others were silent, so that neither side has a majority. May pass.
Error undecided(const Ballots<RenewReply>& ballots, const Electorate& electorate) {
  auto renewed = [](const RenewReply& reply) { return std::holds_alternative<Renewal>(reply); };
  std::string text = "held at " + std::to_string(count(ballots, renewed)) + " of " +
                     std::to_string(electorate.size()) + " servers now, " +
                     std::to_string(electorate.majority()) + " are needed";
  const char* before = ": ";
  for (size_t i = 0; i < ballots.size(); ++i) {
    const std::string& server = electorate.servers[i];
    if (ballots[i] && *ballots[i] && renewed(**ballots[i])) continue;
    text += std::exchange(before, "; ");
    if (!ballots[i]) {
      text += server + ": no answer yet";
    } else if (!*ballots[i]) {
      text += trouble_at(server, ballots[i]->error());
    } else {
      text += server + ": " + why_not(**ballots[i]);
    }
  }
  return {ErrorKind::unavailable, text, Retry::later};
}

}  // namespace

std::string trouble_at(const std::string& server, const Error& error) {
  size_t named = error.text.find(server);
  return named == std::string::npos ? server + ": " + error.text : error.text.substr(named);
}

Error too_few(const Electorate& electorate, const std::vector<std::optional<Error>>& errors) {
  const auto failed = static_cast<size_t>(
      std::count_if(errors.begin(), errors.end(), [](const auto& e) { return e.has_value(); }));
  const size_t of_use = electorate.size() - failed;
  Error error{ErrorKind::unavailable,
              "only " + std::to_string(of_use) + " of " + std::to_string(electorate.size()) +
                  " servers are of use now, " + std::to_string(electorate.majority()) +
                  " are needed",
              Retry::later, of_use > 0 ? Answered::yes : Answered::no};
  size_t may_pass = 0;
  const Error* final = nullptr;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    error.text += (error.text.ends_with("needed") ? ": " : "; ") +
                  trouble_at(electorate.servers[i], *errors[i]);
    error.answered = std::max(error.answered, errors[i]->answered);
    if (errors[i]->retry == Retry::later) {
      ++may_pass;
    } else if (final == nullptr) {
      final = &*errors[i];
    }
  }
  if (final != nullptr && of_use + may_pass < electorate.majority()) {
    error.kind = final->kind;
    error.retry = Retry::never;
  }
  return error;
}

std::optional<Result<RenewReply>> judge(const Ballots<RenewReply>& ballots,
                                        const Electorate& electorate, Polls polls) {
  auto is = [&](Renewal wanted) {
    return count(ballots, [wanted](const RenewReply& reply) {
      const auto* renewal = std::get_if<Renewal>(&reply);
      return renewal != nullptr && *renewal == wanted;
    });
  };
  const size_t extended = is(Renewal::extended), put_back = is(Renewal::put_back);
  if (extended + put_back >= electorate.majority()) {
    return RenewReply(extended > 0 ? Renewal::extended : Renewal::put_back);
  }
  auto refuses = [](const RenewReply& reply) { return !std::holds_alternative<Renewal>(reply); };
  const size_t refused = count(ballots, refuses);
  if (electorate.size() - refused < electorate.majority()) {
    auto upgrade = [](const RenewReply& r) { return std::holds_alternative<Upgrade>(r); };
    if (find(ballots, upgrade) != nullptr) return RenewReply(Upgrade{});
    return RenewReply(telling(ballots, electorate));
  }
  if (polls == Polls::open) return std::nullopt;
  if (answers(ballots) >= electorate.majority()) return undecided(ballots, electorate);
  return too_few(electorate, errors_of(ballots));
}

std::optional<Result<ReleaseReply>> judge(const Ballots<ReleaseReply>& ballots,
                                          const Electorate& electorate, Polls polls) {
  auto ended = [&](Ending ending) {
    return [ending](const ReleaseReply& reply) { return reply.ending == ending; };
  };
  if (count(ballots, ended(Ending::released)) >= electorate.majority()) return ReleaseReply{};
  if (polls == Polls::open) return std::nullopt;
  if (answers(ballots) < electorate.majority()) return too_few(electorate, errors_of(ballots));
  auto live_run = [](const ReleaseReply& reply) { return reply.run.has_value(); };
  if (const ReleaseReply* reply = find(ballots, live_run)) return *reply;
  // It need not have been held everywhere: where it was released it had been held till then.
  for (Ending ending : {Ending::forced, Ending::released, Ending::removed, Ending::cancelled,
                        Ending::expired, Ending::unknown}) {
    if (const ReleaseReply* reply = find(ballots, ended(ending))) return *reply;
  }
  return ReleaseReply{Ending::expired, {}};
}

std::optional<Result<CancelReply>> judge(const Ballots<CancelReply>& ballots,
                                         const Electorate& electorate, Polls polls) {
  if (polls == Polls::open) return std::nullopt;
  if (answers(ballots) < electorate.majority()) return too_few(electorate, errors_of(ballots));
  auto is = [&](CancelReply wanted) {
    return count(ballots, [wanted](CancelReply reply) { return reply == wanted; });
  };
  if (is(CancelReply::holds) >= electorate.majority()) return CancelReply::holds;
  for (CancelReply reply : {CancelReply::gave_back, CancelReply::left_queue}) {
    if (is(reply) > 0) return reply;
  }
  return CancelReply::absent;
}

std::optional<Result<ForceReply>> judge(const Ballots<ForceReply>& ballots,
                                        const Electorate& electorate, Polls polls) {
  if (polls == Polls::open) return std::nullopt;
  if (answers(ballots) < electorate.majority()) return too_few(electorate, errors_of(ballots));
  auto more = [](const ForceReply& reply) { return std::holds_alternative<More>(reply); };
  if (find(ballots, more) != nullptr) return ForceReply(More{});
  std::optional<Forced> all;
  for (const auto& ballot : ballots) {
    const auto* forced = ballot && *ballot ? std::get_if<Forced>(&**ballot) : nullptr;
    if (forced == nullptr) continue;
    if (!all) all = Forced{};
    if (forced->broken.size() > all->broken.size()) all->broken = forced->broken;
    if (forced->counting.size() > all->counting.size()) all->counting = forced->counting;
    if (!all->next) all->next = forced->next;
  }
  if (all) return ForceReply(*std::move(all));
  auto free = [](const ForceReply& reply) { return std::holds_alternative<NotHeld>(reply); };
  auto other = [&](const ForceReply& reply) { return !free(reply); };
  if (count(ballots, free) >= electorate.majority()) return ForceReply(NotHeld{});
  return *find(ballots, other);
}

}  // namespace rlock::lock
