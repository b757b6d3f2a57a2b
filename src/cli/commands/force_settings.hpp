#pragma once

#include "cli/options/parse.hpp"
#include "lock/inspector.hpp"

namespace rlock::cli {

// Which of the holders.
struct OnlyHolder {};
struct AllHolders {};
using HolderChoice = std::variant<OnlyHolder, lock::Owner, lock::Token, AllHolders>;

// What `rlock force-unlock` was asked for.
struct ForceSettings {
  lock::LockName name;
  HolderChoice target = OnlyHolder{};
  lock::ForceWhen when = lock::ForceWhen::confirmed;
  std::string note{};
  bool any_format = true;  // other clients' locks are recognised by their shape
  bool yes = false;
  bool quiet = false;
  bool json = false;
};

Result<ForceSettings> force_settings(const Invocation& invocation);

}  // namespace rlock::cli
