#pragma once

#include <vector>

#include "lock/quorum/broadcast.hpp"

// Merges the replies of several servers into one. Pure: no time, no connections.
namespace rlock::lock {

// The errors among the replies; none for a server that has answered, or has not replied yet.
template <class T>
std::vector<std::optional<Error>> errors_of(const Replies<T>& replies) {
  std::vector<std::optional<Error>> errors(replies.size());
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i] && !*replies[i]) errors[i] = replies[i]->error();
  }
  return errors;
}

size_t count_errors(const std::vector<std::optional<Error>>& errors);
// The servers that have extended the lease, or put it back.
size_t count_renewed(const Replies<RenewReply>& replies);

// The error that fewer than a majority of the servers are available, and why. Retry::later if
// enough of the errors may pass.
Error too_few_servers(const Quorum& quorum, const std::vector<std::optional<Error>>& errors);

// What the answers of a majority come to, when no other server is waited for.
Result<CancelReply> merge_answers(const Replies<CancelReply>& replies, const Quorum& quorum);
Result<Forgotten> merge_answers(const Replies<Forgotten>& replies, const Quorum& quorum);
Result<ForceReply> merge_answers(const Replies<ForceReply>& replies, const Quorum& quorum);
// What a lock looks like: an owner holds it where a majority has its lease, the silent servers
// counted in its favour.
Result<Snapshot> merge_answers(const Replies<Snapshot>& replies, const Quorum& quorum);
// The longest history, with the runs that only other servers know.
Result<HistoryRows> merge_answers(const Replies<HistoryRows>& replies, const Quorum& quorum);
// Lock by lock.
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

// A member's part of a cursor; none where it is not to be asked again.
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
