#pragma once

#include <vector>

#include "lock/quorum/broadcast.hpp"

// Merges the replies of several servers into one. Pure functions: no time, no connections.
namespace rlock::lock {

// The error in each reply; nullopt for a server that has answered, or has not replied yet.
template <class T>
std::vector<std::optional<Error>> errors_of(const Replies<T>& replies) {
  std::vector<std::optional<Error>> errors(replies.size());
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i] && !*replies[i]) errors[i] = replies[i]->error();
  }
  return errors;
}

size_t count_errors(const std::vector<std::optional<Error>>& errors);
// The number of servers that have extended the lease, or restored it.
size_t count_renewed(const Replies<RenewReply>& replies);

// The error that less than a majority of the servers are available, and why. Retry::later if enough
// of the errors may be temporary.
Error too_few_servers(const Quorum& quorum, const std::vector<std::optional<Error>>& errors);

// The merged answer of a majority, when the request no longer waits for other servers.
Result<CancelReply> merge_answers(const Replies<CancelReply>& replies, const Quorum& quorum);
Result<Forgotten> merge_answers(const Replies<Forgotten>& replies, const Quorum& quorum);
Result<ForceReply> merge_answers(const Replies<ForceReply>& replies, const Quorum& quorum);
// The merged state of a lock: an owner holds it if a majority stores its lease; silent servers
// count in its favour.
Result<Snapshot> merge_answers(const Replies<Snapshot>& replies, const Quorum& quorum);
// The longest history, with the runs that only other servers know.
Result<HistoryRows> merge_answers(const Replies<HistoryRows>& replies, const Quorum& quorum);
// Merges lock by lock.
template <class T>
Result<std::vector<Result<T>>> merge_answers(const Replies<std::vector<Result<T>>>& replies,
                                             const Quorum& quorum);

// The result as soon as it is certain, and at the latest when collecting is closed.
template <class T>
std::optional<Result<T>> merge_replies(const Replies<T>& replies, const Quorum& quorum,
                                       Collecting collecting) {
  if (collecting == Collecting::open) return std::nullopt;
  if (count_answers(replies) >= quorum.majority()) return merge_answers(replies, quorum);
  return too_few_servers(quorum, errors_of(replies));
}
std::optional<Result<RenewReply>> merge_replies(const Replies<RenewReply>& replies,
                                                const Quorum& quorum, Collecting collecting);
std::optional<Result<ReleaseReply>> merge_replies(const Replies<ReleaseReply>& replies,
                                                  const Quorum& quorum, Collecting collecting);
// A server that was not asked again counts as having answered.
std::optional<Result<NamesPage>> merge_replies(const Replies<NamesPage>& replies,
                                               const Quorum& quorum, Collecting collecting);

// A member's part of a cursor; nullopt if that member is not to be asked again.
std::optional<std::string> cursor_at(const std::string& cursor, size_t member);

template <class T>
Result<std::vector<Result<T>>> merge_answers(const Replies<std::vector<Result<T>>>& replies,
                                             const Quorum& quorum) {
  std::vector<Result<T>> all;
  for (size_t i = 0; i < answers(replies).back()->size(); ++i) {
    Replies<T> one(replies.size());
    for (size_t server = 0; server < replies.size(); ++server) {
      const auto& reply = replies[server];
      if (reply) one[server] = *reply ? (**reply)[i] : Result<T>(reply->error());
    }
    all.push_back(*merge_replies(one, quorum, Collecting::closed));
  }
  return all;
}

}  // namespace rlock::lock
