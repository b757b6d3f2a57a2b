#pragma once

#include <vector>

#include "lock/quorum_member.hpp"

// What the answers of several servers come to together. Pure: no time, no connections.
namespace rlock::lock {

// Who votes.
struct Electorate {
  std::vector<std::string> servers;  // their labels, in the order of the ballots

  size_t size() const { return servers.size(); }
  size_t majority() const { return servers.size() / 2 + 1; }
};

enum class Polls { open, closed };  // closed: nobody is waited for any more

template <class T>
size_t answers(const Ballots<T>& ballots) {
  size_t n = 0;
  for (const auto& ballot : ballots) n += ballot && *ballot ? 1 : 0;
  return n;
}

// The errors among the ballots; none where a server has not spoken, or has answered.
template <class T>
std::vector<std::optional<util::Error>> errors_of(const Ballots<T>& ballots) {
  std::vector<std::optional<util::Error>> errors(ballots.size());
  for (size_t i = 0; i < ballots.size(); ++i) {
    if (ballots[i] && !*ballots[i]) errors[i] = ballots[i]->error();
  }
  return errors;
}

// That fewer than a majority are of use, and why. May pass where enough of the troubles may.
util::Error too_few(const Electorate& electorate,
                    const std::vector<std::optional<util::Error>>& errors);

// What a server's error says once its name and the request are told elsewhere.
std::string trouble_at(const std::string& server, const util::Error& error);

// Each: the result as soon as it is certain, and at the latest when the polls are closed.
std::optional<util::Result<RenewReply>> judge(const Ballots<RenewReply>& ballots,
                                              const Electorate& electorate, Polls polls);
std::optional<util::Result<ReleaseReply>> judge(const Ballots<ReleaseReply>& ballots,
                                                const Electorate& electorate, Polls polls);
std::optional<util::Result<CancelReply>> judge(const Ballots<CancelReply>& ballots,
                                               const Electorate& electorate, Polls polls);
std::optional<util::Result<ForceReply>> judge(const Ballots<ForceReply>& ballots,
                                              const Electorate& electorate, Polls polls);

// What a lock looks like: an owner holds it where a majority has its lease, the silent servers
// counted in its favour.
std::optional<util::Result<Snapshot>> judge(const Ballots<Snapshot>& ballots,
                                            const Electorate& electorate, Polls polls);

// The longest memory, with the runs that only others know.
std::optional<util::Result<std::vector<Past>>> judge(const Ballots<std::vector<Past>>& ballots,
                                                     const Electorate& electorate, Polls polls);

// The cursor holds each server's own; `-` for one that has listed all, or failed.
inline constexpr const char* kListed = "-";
// A member's part of a cursor; none where it is not to be asked again.
std::optional<std::string> cursor_at(const std::string& cursor, size_t member);
std::optional<util::Result<NamesPage>> judge(const Ballots<NamesPage>& ballots,
                                             const Electorate& electorate, Polls polls);

}  // namespace rlock::lock
