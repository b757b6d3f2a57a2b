#pragma once

#include "cli/options/parse.hpp"
#include "lock/store.hpp"

namespace rlock::cli {

// What `rlock force-unlock` was asked for.
struct ForceSettings {
  lock::LockName name;
  lock::ForceTarget target = lock::OnlyHolder{};
  lock::Pace pace = lock::Pace::confirmed;
  std::string note{};
  bool any_format = true;  // other clients' locks are recognised by their shape
  bool yes = false;
  bool quiet = false;
  bool json = false;
};

Result<ForceSettings> force_settings(const Invocation& invocation);

}  // namespace rlock::cli
