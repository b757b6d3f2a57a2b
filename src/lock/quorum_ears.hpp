#pragma once

#include "lock/quorum_judge.hpp"

namespace rlock::lock {

// What an owner listens on at every server, over connections of their own that stay blocked from
// one wait to the next. A wake is a hint: enough of them say that another try is worth it, one
// alone says so after a moment. [PROTOCOL, Quorum]
class Ears {
 public:
  Ears(const std::vector<MakeStore>& makers, const Electorate& electorate)
      : makers_(makers), electorate_(electorate) {}

  InFlight<Wake> listen(const LockName& name, const Owner& owner, Millis slice);
  // Hangs up: nobody is blocked at a server any more.
  void close() { ears_.clear(); }

 private:
  class Listening;
  struct Ear {
    std::unique_ptr<LockStore> store;
    InFlight<Wake> request{};
    bool deaf = false;  // failed in this wait
  };

  const std::vector<MakeStore>& makers_;
  const Electorate& electorate_;
  std::vector<Ear> ears_;
  std::optional<Owner> owner_;
};

}  // namespace rlock::lock
