#pragma once

#include <vector>

#include "lock/quorum/member.hpp"

// What the answers of several servers come to together. Pure: no time, no connections.
namespace rlock::lock {

// Who votes.
struct Quorum {
  std::vector<std::string> servers;  // their labels, in the order of the ballots

  size_t size() const { return servers.size(); }
  size_t majority() const { return servers.size() / 2 + 1; }
};

enum class Collecting { open, closed };  // closed: nobody is waited for any more

template <class T>
size_t count_answers(const Replies<T>& replies) {
  size_t n = 0;
  for (const auto& reply : replies) n += reply && *reply ? 1 : 0;
  return n;
}

// The errors among the ballots; none where a server has not spoken, or has answered.
template <class T>
std::vector<std::optional<Error>> errors_of(const Replies<T>& replies) {
  std::vector<std::optional<Error>> errors(replies.size());
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i] && !*replies[i]) errors[i] = replies[i]->error();
  }
  return errors;
}

// That fewer than a majority are of use, and why. May pass where enough of the troubles may.
Error too_few_servers(const Quorum& quorum, const std::vector<std::optional<Error>>& errors);

// What a server's error says once its name and the request are told elsewhere.
std::string error_at(const std::string& server, const Error& error);

// Each: the result as soon as it is certain, and at the latest when the polls are closed.
std::optional<Result<RenewReply>> merge_replies(const Replies<RenewReply>& replies,
                                                const Quorum& quorum, Collecting collecting);
std::optional<Result<ReleaseReply>> merge_replies(const Replies<ReleaseReply>& replies,
                                                  const Quorum& quorum, Collecting collecting);
std::optional<Result<CancelReply>> merge_replies(const Replies<CancelReply>& replies,
                                                 const Quorum& quorum, Collecting collecting);
std::optional<Result<ForceReply>> merge_replies(const Replies<ForceReply>& replies,
                                                const Quorum& quorum, Collecting collecting);

// What a lock looks like: an owner holds it where a majority has its lease, the silent servers
// counted in its favour.
std::optional<Result<Snapshot>> merge_replies(const Replies<Snapshot>& replies,
                                              const Quorum& quorum, Collecting collecting);

// The longest memory, with the runs that only others know.
std::optional<Result<std::vector<HistoryRow>>> merge_replies(
    const Replies<std::vector<HistoryRow>>& replies, const Quorum& quorum, Collecting collecting);

// The cursor holds each server's own; `-` for one that has listed all, or failed.
inline constexpr const char* kListingDone = "-";
// A member's part of a cursor; none where it is not to be asked again.
std::optional<std::string> cursor_at(const std::string& cursor, size_t member);
std::optional<Result<NamesPage>> merge_replies(const Replies<NamesPage>& replies,
                                               const Quorum& quorum, Collecting collecting);

}  // namespace rlock::lock
