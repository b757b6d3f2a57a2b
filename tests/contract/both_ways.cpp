// The same requests, in an order that a seed determines, get the same replies whichever way the
// scripts take.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <sstream>

#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

enum class Where { one_server, quorum };

// What a few clients do, and what they are answered: the words of a story.
class Story {
 public:
  Story(Way way, Where where, unsigned seed, const std::vector<Mutation>& mutations = {})
      : lab_(way, mutations), where_(where), random_(seed) {}

  std::string text() {
    size_t who = 0;  // mostly the one before, so that others do not come between all that it does
    for (int i = 0; i < 25; ++i) {
      if (random_() % 3 == 0) who = random_() % owners_.size();
      const char owner = owners_[who];
      words_ << "\n" << owner << ' ';
      act(owner, random_() % 8);
      look();
    }
    return words_.str();
  }

 private:
  // Tokens as the order in which they came: they hold the time.
  std::string rank(lock::Token token) {
    auto [known, fresh] = ranks_.try_emplace(token.value, ranks_.size());
    return std::to_string(known->second);
  }

  // Now and then of a request that is late.
  uint64_t attempt_of(char owner) { return newest(owner) - (random_() % 4 == 0 ? 1 : 0); }
  uint64_t& newest(char owner) { return attempts_.try_emplace(owner, 2).first->second; }

  Ask ask(char owner) {
    Ask ask;
    if (where_ == Where::one_server) {
      if (owner % 4 == 0) ask.limit = lock::Limit::shared();
      if (random_() % 6 == 0) ask.queueing = lock::Queueing::never;
    } else {
      ask.attempt = attempt_of(owner);
      ask.ticket = {static_cast<uint64_t>(owner)};
      ask.ahead = Millis(60'000);
    }
    return ask;
  }

  void act(char owner, unsigned what) {
    switch (what) {
      case 0:
      case 1:
      case 2:
        newest(owner) += random_() % 4 == 0 ? 1 : 0;
        return acquire(owner, ask(owner));
      case 3:
      case 4:
        return renew(owner, ask(owner));
      case 5:
        return release(owner);
      case 6:
        return cancel(owner);
      default:
        const Millis time(1000 * (random_() % 6 == 0 ? 70 : random_() % 8));
        words_ << "pass " << time.count();
        return lab_.pass(time);
    }
  }

  void acquire(char owner, const Ask& ask) {
    const lock::AcquireReply reply = lab_.acquire(owner, ask);
    words_ << "acquire " << ask.attempt << ": " << reply.index();
    if (const auto* granted = std::get_if<lock::Granted>(&reply)) {
      tokens_[owner] = granted->token;
      // The majority's may be that of a server whose clock is ahead.
      if (where_ == Where::quorum) tokens_[owner].value += 30'000'000 * (random_() % 3);
      words_ << " token " << rank(granted->token);
    }
  }

  void renew(char owner, Ask ask) {
    if (random_() % 4 == 0) ask.attempt = 0;
    const lock::RenewReply reply = lab_.renew(owner, tokens_[owner], ask);
    words_ << "renew " << ask.attempt << ": " << reply.index();
    if (const auto* renewal = std::get_if<lock::Renewal>(&reply)) {
      words_ << " as " << static_cast<int>(*renewal);
    } else if (const auto* lost = std::get_if<lock::Lost>(&reply)) {
      words_ << " how " << static_cast<int>(lost->how) << (lost->by ? lost->by->owner : "");
    }
  }

  void release(char owner) {
    const auto how = random_() % 3 == 0 ? lock::ReleaseHow::unused : lock::ReleaseHow::released;
    words_ << "release: "
           << static_cast<int>(lab_.release(owner, lock::Entry::outer(), "-", how).ending);
    if (random_() % 4 > 0) next_owner(owner);
  }

  void next_owner(char owner) {
    for (char& letter : owners_) {
      if (letter == owner && letter <= 'W') letter = static_cast<char>(letter + 3);
    }
  }

  void cancel(char owner) {
    if (where_ == Where::one_server) {
      words_ << "cancel: " << static_cast<int>(lab_.cancel(owner));
      return;
    }
    const lock::Ticket ticket{random_() % 2 == 0 ? uint64_t{0} : static_cast<uint64_t>(owner)};
    const uint64_t attempt = attempt_of(owner);
    words_ << "cancel " << attempt << ' ' << ticket.value << ": "
           << static_cast<int>(lab_.cancel_attempt(owner, attempt, ticket));
  }

  void look() {
    const lock::Snapshot seen = lab_.inspect();
    for (const lock::Holder& holder : seen.holders) {
      words_ << "; " << holder.owner.substr(28) << " state " << static_cast<int>(holder.state)
             << " token " << rank(holder.token) << " left " << holder.left.count() << " entries "
             << holder.entries;
    }
    words_ << "; waiters " << lab_.waiters() << "; runs " << lab_.history().size();
  }

  Lab lab_;
  Where where_;
  std::mt19937 random_;
  std::map<char, uint64_t> attempts_;
  std::map<char, lock::Token> tokens_;
  std::string owners_ = "ABC";  // an owner that has ended is followed by another
  std::map<uint64_t, size_t> ranks_;
  std::ostringstream words_;
};

// From where two stories differ.
std::string difference(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t line = a.rfind('\n', at);
  return a.substr(0, a.find('\n', at)) + "\nbut:" + b.substr(line, b.find('\n', at) - line);
}

}  // namespace

TEST_CASE("requests in any order get the same replies by the usual way and the short ways") {
  constexpr unsigned kSeeds = 30;
  for (Where where : {Where::one_server, Where::quorum}) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      const std::string usual = Story(Way::usual, where, seed).text();
      const std::string shorter = Story(Way::short_ways, where, seed).text();
      if (usual == shorter) continue;
      FAIL("seed ", seed, difference(usual, shorter));
    }
  }
}

TEST_CASE("a rule that only one of the ways keeps makes the replies differ") {
  const std::vector<Mutation> forgets_attempts{
      {"'try=granted:' .. 2 * attempt", "'try=granted:0'"}};
  bool differs = false;
  for (unsigned seed = 1; seed <= 30 && !differs; ++seed) {
    differs = Story(Way::usual, Where::quorum, seed).text() !=
              Story(Way::short_ways, Where::quorum, seed, forgets_attempts).text();
  }
  CHECK(differs);
}

}  // namespace rlock::contract
